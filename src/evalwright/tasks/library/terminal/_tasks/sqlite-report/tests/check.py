import random
import sqlite3
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, output

SCHEMA = """
CREATE TABLE payments (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, time TEXT NOT NULL, cents INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, payment_id INTEGER NOT NULL, time TEXT NOT NULL, cents INTEGER NOT NULL);
"""


class Check(unittest.TestCase):
    def test_databases(self):
        for seed, n_payments in ((1, 0), (2, 60), (3, 500)):
            draw = random.Random(seed)
            path = f"/tmp/shop-{seed}.db"
            connection = sqlite3.connect(path)
            connection.executescript(SCHEMA)
            net, customers, n_refunds = {}, {}, 0
            for number in range(1, n_payments + 1):
                month = f"{draw.choice([2024, 2025, 2026])}-{draw.randint(1, 11):02d}"
                time = f"{month}-{draw.choice(['01T00:00:00', '28T23:59:59', '15T10:00:00'])}Z"
                status = draw.choice(["open", "paid", "refunded", "failed"])
                cents, who = draw.randint(1, 99999), f"c{draw.randint(1, 20)}"
                connection.execute(
                    "INSERT INTO payments VALUES (?, ?, ?, ?, ?)",
                    (number, who, time, cents, status),
                )
                counts = status in ("paid", "refunded")
                net[month] = net.get(month, 0) + cents * counts
                if status == "paid":
                    customers.setdefault(month, set()).add(who)
                for _ in range(draw.choice([0, 0, 1, 2])):
                    n_refunds += 1
                    of = f"{draw.choice([2025, 2026])}-{draw.randint(1, 12):02d}"
                    back = draw.randint(1, 150000)
                    connection.execute(
                        "INSERT INTO refunds VALUES (?, ?, ?, ?)",
                        (n_refunds, number, f"{of}-03T04:05:06Z", back),
                    )
                    net[of] = net.get(of, 0) - back * counts
            connection.commit()
            connection.close()
            with open(path, "rb") as file:
                before = file.read()
            expected = []
            for number in range(1, 13):
                cents = net.get(f"2025-{number:02d}", 0)
                sign = "-" if cents < 0 else ""
                n = len(customers.get(f"2025-{number:02d}", ()))
                expected.append(
                    f"2025-{number:02d} {sign}{abs(cents) // 100}.{abs(cents) % 100:02d} {n}"
                )
            lines = output([sys.executable, "-B", "revenue.py", path, "2025"]).splitlines()
            self.assertEqual(lines, expected)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)


main()
