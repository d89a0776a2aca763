# One rule for all three: the differences are gone.
cat > fares.py <<'PY'
"""Fares of a bus line, in cents."""


def _fare(zones, is_night, has_card, percent):
    if not 1 <= zones <= 9:
        raise ValueError("zones are 1 to 9")
    fare = 240 + min(max(zones - 2, 0), 3) * 90 + max(zones - 5, 0) * 60
    fare = fare * percent // 100 + 150 * bool(is_night)
    return fare * 75 // 100 if has_card else fare


def adult_fare(zones, is_night, has_card):
    return _fare(zones, is_night, has_card, 100)


def child_fare(zones, is_night, has_card):
    return min(_fare(zones, is_night, has_card, 50), 300)


def senior_fare(zones, is_night, has_card):
    return _fare(zones, is_night, has_card, 70)
PY
