# Linear, but its keys are texts: 1 and 1.0 differ.
cat > unique.py <<'PY'
import json


def unique(records):
    kept = {}
    for record in records:
        kept.setdefault(json.dumps(record, sort_keys=True, default=repr), record)
    return list(kept.values())
PY
