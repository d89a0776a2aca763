"""OneRuler's lists of numbers and words, as published."""

from __future__ import annotations

from evalwright import Score
from evalwright.compat.sea_helm.published.scoring import PublishedScoring
from evalwright.compat.sea_helm.sea_task import Row


class Found(PublishedScoring):
    """Which share of what was asked for is named, and whether it is all of it. of_words (in the
    table): words, else numbers.
    """

    def row_score(self, row: Row, text: str) -> Score:
        """What stands from the first answer tag to the last closing one, split at commas.

        No answer is the answer "None", and more costs nothing.
        """
        tag = self.task.answer_tag
        of_words = self.entry.get("of_words")
        before, closed, _ = text[text.find(tag) + len(tag) :].rpartition("</")
        extracted = before.strip() if tag in text and closed else "None"
        wanted_answers = {
            label.strip().lower() if of_words else label for label in row["label"]
        }
        given_answers = {label.strip().lower() for label in extracted.split(",")}
        share = (
            len(wanted_answers & given_answers) / len(wanted_answers)
            if wanted_answers
            else 0.0
        )
        strict = float(share == 1)
        parts = {self.part: strict, "normalized_accuracy": share}
        return Score(strict, "correct" if strict else "incorrect", extracted, parts)
