import sqlite3
import sys
import unittest
from pathlib import Path

sys.path.insert(0, "/checks")
from checks import main, run

OLD = """
CREATE TABLE people (id INTEGER PRIMARY KEY, full_name TEXT NOT NULL, emails TEXT);
CREATE TABLE notes (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL, text TEXT NOT NULL);
PRAGMA user_version = 1;
"""
PEOPLE = [
    (3, "Ada  King Lovelace", " ADA@example.org ; ada@example.org;;x@y.example"),
    (7, "Plato", None),
    (8, " Jo von der  Au ", ""),
    (900, "Ünal Öz", "ü@example.org"),
]
NOTES = [(1, 7, "a;b"), (5, 4, "lost"), (6, 900, "it's")]


def database(name, people):
    path = Path("/tmp", name)
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.executescript(OLD)
    connection.executemany("INSERT INTO people VALUES (?, ?, ?)", people)
    connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", NOTES)
    connection.commit()
    connection.close()
    return str(path)


def content(path):
    connection = sqlite3.connect(path)
    query = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    tables = [name for (name,) in connection.execute(query)]
    return {
        "version": connection.execute("PRAGMA user_version").fetchone()[0],
        "rows": {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in tables
        },
        "columns": {
            name: [c[1] for c in connection.execute(f"PRAGMA table_info({name})")]
            for name in tables
        },
        "keys": {
            name: [key[2:5] for key in connection.execute(f"PRAGMA foreign_key_list({name})")]
            for name in tables
        },
        "faults": connection.execute("PRAGMA foreign_key_check").fetchall(),
    }


def migrate(path):
    return run([sys.executable, "-B", "migrate.py", path]).returncode


class Check(unittest.TestCase):
    def test_migration(self):
        path = database("good.db", PEOPLE)
        self.assertEqual(migrate(path), 0)
        after = content(path)
        self.assertEqual(after["version"], 2)
        self.assertEqual(
            after["rows"],
            {
                "people": [
                    (3, "Ada King", "Lovelace"),
                    (7, "", "Plato"),
                    (8, "Jo von der", "Au"),
                    (900, "Ünal", "Öz"),
                ],
                "emails": [
                    (3, 1, "ada@example.org"),
                    (3, 2, "x@y.example"),
                    (900, 1, "ü@example.org"),
                ],
                "notes": [(1, 7, "a;b"), (6, 900, "it's")],
            },
        )
        self.assertEqual(after["columns"]["people"], ["id", "first_name", "last_name"])
        self.assertEqual(after["keys"]["notes"], [("people", "person_id", "id")])
        self.assertEqual(after["keys"]["emails"], [("people", "person_id", "id")])
        self.assertEqual(after["faults"], [])
        self.assertEqual(migrate(path), 0)
        self.assertEqual(content(path), after)

    def test_a_failure_changes_nothing(self):
        path = database("bad.db", [*PEOPLE, (901, "Bad Address", "ok@example.org; nonsense")])
        before = content(path)
        self.assertEqual(migrate(path), 1)
        self.assertEqual(content(path), before)

    def test_no_rows(self):
        path = database("empty.db", [])
        self.assertEqual(migrate(path), 0)
        self.assertEqual(
            content(path)["rows"], {"people": [], "emails": [], "notes": [(1, 7, "a;b")][:0]}
        )


main()
