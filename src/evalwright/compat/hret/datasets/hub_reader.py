"""Makes samples of the rows of a dataset of the hub: what HRET's and our reading have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evalwright.compat.hret.datasets.base import hub_rows
from evalwright.compat.hret.datasets.hub import HubDataset
from evalwright.compat.hret.examples import filled
from evalwright.compat.hret.row_samples import Given, Row, Rows

LETTERS = "ABCDE"


class HubReader:
    """Reads one dataset."""

    def __init__(self, dataset: HubDataset) -> None:
        self.dataset = dataset
        self.table: Mapping[str, Any] = dataset.table
        kinds: dict[str, Callable[[Given, int, str | None], Rows]] = {
            "letters": self.letter_samples,
            "texts": self.text_samples,
            "open": self.open_samples,
            "judged": self.judged_samples,
        }
        self.samples_of = kinds[self.table["kind"]]

    def samples(self) -> Rows:
        """The samples of all subsets."""
        dataset = self.dataset
        samples: Rows = []
        for subset in dataset.subsets():
            for number, row in enumerate(self.rows(subset)):
                row_samples = [
                    sample | self._along(row)
                    for sample in self.samples_of(row, number, subset)
                ]
                dataset.left_out += not row_samples
                samples += row_samples
        if dataset.left_out:
            dataset.notes.append(
                f"{dataset.left_out} rows without a valid answer were left out."
            )
        return samples

    def raw(self) -> Any:
        """The rows as the hub has them: one table, or a list of one for each subset."""
        dataset = self.dataset
        raw = [self.read(subset, dataset.split) for subset in dataset.subsets()]
        return raw[0] if len(raw) == 1 else raw

    # -- which rows --

    def splits(self) -> Sequence[str]:
        """The splits that are tried, one after another."""
        return [self.dataset.split, *self.table.get("splits", ())]

    def passes_over(self, subset: str | None) -> bool:
        """Whether a subset that cannot be read is left out."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        """Arguments of the library that reads."""
        raise NotImplementedError

    def rows(self, subset: str | None) -> Iterable[Given]:
        """The rows of a subset."""
        dataset = self.dataset
        error: Exception | None = None
        for split in dict.fromkeys(self.splits()):
            try:
                rows: Iterable[Given] = self.read(subset, split)
            except Exception as caught:
                error = error or caught
                if "split" not in str(caught).lower():
                    break
                continue
            if split != dataset.split:
                dataset.notes.append(
                    f"There is no split '{dataset.split}'; the rows are of '{split}'."
                )
            return rows
        assert error is not None
        if not self.passes_over(subset):
            raise error
        dataset.notes.append(
            f"The subset '{subset}' cannot be read and is left out: {error}"
        )
        return []

    def read(self, subset: str | None, split: str) -> Any:
        """A split of a subset, from the hub."""
        options = self.options()
        if "token" in self.table:
            options.setdefault("token", os.getenv(self.table["token"]))
        return hub_rows(self.dataset.dataset_name, subset, split, options)

    # -- what a row becomes: nothing where it has no answer --

    def letter_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """The letter of an option is the answer, or its number from 1 on."""
        raise NotImplementedError

    def text_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """The options are texts: of one column, or of the columns A to E.

        The answer is one of them, its letter or its number.
        """
        raise NotImplementedError

    def open_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """A problem whose answer is a text or a number, or one without an answer."""
        raise NotImplementedError

    def judged_samples(self, row: Given, number: int, subset: str | None) -> Rows:
        """An answer that is there already, or a pair of them."""
        raise NotImplementedError

    # -- parts of a sample --

    def letters(self) -> list[str]:
        """The options of a dataset whose answers are letters."""
        return [f"({letter})" for letter in LETTERS[: self.table["n_options"]]]

    def options_of(self, row: Given) -> tuple[list[str], list[str]]:
        """The options of a row that has them in columns, with their letters."""
        letters = [letter for letter in LETTERS if row.get(letter) is not None]
        return letters, [text_of(row, letter) for letter in letters]

    def right_option(self, row: Given, letters: Sequence[str]) -> int | None:
        """The place of the answer among them; None where it is none."""
        if self.table.get("counted"):
            return place_of(row.get("answer"), len(letters))
        letter = text_of(row, self.table["answer"]).strip("()").upper()
        return letters.index(letter) if letter in letters else None

    def open_sample(self, row: Given, subset: str | None, answer: Any) -> Row:
        """A sample with its answer, which may be None."""
        reference = (
            self.table.get("none", "None") if answer is None else str(answer).strip()
        )
        sample = self.make_sample(row, subset, reference)
        if self.table.get("stripped"):
            sample["input"] = sample["input"].strip()
        return sample

    def judged_sample(self, row: Given, subset: str | None) -> Row:
        """A sample with the answer that is judged; `table["rules"]` says in which columns."""
        rule = self.table["rules"][subset]
        models = {
            key: str(row[rule[key]])
            for key in ("model_a", "model_b")
            if rule.get(key) in row
        }
        other_response = {}
        if "other" in rule:
            other_response["model_response_b"] = str(
                row.get(rule["other"], rule["other"])
            )
        return {
            "input": str(row.get("judge_query", "")),
            "prediction": str(row.get(rule["answer"], "")),
            "reference": str(row.get(rule["expected"], "")),
            "_subset_name": subset,
            **other_response,
            "judge_type": rule["judge_type"],
            **models,
        }

    def template(self) -> str:
        """The prompt with its fields in braces."""
        return self.dataset.base_prompt_template or ""

    def make_sample(
        self,
        row: Given,
        subset: str | None,
        reference: str,
        options: list[str] | None = None,
        **fields_shown: str,
    ) -> Row:
        """A sample whose prompt is the template, filled."""
        fields = fields_shown | {
            name: text_of(row, column) for name, column in self.table["fields"].items()
        }
        if removed := self.table.get("removed"):
            first = next(iter(fields))
            fields[first] = fields[first].replace(removed, "").strip()
        sample: Row = {"input": self.filled(fields), "reference": reference}
        if options is not None:
            sample["options"] = options
        if subset is not None:
            sample["_subset_name"] = subset
        return sample

    def filled(self, fields: Mapping[str, str]) -> str:
        """The template with these fields."""
        return filled(self.template(), fields)

    def _along(self, row: Given) -> dict[str, Any]:
        """The columns that a sample keeps."""
        also = {name: text_of(row, name) for name in self.table.get("also", ())}
        metadata_columns = self.table.get("metadata")
        if metadata_columns is None:
            return also
        return also | {
            "metadata": (
                row.get(metadata_columns)
                if isinstance(metadata_columns, str)
                else {name: row.get(name) for name in metadata_columns}
            )
        }


def text_of(row: Given, column: str) -> str:
    """A cell as text without spaces around it; nothing where it is empty."""
    value = row.get(column)
    return "" if value is None else str(value).strip()


def place_of(number: Any, count: int, missing: int | None = None) -> int | None:
    """The place of an answer that is counted from 1; `missing` where it is none."""
    try:
        place = int(number) - 1
    except (TypeError, ValueError):
        return missing
    return place if 0 <= place < count else missing


def lettered(letters: Iterable[str], options: Iterable[str]) -> str:
    return "\n".join(
        f"({letter}) {text}" for letter, text in zip(letters, options, strict=False)
    )
