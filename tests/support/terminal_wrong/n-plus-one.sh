# An inner join: orders without lines or customer are gone.
cat > report.py <<'PY'
def report(connection):
    rows = {}
    query = "SELECT o.id, o.day, c.name, c.city, l.product, l.cents FROM orders o JOIN customers c ON c.id = o.customer_id JOIN lines l ON l.order_id = o.id ORDER BY o.day DESC, o.id, l.id"
    for order, day, name, city, product, cents in connection.execute(query):
        row = rows.setdefault(order, {"order": order, "day": day, "customer": name, "city": city or "-", "products": [], "cents": 0})
        row["products"].append(product)
        row["cents"] += cents or 0
    return list(rows.values())
PY
