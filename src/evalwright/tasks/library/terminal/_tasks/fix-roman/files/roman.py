"""Roman numerals."""

SIGNS = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (1, "I"),
]


def to_roman(number):
    """Return the numeral of a number from 1 to 3999."""
    if not 0 <= number < 4000:
        raise ValueError(f"{number} has no numeral")
    numeral = ""
    for worth, sign in SIGNS:
        while number > worth:
            numeral += sign
            number -= worth
    return numeral


def from_roman(text):
    """Return the number of a numeral."""
    total = 0
    rest = text
    for worth, sign in SIGNS:
        while rest.startswith(sign):
            total += worth
            rest = rest[len(sign):]
    return total
