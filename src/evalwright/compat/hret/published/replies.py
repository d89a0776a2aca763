"""What HRET reads in a reply: the answer behind a marker, and its language."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from evalwright.compat.hret.markers import markers
from evalwright.extend import MissingExtra


@cache
def _marker() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(markers())})\s*(.+)", re.IGNORECASE | re.DOTALL)


def final_answer(text: str) -> str:
    """Everything behind the first marker, also behind one inside of a word; without a marker the
    whole text.
    """
    match = _marker().search(text)
    return match[1].strip() if match else text


def detected(text: object, language: str) -> float:
    """1 where langdetect gives the language (with the seed 0), else 0; 0 for what is no text, or
    has no letters.

    Raises MissingExtra.
    """
    detector = _detectors().create()
    try:
        detector.append(text)
        return float(detector.detect() == language)
    except Exception:
        return 0.0


@cache
def _detectors() -> Any:
    try:
        from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory
    except ImportError:
        raise MissingExtra(
            "HRET's published language penalty", "hret-published", "langdetect"
        ) from None
    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.seed = 0
    return factory
