"""What HHEM-2.3 is given of a text by its makers' leaderboard: white space and punctuation put in order."""

from __future__ import annotations

import re
from string import punctuation

_SPACE = re.compile(r"\s+")
_BEFORE_PUNCTUATION = re.compile(r"\s([.,!?])")


def clean_text(text: str) -> str:
    """Runs of white space as one space, none before `.,!?`, none at the ends, and a full stop where no punctuation ends it."""
    text = _BEFORE_PUNCTUATION.sub(r"\1", _SPACE.sub(" ", text.strip()))
    return text if text and text[-1] in punctuation else f"{text}."
