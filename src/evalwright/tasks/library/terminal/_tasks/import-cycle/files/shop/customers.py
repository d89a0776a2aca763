"""Customers."""

from shop.orders import TAX_PERCENT, Order

GREETING = "Dear"


class Customer:
    """Somebody who orders."""

    def __init__(self, name: str):
        self.name = name
        self.orders = []

    def order(self, cents: int) -> Order:
        """Order something."""
        order = Order(self, cents)
        self.orders.append(order)
        return order

    def tax(self) -> int:
        """Return the tax on all orders, in cents."""
        return sum(order.cents * TAX_PERCENT // 100 for order in self.orders)
