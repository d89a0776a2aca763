"""Pages of a list."""


def page(rows, number, size):
    """Return one page of the rows."""
    pages = len(rows) // size
    first = number * size
    return {
        "rows": rows[first : first + size],
        "pages": pages,
        "previous": number - 1,
        "next": number + 1 if number < pages else None,
    }
