"""Samples of the hub's datasets as HRET makes them."""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret.datasets.hub_reader import (
    HubReader,
    lettered,
    place_of,
    text_of,
)
from evalwright.compat.hret.row_samples import Given, Rows


class PublishedHubReader(HubReader):
    """A row without an answer gets (A); options are listed as HRET lists them."""

    def passes_over(self, subset: str | None) -> bool:
        """Exams that one version of the data lacks."""
        return bool(self.table.get("skips"))

    def options(self) -> dict[str, Any]:
        """Those of the call, for data with subsets."""
        has_subsets = "subsets" in self.table or "rules" in self.table
        return dict(self.dataset.kwargs) if has_subsets else {}

    def letter_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """An empty answer is the first option."""
        options = self.letters()
        reference = text_of(row, "answer")
        if self.table.get("counted"):
            missing = None if row.get("answer") else 0
            place = place_of(row.get("answer"), len(options), missing)
            reference = "" if place is None else options[place]
        return [self.make_sample(row, subset, reference, options)]

    def text_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """The reference is what the column holds, a letter where it has one."""
        reference = text_of(row, self.table["answer"])
        if column := self.table.get("options"):
            options = [str(option) for option in row.get(column) or ()]
            listing = ", ".join(options)
        else:
            letters, options = self.options_of(row)
            listing = lettered(letters, options)
            if self.table.get("counted"):
                place = self.right_option(row, letters)
                reference = "" if place is None else options[place]
        listed_options = {self.table["shown"]: listing}
        return [self.make_sample(row, subset, reference, options, **listed_options)]

    def open_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """What is no answer is the text "None"."""
        answer = "" if self.table.get("no_answer") else row.get("answer", "")
        return [self.open_sample(row, subset, answer)]

    def judged_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """Each pair in one order."""
        return [self.judged_sample(row, subset)]

    def template(self) -> str:
        """A template of one's own is lost where there is no answer."""
        if self.table.get("no_answer"):
            return str(self.table["template"])
        return super().template()
