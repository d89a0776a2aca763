# executescript commits: a failed migration leaves half of it behind.
cat > migrate.py <<'PY'
import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1])
if connection.execute("PRAGMA user_version").fetchone()[0] == 2:
    sys.exit(0)
people = connection.execute("SELECT id, full_name, emails FROM people").fetchall()
notes = connection.execute("SELECT * FROM notes").fetchall()
connection.executescript("DROP TABLE people; DROP TABLE notes;" + open("/work/new.sql").read())
for number, name, emails in people:
    words = name.split()
    connection.execute("INSERT INTO people VALUES (?, ?, ?)", (number, " ".join(words[:-1]), words[-1]))
    addresses = list(dict.fromkeys(a.strip().lower() for a in (emails or "").split(";") if a.strip()))
    for position, address in enumerate(addresses, 1):
        if "@" not in address:
            sys.exit(1)
        connection.execute("INSERT INTO emails VALUES (?, ?, ?)", (number, position, address))
ids = {number for number, _, _ in people}
connection.executemany("INSERT INTO notes VALUES (?, ?, ?)", [n for n in notes if n[1] in ids])
connection.commit()
PY
