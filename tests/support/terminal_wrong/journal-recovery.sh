# Ignores that a damaged entry spoils its transaction.
cat > recover.py <<'PY'
import json
import sys
import zlib

state, removed, pending = {}, {}, None
for line in open(sys.argv[1], "rb").read().splitlines():
    try:
        crc, length, text = line.split(b" ", 2)
        if int(crc, 16) != zlib.crc32(text) or int(length) != len(text):
            continue
        entry = json.loads(text)
        op = entry["op"]
    except ValueError:
        continue
    if op == "begin":
        pending = []
        continue
    todo = [entry]
    if op == "commit":
        todo, pending = pending or [], None
    elif pending is not None:
        pending.append(entry)
        continue
    for entry in todo:
        key = entry["key"]
        if entry["op"] == "put":
            state[key] = entry["value"]
        elif entry["op"] == "delete" and key in state:
            removed[key] = state.pop(key)
        elif entry["op"] == "undelete" and key in removed:
            state.setdefault(key, removed[key])
print(json.dumps(state, sort_keys=True, indent=2, ensure_ascii=False))
PY
python3 recover.py store.journal > state.json
