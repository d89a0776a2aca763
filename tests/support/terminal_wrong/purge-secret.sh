# A new commit without the file: the history keeps it.
cd repo
git stash drop -q
git checkout -q release
git rm -q config.env
git commit -q -m "Remove the secret"
git checkout -q main
git gc -q --prune=now
