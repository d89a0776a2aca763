"""Orders."""

from shop.customers import Customer
from shop.mails import send_receipt

TAX_PERCENT = 8


class Order:
    """What a customer ordered."""

    def __init__(self, customer: Customer, cents: int):
        self.customer = customer
        self.cents = cents

    def gross(self) -> int:
        """Return the price with tax, in cents."""
        return self.cents * (100 + TAX_PERCENT) // 100

    def pay(self) -> str:
        """Pay it, and return the mail that is sent."""
        return send_receipt(self)
