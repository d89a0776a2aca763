# Follows links, ignores permissions, keeps the first by name.
cat > dedupe.py <<'PY'
import os
import sys
from pathlib import Path

root = Path(sys.argv[1])
groups = {}
for path in sorted(root.rglob("*")):
    if path.is_file() and path.stat().st_size:
        groups.setdefault(path.read_bytes(), []).append(path)
for content, paths in groups.items():
    if len(paths) > 1:
        for path in paths[1:]:
            path.unlink()
            os.link(paths[0], path)
        print(len(paths), (len(paths) - 1) * len(content), paths[0].relative_to(root), sep="\t")
PY
