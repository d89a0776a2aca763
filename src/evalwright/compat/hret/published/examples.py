"""HRET's examples: the first rows of the named split, else of the evaluated one."""

from __future__ import annotations

import logging

from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.row_samples import Rows

log = logging.getLogger("evalwright.hret")


def first_examples(rows: Rows, wanted: FewShot) -> Shots:
    """The rows to evaluate lack the first ones even where no examples were made."""
    source = wanted.source or wanted.split
    try:
        text = wanted.text(wanted.load(source)[: wanted.n], padded=True)
    except Exception as error:
        log.error("No examples could be made of the split '%s': %s", source, error)
        text = ""
    if wanted.source is None or wanted.source == wanted.split:
        rows = rows[wanted.n :]
    if not text:
        return Shots(rows)
    return Shots(rows, lambda row: text, wanted.source, wanted.n)
