cat > table.py <<'PY'
import sys

rows = [line.rstrip("\n").split("\t") for line in sys.stdin]
if rows:
    n = max(map(len, rows))
    rows = [row + [""] * (n - len(row)) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(n)]
    numeric = [all(row[i].lstrip("-").replace(".", "").isdigit() for row in rows[1:] if row[i]) for i in range(n)]
    rows.insert(1, ["-" * w for w in widths])
    for row in rows:
        print("  ".join(c.rjust(w) if k else c.ljust(w) for c, w, k in zip(row, widths, numeric)).rstrip())
PY
