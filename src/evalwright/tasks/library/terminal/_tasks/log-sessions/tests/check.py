import csv
import io
import random
import sys
import unittest
from datetime import datetime, timedelta, timezone

sys.path.insert(0, "/checks")
from checks import main, output

FORM = "%Y-%m-%dT%H:%M:%SZ"


def sessions(path):
    return list(csv.reader(io.StringIO(output([sys.executable, "-B", "sessions.py", path]))))


class Check(unittest.TestCase):
    def test_the_file(self):
        self.assertEqual(
            sessions("visits.csv"),
            [
                ["user", "start", "end", "pages"],
                ["ada", "2026-03-01T10:00:00Z", "2026-03-01T10:50:00Z", "2"],
                ["Ben, the 2nd", "2026-03-01T10:05:00Z", "2026-03-01T10:05:00Z", "1"],
                ["Ben, the 2nd", "2026-03-01T10:50:01Z", "2026-03-01T10:50:01Z", "1"],
            ],
        )

    def test_other_visits(self):
        draw = random.Random(8)
        first = datetime(2025, 12, 31, 20, 0, 0, tzinfo=timezone.utc)
        visits, expected = [], []
        for user in ("ada", 'B "x"', "c,d", "Ägir"):
            time = first + timedelta(seconds=draw.randint(0, 9000))
            for _ in range(12):
                start, pages = time, set()
                for _ in range(draw.randint(1, 6)):
                    page = f"/{draw.randint(1, 4)}"
                    pages.add(page)
                    visits.append((time, user, page))
                    end = time
                    time += timedelta(seconds=draw.choice([0, 5, 1799, 1800]))
                expected.append((start, user, end, len(pages)))
                time = end + timedelta(seconds=draw.choice([1801, 7200, 90000]))
        draw.shuffle(visits)
        with open("/tmp/visits.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["time", "user", "page"])
            for time, user, page in visits:
                zone = timezone(timedelta(minutes=draw.choice([0, 330, -480, 60])))
                text = (
                    time.strftime(FORM)
                    if draw.random() < 0.3
                    else time.astimezone(zone).isoformat()
                )
                writer.writerow([text, user, page])
        rows = [
            [user, start.strftime(FORM), end.strftime(FORM), str(n)]
            for start, user, end, n in sorted(expected)
        ]
        self.assertEqual(sessions("/tmp/visits.csv")[1:], rows)


main()
