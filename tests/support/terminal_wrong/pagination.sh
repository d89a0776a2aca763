cat > pages.py <<'PY'
def page(rows, number, size):
    pages = len(rows) // size + 1
    if size < 1 or not 1 <= number <= pages:
        raise ValueError
    first = (number - 1) * size
    return {"rows": rows[first : first + size], "pages": pages, "previous": number - 1 or None, "next": number + 1 if number < pages else None}
PY
