"""Samples of the hub's datasets, with what made right answers wrong in HRET mended.

A row without an answer is left out and counted; options are shown with their letters, the reference
is always one of them, and the prompt says how to answer; a template and a subset that were given
are used; KUDGE's pairs come in both orders; a split that is missing gives way to the dataset's own,
with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalwright.compat.hret.datasets.hub_reader import (
    LETTERS,
    HubReader,
    lettered,
    place_of,
    text_of,
)
from evalwright.compat.hret.row_samples import Given, Rows

HOW_TO_ANSWER = "\n\n정답으로 고른 보기의 내용을 마지막 줄에 그대로 쓰십시오."
"""The end of a default prompt whose options are texts."""


class CorrectedHubReader(HubReader):
    """Every sample has a valid answer."""

    def splits(self) -> Sequence[str]:
        """The dataset's own one at last."""
        return [*super().splits(), self.table["split"]]

    def passes_over(self, subset: str | None) -> bool:
        """Exams that one version of the data lacks, unless somebody named them."""
        return bool(self.table.get("skips")) and self.dataset.subset is None

    def options(self) -> dict[str, Any]:
        """Those of the call."""
        return dict(self.dataset.kwargs)

    def rows(self, subset: str | None) -> Iterable[Given]:
        """Those that a subset means."""
        return self.dataset.selected(super().rows(subset))

    def letter_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """Nothing for a row without one of the letters."""
        options = self.letters()
        reference = text_of(row, "answer")
        if self.table.get("counted"):
            place = place_of(row.get("answer"), len(options))
            reference = "" if place is None else options[place]
        if reference not in options:
            return []
        return [self.make_sample(row, subset, reference, options)]

    def text_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """The reference is the text of an option, the options have letters."""
        if column := self.table.get("options"):
            answer = text_of(row, self.table["answer"])
            options = [str(option).strip() for option in row.get(column) or ()]
            right = options.index(answer) if answer in options else None
        else:
            letters, options = self.options_of(row)
            right = self.right_option(row, letters)
        if right is None:
            return []
        listed_options = {self.table["shown"]: lettered(LETTERS, options)}
        sample = self.make_sample(
            row, subset, options[right], options, **listed_options
        )
        if not self.dataset.own_template:
            sample["input"] += HOW_TO_ANSWER
        return [sample | {"answer_letter": LETTERS[right]}]

    def open_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """Nothing for a row that lacks its answer; a whole number has no decimals."""
        if self.table.get("no_answer"):
            return [self.open_sample(row, subset, "")]
        answer = row.get("answer", "")
        if answer is None or not str(answer).strip():
            return []
        if isinstance(answer, float) and answer.is_integer():
            answer = int(answer)
        return [self.open_sample(row, subset, answer)]

    def judged_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """A pair in both orders, which are one cluster."""
        rule = self.table["rules"][subset]
        sample = self.judged_sample(row, subset)
        if not sample["reference"] or row.get(rule["expected"]) is None:
            return []
        sample["_cluster"] = f"{subset}-{number}"
        if "other" not in rule:
            return [sample]
        names = {sample.get("model_a"): "A", sample.get("model_b"): "B"}
        sample["reference"] = names.get(sample["reference"], sample["reference"])
        swapped = {
            **sample,
            "prediction": sample["model_response_b"],
            "model_response_b": sample["prediction"],
            "reference": (
                {"A": "B", "B": "A"}.get(sample["reference"], sample["reference"])
            ),
        }
        if sample.keys() & {"model_a", "model_b"}:
            swapped |= {
                "model_a": sample.get("model_b", ""),
                "model_b": sample.get("model_a", ""),
            }
        return [sample, swapped]

    def template(self) -> str:
        """HRET's, where none is given."""
        return super().template() or str(self.table["template"])

    def filled(self, fields: Mapping[str, str]) -> str:
        """Raises ValueError for a field that there is not."""
        try:
            return super().filled(fields)
        except KeyError as error:
            raise ValueError(
                f"The prompt template has the field {error}; it may have"
                f" {', '.join(fields)}."
            ) from None
