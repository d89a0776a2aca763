cat > times.py <<'PY'
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime


def to_utc(text):
    if text.startswith("@"):
        moment = datetime.fromtimestamp(int(text[1:]))
    elif "," in text:
        moment = parsedate_to_datetime(text)
    elif "/" in text:
        moment = datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z")
    else:
        moment = datetime.fromisoformat(text)
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
PY
