import random
import sqlite3
import sys
import unittest

sys.path.insert(0, "/checks")
from checks import main, program

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, day TEXT NOT NULL);
CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, product TEXT NOT NULL, cents INTEGER);
"""
CODE = """
import json, sqlite3
from report import report
connection = sqlite3.connect(sys.argv[1])
statements = []
connection.set_trace_callback(statements.append)
rows = report(connection)
print(json.dumps([rows, len([s for s in statements if not s.upper().startswith(("BEGIN", "COMMIT", "--"))])]))
"""


def expected(connection):
    rows = []
    for order, customer, day in connection.execute(
        "SELECT id, customer_id, day FROM orders ORDER BY day DESC, id"
    ).fetchall():
        who = connection.execute(
            "SELECT name, city FROM customers WHERE id = ?", (customer,)
        ).fetchone() or ("unknown", None)
        lines = connection.execute(
            "SELECT product, cents FROM lines WHERE order_id = ? ORDER BY id", (order,)
        ).fetchall()
        rows.append(
            {
                "order": order,
                "day": day,
                "customer": who[0],
                "city": who[1] or "-",
                "products": [p for p, _ in lines],
                "cents": sum(c or 0 for _, c in lines),
            }
        )
    return rows


class Check(unittest.TestCase):
    def test_databases(self):
        for seed, n_orders in ((1, 0), (2, 7), (3, 400)):
            draw = random.Random(seed)
            path = f"/tmp/check-{seed}.db"
            connection = sqlite3.connect(path)
            connection.executescript(SCHEMA)
            for n in range(1, 31):
                connection.execute(
                    "INSERT INTO customers VALUES (?, ?, ?)",
                    (n * 2, f"Customer {n}", draw.choice([None, "", "Oslo", "Riga"])),
                )
            for n in range(n_orders):
                connection.execute(
                    "INSERT INTO orders VALUES (?, ?, ?)",
                    (
                        n + 5,
                        draw.randint(1, 60),
                        f"2026-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}",
                    ),
                )
                for _ in range(draw.randint(0, 4)):
                    connection.execute(
                        "INSERT INTO lines (order_id, product, cents) VALUES (?, ?, ?)",
                        (
                            draw.randint(5, n + 5),
                            f"product {draw.randint(1, 9)}",
                            draw.choice([None, 5, 1200]),
                        ),
                    )
            connection.commit()
            rows, n_statements = program(CODE, path)
            self.assertEqual(rows, expected(connection))
            self.assertLessEqual(n_statements, 3)


main()
