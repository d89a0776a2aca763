cat > convert.py <<'PY'
import sys
from pathlib import Path

for path in Path(sys.argv[1]).rglob("*.txt"):
    content = path.read_bytes()
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        try:
            text = content.decode(encoding)
            break
        except UnicodeError:
            pass
    path.write_text(text, encoding="utf-8")
PY
python3 convert.py letters
