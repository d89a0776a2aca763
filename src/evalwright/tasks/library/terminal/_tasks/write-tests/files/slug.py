"""Parts of addresses from titles."""

import unicodedata


def slug(title, most=40):
    """Return the part of an address for a title.

    - Letters become lower case and lose their accents; digits stay.
    - What is neither an ASCII letter nor a digit is a gap; each run of gaps is one hyphen.
    - There is no hyphen at the beginning or the end.
    - At most `most` characters are kept, and no hyphen is left at the end by that.
    - A title without any letter or digit gives "untitled".
    - A `most` below 1 raises ValueError.
    """
    if most < 1:
        raise ValueError("most is at least 1")
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = "".join(sign if sign.isalnum() else " " for sign in plain).split()
    return "-".join(words)[:most].rstrip("-") or "untitled"
