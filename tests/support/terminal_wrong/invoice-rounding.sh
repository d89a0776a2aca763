# Decimal, but with its usual rounding of halves to even.
cat > invoice.py <<'PY'
from decimal import Decimal


def total(lines, tax_percent):
    net = sum((round(quantity * Decimal(price), 2) for quantity, price in lines), Decimal("0.00"))
    tax = round(net * Decimal(tax_percent) / 100, 2)
    return {"net": str(net), "tax": str(tax), "gross": str(net + tax)}
PY
