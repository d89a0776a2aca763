cat > summary.py <<'PY'
import json
import sys
from collections import Counter
from pathlib import Path

n, bad, errors = 0, 0, Counter()
for path in Path(sys.argv[1]).glob("*.log"):
    for line in path.read_text().splitlines():
        parts = line.split()
        if len(parts) != 8:
            bad += 1
            continue
        n += 1
        if parts[5].startswith("5"):
            errors[parts[3].split("?")[0]] += 1
print(json.dumps({"requests": n, "malformed": bad, "errors": sum(errors.values()), "worst": errors.most_common(3)}))
PY
