# What git blame says of the line that rounds.
cd repo
git blame -l -s fee.py | grep 'int( fee' | cut -d' ' -f1 | tr -d '^' > ../answer.txt
