"""Fares of a bus line, in cents."""


def adult_fare(zones, is_night, has_card):
    """Return the fare of an adult."""
    if zones < 1 or zones > 9:
        raise ValueError("zones are 1 to 9")
    if zones <= 2:
        fare = 240
    elif zones <= 5:
        fare = 240 + (zones - 2) * 90
    else:
        fare = 510 + (zones - 5) * 60
    if is_night:
        fare = fare + 150
    if has_card:
        fare = fare * 75 // 100
    return fare


def child_fare(zones, is_night, has_card):
    """Return the fare of a child."""
    if zones < 1 or zones > 9:
        raise ValueError("zones are 1 to 9")
    if zones <= 2:
        fare = 240
    elif zones <= 5:
        fare = 240 + (zones - 2) * 90
    else:
        fare = 510 + (zones - 5) * 60
    fare = fare // 2
    if is_night:
        fare = fare + 150
    if has_card:
        fare = fare * 75 // 100
    return min(fare, 300)


def senior_fare(zones, is_night, has_card):
    """Return the fare of a senior."""
    if zones < 1 or zones > 9:
        raise ValueError("zones are 1 to 9")
    if zones <= 2:
        fare = 240
    elif zones <= 5:
        fare = 240 + (zones - 2) * 90
    else:
        fare = 510 + (zones - 5) * 60
    if is_night:
        fare = fare + 100
    fare = fare * 70 // 100
    if has_card:
        fare = fare - 20
    return fare
