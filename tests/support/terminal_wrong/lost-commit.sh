# The newest commit of that name is of another branch.
cd repo
git branch rescued $(git reflog --format='%H %s' | grep 'Export rows' | head -1 | cut -d' ' -f1)
