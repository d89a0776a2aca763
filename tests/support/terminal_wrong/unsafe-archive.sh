cat > unpack.py <<'PY'
import json
import os
import sys
import tarfile

if os.path.exists(sys.argv[2]):
    sys.exit(2)
os.makedirs(sys.argv[2])
with tarfile.open(sys.argv[1]) as tar:
    for member in tar.getmembers():
        if member.name.startswith("/") or ".." in member.name or member.size > 1_000_000:
            print("skipped", json.dumps(member.name))
            continue
        tar.extract(member, sys.argv[2])
        print("unpacked", json.dumps(member.name))
PY
