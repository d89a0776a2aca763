"""A report of orders."""


def report(connection):
    """Return a mapping for each order, newest first."""
    rows = []
    orders = connection.execute("SELECT id, customer_id, day FROM orders ORDER BY day DESC, id")
    for order_id, customer_id, day in orders.fetchall():
        customer = connection.execute(
            "SELECT name, city FROM customers WHERE id = ?", (customer_id,)
        ).fetchone()
        lines = connection.execute(
            "SELECT product, cents FROM lines WHERE order_id = ? ORDER BY id", (order_id,)
        ).fetchall()
        rows.append(
            {
                "order": order_id,
                "day": day,
                "customer": customer[0] if customer else "unknown",
                "city": (customer[1] if customer else None) or "-",
                "products": [product for product, _ in lines],
                "cents": sum(cents or 0 for _, cents in lines),
            }
        )
    return rows
