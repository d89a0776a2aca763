# Python's own rules over floats.
cat > calc.py <<'PY'
import sys

for line in sys.stdin:
    try:
        value = eval(line.replace("^", "**"))
        print(int(value) if value == int(value) else value)
    except Exception:
        print("error")
PY
