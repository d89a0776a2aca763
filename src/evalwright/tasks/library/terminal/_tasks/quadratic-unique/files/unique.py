"""Records without duplicates."""


def unique(records):
    """Return the records without duplicates, in their order."""
    kept = []
    for record in records:
        if not any(record == other for other in kept):
            kept.append(record)
    return kept
