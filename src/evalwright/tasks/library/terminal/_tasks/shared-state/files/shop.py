"""Carts of a shop."""


class Cart:
    """What a customer wants to buy."""

    discounts = {}

    def __init__(self, goods=[]):
        self.goods = goods
        self.log = []

    def add(self, name, cents):
        """Put something into the cart."""
        self.goods.append([name, cents])
        self.log.append(f"add {name}")

    def discount(self, name, percent):
        """Make something cheaper, in whole percent."""
        self.discounts[name] = percent

    def total(self):
        """Return the sum in cents, each price rounded down."""
        return sum(cents * (100 - self.discounts.get(name, 0)) // 100 for name, cents in self.goods)

    def history(self):
        """Return what was done."""
        return self.log
