# Depth first by name: not the alphabetically first order, and too deep for long chains.
cat > order.py <<'PY'
import sys

needs = {}
for line in sys.stdin:
    line = line.split("#")[0].strip()
    if not line:
        continue
    name, _, words = line.partition(":")
    needs.setdefault(name.strip(), set()).update(words.split())
done, path = [], []


def visit(name):
    if name in path:
        print("cycle:", " -> ".join(path[path.index(name):] + [name]))
        sys.exit(1)
    if name in done:
        return
    path.append(name)
    for need in sorted(needs.get(name, ())):
        visit(need)
    path.pop()
    done.append(name)


for name in sorted(needs):
    visit(name)
print("\n".join(done))
PY
