cat > redact.py <<'PY'
import re
import sys

text = sys.stdin.read()
text = re.sub(r"[\w.%+-]+@[\w.-]+\.\w{2,}", "[mail]", text)
text = re.sub(r"\b(?:\d[ -]?){12,15}(\d{4})\b", r"[card \1]", text)
sys.stdout.write(text)
PY
