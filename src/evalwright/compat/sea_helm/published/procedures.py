"""LongProc's procedures and tables, as published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalwright import Score
from evalwright.compat.sea_helm.config import NULL, Row
from evalwright.compat.sea_helm.published.scoring import (
    Numbers,
    PublishedScoring,
    SeaHelmRaised,
)
from evalwright.scorers import procedure

if TYPE_CHECKING:
    from evalwright import Column


class Procedures(PublishedScoring):
    """LongProc: the share of right results, and how far the procedure agrees. kind (in the table):
    as of the scorer `procedure`.
    """

    def row_score(self, row: Row, text: str) -> Score:
        try:
            right, partly, extracted = procedure.worth(
                self.entry["kind"], row["label"], text, published=True
            )
        except procedure.PublishedFailure as error:
            raise SeaHelmRaised(str(error)) from None
        parts = {
            self.part: partly,
            "right": right,
            "extracted": float(extracted is not None),
        }
        return Score(
            partly, "" if extracted is not None else NULL, extracted or "", parts
        )

    def more(self, column: Column) -> Numbers:
        if (
            self.entry["kind"] == "route"
            and len(set(self.part_values(column, "extracted"))) == 2
        ):
            raise SeaHelmRaised(
                "AttributeError: 'float' object has no attribute 'strip'"
            )
        return {}


class Tables(Procedures):
    """Precision, recall and F1 of the rows of tables, and how many could not be read."""

    def row_score(self, row: Row, text: str) -> Score:
        extracted = procedure.inside("```tsv", "```", text, True)
        precision, recall, f1, error = procedure.table(
            str(row["label"]), extracted, True
        )
        parts = {
            self.part: f1,
            "precision": precision,
            "recall": recall,
            "error": float(bool(error)),
        }
        return Score(f1, error, extracted or "", parts)
