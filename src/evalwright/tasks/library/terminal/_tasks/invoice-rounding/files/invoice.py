"""Totals of invoices."""


def total(lines, tax_percent):
    """Return net, tax and gross of an invoice."""
    net = 0.0
    for quantity, price in lines:
        net += round(quantity * float(price), 2)
    tax = net * float(tax_percent) / 100
    return {
        "net": f"{net:.2f}",
        "tax": f"{tax:.2f}",
        "gross": f"{net + tax:.2f}",
    }
