# Sorted as texts: offsets are forgotten.
cat > sessions.py <<'PY'
import csv
import sys
from datetime import datetime, timedelta

visits = {}
for row in csv.DictReader(open(sys.argv[1])):
    visits.setdefault(row["user"], []).append((datetime.fromisoformat(row["time"][:19]), row["page"]))
sessions = []
for user, of_user in visits.items():
    last = None
    for time, page in sorted(of_user):
        if last is None or time - last > timedelta(minutes=30):
            sessions.append([time, user, time, set()])
        sessions[-1][2] = last = time
        sessions[-1][3].add(page)
print("user,start,end,pages")
for start, user, end, pages in sorted(sessions, key=lambda s: s[:2]):
    csv.writer(sys.stdout, lineterminator="\n").writerow([user, start.isoformat() + "Z", end.isoformat() + "Z", len(pages)])
PY
