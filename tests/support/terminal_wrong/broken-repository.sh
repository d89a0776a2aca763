# From the backup alone: the last two releases are lost.
rm -rf repo
git clone -q -b main backup.bundle repo
cd repo
git tag v1 $(git log --format='%H %s' main | grep 'Release 2$' | cut -d' ' -f1)
