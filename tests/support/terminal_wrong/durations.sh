# Finds parts anywhere and ignores what stands between them.
cat > durations.py <<'PY'
import re

FACTORS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse(text):
    parts = re.findall(r"(\d+)([dhms])", text)
    if not parts:
        raise ValueError(text)
    seconds = sum(int(n) * FACTORS[unit] for n, unit in parts)
    return -seconds if text.strip().startswith("-") else seconds


def show(seconds):
    text, left = "", abs(seconds)
    for unit, factor in FACTORS.items():
        n, left = divmod(left, factor)
        text += f"{n}{unit}" if n else ""
    return ("-" if seconds < 0 else "") + (text or "0s")
PY
