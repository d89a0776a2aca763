cd repo
git checkout --theirs shipping.py
git add shipping.py
git commit -q -m "Merge feature"
