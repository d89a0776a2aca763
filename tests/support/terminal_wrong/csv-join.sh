# Lines and commas instead of CSV.
cat > join.py <<'PY'
import sys

left = open(sys.argv[1]).read().splitlines()
right = open(sys.argv[2]).read().splitlines()
cities = {}
for line in right[1:]:
    key, rest = line.split(",", 1)
    cities.setdefault(key, rest)
print(left[0] + ",city,note_2")
for line in left[1:]:
    print(line + "," + cities.get(line.split(",")[-2:][0], ","))
PY
