"""Mails to customers."""

from shop.customers import GREETING
from shop.orders import TAX_PERCENT


def send_receipt(order) -> str:
    """Return the receipt of an order."""
    return f"{GREETING} {order.customer.name}, you paid {order.gross()} cents ({TAX_PERCENT}% tax)."
