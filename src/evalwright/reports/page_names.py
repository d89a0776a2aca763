"""Names for the pages of models, that every file system takes and no two models share, whatever the models are called."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

_LONGEST = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows keeps for devices, with any ending."""


def page_names(labels: Sequence[str], runs: Sequence[str]) -> list[str]:
    """A file name for each model: lower-case ASCII letters, digits, dots and dashes, ending in ".html".

    labels: what the models are called, from anybody; runs: their runs' names. The name of one model does not depend on the order of
    the board: those that would be equal get a mark made of label and run. Two equal ones of both are told apart by a number.
    """
    plain = [_plain(label) for label in labels]
    counts = Counter(plain)
    seen: Counter[str] = Counter()
    out = []
    for label, run, name in zip(labels, runs, plain, strict=True):
        unsure = (
            counts[name] > 1
            or not name
            or len(name) > _LONGEST
            or _DEVICES.fullmatch(name)
            or name == "index"
        )
        if unsure:
            mark = hashlib.sha256(f"{label}\0{run}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
            name = f"{name[:_LONGEST].strip('.-') or 'model'}-{mark}"
            name = f"model-{name}" if _DEVICES.fullmatch(name) else name
        seen[name] += 1
        out.append(f"{name}.html" if seen[name] == 1 else f"{name}-{seen[name]}.html")
    return out


def _plain(label: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    dashed = re.sub(r"[^a-z0-9.]+", "-", ascii_only.lower())
    return re.sub(r"\.{2,}", ".", dashed).strip(".-")
