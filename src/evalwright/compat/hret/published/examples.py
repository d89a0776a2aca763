"""HRET's examples: the first rows of the named split, else of the evaluated one."""

from __future__ import annotations

import logging

from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.row_samples import Rows

log = logging.getLogger("evalwright.hret")


def first_examples(rows: Rows, few_shot: FewShot) -> Shots:
    """The rows to evaluate lack the first ones even where no examples were made."""
    source = few_shot.source or few_shot.split
    try:
        text = few_shot.text(few_shot.load(source)[: few_shot.n], padded=True)
    except Exception as error:
        log.error("No examples could be made of the split '%s': %s", source, error)
        text = ""
    if few_shot.source is None or few_shot.source == few_shot.split:
        rows = rows[few_shot.n :]
    if not text:
        return Shots(rows)
    return Shots(rows, lambda row: text, few_shot.source, few_shot.n)
