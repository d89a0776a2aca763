"""Numbers in text: digits and words, with separators, signs, magnitudes and units, and when two of them agree."""
