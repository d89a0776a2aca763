"""The ten datasets of the hub whose rows become samples one by one: a table says where they are and
what a row becomes (`published.toml`).

`published` makes samples as HRET does. `corrected` mends what made right answers wrong there: a row
without an answer is left out and counted instead of getting (A); options are shown with their
letters, the reference is always one of them, and the prompt says how to answer; a template and a
subset that were given are used; KUDGE's pairs come in both orders; a split that is missing gives
way to the dataset's own, with a note.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar

from evalwright.compat.hret.datasets.base import (
    BaseDataset,
    filled,
    hub_rows,
    register_dataset,
)
from evalwright.compat.hret.published import texts
from evalwright.compat.hret.settings import Given, Rows

LETTERS = "ABCDE"
HOW_TO_ANSWER = "\n\n정답으로 고른 보기의 내용을 마지막 줄에 그대로 쓰십시오."
"""Corrected mode: the end of a default prompt whose options are texts."""


@cache
def tables() -> dict[str, dict[str, Any]]:
    """What is known of each dataset, by its registry key."""
    table_by_key: dict[str, dict[str, Any]] = {
        key: dict(table) for key, table in texts()["datasets"].items()
    }
    for table in table_by_key.values():
        for exam, (first, last) in table.pop("exams", {}).items():
            table.setdefault("subsets", []).extend(
                f"{exam}_{year}" for year in range(first, last + 1)
            )
    return table_by_key


class HubDataset(BaseDataset):
    """A dataset of the table. subset: one name, several, or None for all that the table lists."""

    key: ClassVar[str]

    def __init__(
        self,
        dataset_name: str | None = None,
        subset: str | list[str] | None = None,
        split: str | None = None,
        base_prompt_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.table = table = tables()[self.key]
        split = split or table["split"]
        if table.get("only_split") and split != table["split"]:
            raise ValueError("This dataset is for evaluation only. Use 'test' split.")
        self.own_template = bool(base_prompt_template)
        template = (
            table["template"] if base_prompt_template is None else base_prompt_template
        )
        if base_prompt_template == "":
            unadorned = table.get("bare", table["template"])
            template = unadorned if unadorned or self.published else table["template"]
        super().__init__(
            dataset_name or table["hub"], split, subset, template, **kwargs
        )

    def load(self) -> Rows:
        """The samples of all subsets.

        Raises ValueError where a subset that was named cannot be read.
        """
        self.notes = []
        self.left_out = 0
        kinds = {
            "letters": self._letters,
            "texts": self._texts,
            "open": self._open,
            "judged": self._judged,
        }
        samples: Rows = []
        for subset in self._subsets():
            for number, row in enumerate(self._rows(subset)):
                row_samples = [
                    sample | self._along(row)
                    for sample in kinds[self.table["kind"]](row, number, subset)
                ]
                self.left_out += not row_samples
                samples += row_samples
        if self.left_out:
            self.notes.append(
                f"{self.left_out} rows without a valid answer were left out."
            )
        return samples

    def get_raw_samples(self) -> Any:
        """The rows as the hub has them: one table, or a list of one for each subset."""
        raw = [self._read(subset, self.split) for subset in self._subsets()]
        return raw[0] if len(raw) == 1 else raw

    def info(self) -> dict[str, Any]:
        """Name, subset, split, and `evaluation_only`; after `load`, `notes` where there is
        something to say.
        """
        about: dict[str, Any] = {
            "dataset_name": self.dataset_name,
            "subset": self.subset,
            "split": self.split,
            "description": f"{self.key}, from {self.table['hub']}.",
            "evaluation_only": self.table.get("evaluation_only"),
        }
        if "paper" in self.table:
            about["paper_url"] = self.table["paper"]
        return about | ({"notes": list(self.notes)} if self.notes else {})

    # -- which rows --

    def _subsets(self) -> Sequence[str | None]:
        if "subsets" not in self.table:
            self.refuse_subset()
            return [None]
        names = self.table["subsets"] if self.subset is None else self.subset
        names = [names] if isinstance(names, str) else list(names)
        if known_names := self.table.get("names"):
            names = [
                known_names.get(str(name).strip().lower(), str(name).strip())
                for name in names
            ]
        return names

    def _rows(self, subset: str | None) -> Iterable[Given]:
        splits = [self.split, *self.table.get("splits", ())]
        if not self.published:
            splits.append(self.table["split"])
        error: Exception | None = None
        for split in dict.fromkeys(splits):
            try:
                rows: Iterable[Given] = self._read(subset, split)
            except Exception as caught:
                error = error or caught
                if "split" not in str(caught).lower():
                    break
                continue
            if split != self.split:
                self.notes.append(
                    f"There is no split '{self.split}'; the rows are of '{split}'."
                )
            return rows
        assert error is not None
        # Exams that one version of the data lacks are passed over, unless somebody named them.
        if self.table.get("skips") and (self.published or self.subset is None):
            self.notes.append(
                f"The subset '{subset}' cannot be read and is left out: {error}"
            )
            return []
        raise error

    def _read(self, subset: str | None, split: str) -> Any:
        takes_options = (
            "subsets" in self.table or "rules" in self.table or not self.published
        )
        options = dict(self.kwargs) if takes_options else {}
        if "token" in self.table:
            options.setdefault("token", os.getenv(self.table["token"]))
        return hub_rows(self.dataset_name, subset, split, options)

    # -- what a row becomes: nothing where it has no answer --

    def _letters(self, row: Given, number: int, subset: str | None) -> Rows:
        """The letter of an option is the answer, or its number from 1 on."""
        options = [f"({letter})" for letter in LETTERS[: self.table["options"]]]
        reference = text_of(row, "answer")
        if self.table.get("counted"):
            missing = 0 if self.published and not row.get("answer") else None
            place = _place(row.get("answer"), len(options), missing)
            reference = "" if place is None else options[place]
        if not self.published and reference not in options:
            return []
        return [self._make_sample(row, subset, reference, options)]

    def _texts(self, row: Given, number: int, subset: str | None) -> Rows:
        """The options are texts: of one column, or of the columns A to E.

        The answer is one of them, its letter or its number.
        """
        answer = reference = text_of(row, self.table["answer"])
        if column := self.table.get("options"):
            options = [str(option) for option in row.get(column) or ()]
            listing = ", ".join(options)
            if not self.published:
                options = [option.strip() for option in options]
            right = options.index(answer) if answer in options else None
        else:
            letters = [letter for letter in LETTERS if row.get(letter) is not None]
            options = [text_of(row, letter) for letter in letters]
            listing = _lettered(letters, options)
            letter = answer.strip("()").upper()
            right = letters.index(letter) if letter in letters else None
            if self.table.get("counted"):
                right = _place(row.get("answer"), len(options))
                reference = "" if right is None else options[right]
        if self.published:
            return [
                self._make_sample(
                    row, subset, reference, options, **{self.table["shown"]: listing}
                )
            ]
        if right is None:
            return []
        listing = _lettered(LETTERS, options)
        sample = self._make_sample(
            row, subset, options[right], options, **{self.table["shown"]: listing}
        )
        if not self.own_template:
            sample["input"] += HOW_TO_ANSWER
        return [sample | {"answer_letter": LETTERS[right]}]

    def _open(self, row: Given, number: int, subset: str | None) -> Rows:
        """A problem whose answer is a text or a number, or one without an answer."""
        answer = "" if self.table.get("no_answer") else row.get("answer", "")
        if not self.published and not self.table.get("no_answer"):
            if answer is None or not str(answer).strip():
                return []
            answer = (
                int(answer)
                if isinstance(answer, float) and answer.is_integer()
                else answer
            )
        reference = (
            self.table.get("none", "None") if answer is None else str(answer).strip()
        )
        sample = self._make_sample(row, subset, reference)
        return [
            (
                sample | {"input": sample["input"].strip()}
                if self.table.get("stripped")
                else sample
            )
        ]

    def _judged(self, row: Given, number: int, subset: str | None) -> Rows:
        """An answer that is there already, or a pair of them; `table["rules"]` says in which
        columns.
        """
        rule = self.table["rules"][subset]
        more = {
            key: str(row[rule[key]])
            for key in ("model_a", "model_b")
            if rule.get(key) in row
        }
        sample = {
            "input": str(row.get("judge_query", "")),
            "prediction": str(row.get(rule["answer"], "")),
            "reference": str(row.get(rule["expected"], "")),
            "_subset_name": subset,
            **(
                {"model_response_b": str(row.get(rule["other"], rule["other"]))}
                if "other" in rule
                else {}
            ),
            "judge_type": rule["judge_type"],
            **more,
        }
        if self.published:
            return [sample]
        if not sample["reference"] or row.get(rule["expected"]) is None:
            return []
        sample["_cluster"] = f"{subset}-{number}"
        if "other" not in rule:
            return [sample]
        names = {more.get("model_a"): "A", more.get("model_b"): "B"}
        sample["reference"] = names.get(sample["reference"], sample["reference"])
        swapped = {
            **sample,
            "prediction": sample["model_response_b"],
            "model_response_b": sample["prediction"],
            "reference": (
                {"A": "B", "B": "A"}.get(sample["reference"], sample["reference"])
            ),
        }
        if more:
            swapped |= {
                "model_a": more.get("model_b", ""),
                "model_b": more.get("model_a", ""),
            }
        return [sample, swapped]

    def _make_sample(
        self,
        row: Given,
        subset: str | None,
        reference: str,
        options: list[str] | None = None,
        **fields_shown: str,
    ) -> dict[str, Any]:
        """A sample whose prompt is the template, filled."""
        fields = fields_shown | {
            name: text_of(row, column) for name, column in self.table["fields"].items()
        }
        if removed := self.table.get("removed"):
            first = next(iter(fields))
            fields[first] = fields[first].replace(removed, "").strip()
        lost = self.published and self.table.get("no_answer")
        try:
            prompt = filled(
                (self.table["template"] if lost else self.base_prompt_template) or "",
                fields,
            )
        except KeyError as error:
            if self.published:
                raise
            raise ValueError(
                f"The prompt template has the field {error}; it may have"
                f" {', '.join(fields)}."
            ) from None
        more = {"options": options, "_subset_name": subset}
        sample = {"input": prompt, "reference": reference}
        return sample | {
            name: value for name, value in more.items() if value is not None
        }

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


def _place(number: Any, count: int, missing: int | None = None) -> int | None:
    """The place of an answer that is counted from 1; `missing` where it is none."""
    try:
        place = int(number) - 1
    except (TypeError, ValueError):
        return missing
    return place if 0 <= place < count else missing


def _lettered(letters: Iterable[str], options: Iterable[str]) -> str:
    return "\n".join(
        f"({letter}) {text}" for letter, text in zip(letters, options, strict=False)
    )


def _make_dataset_class(key: str) -> type[HubDataset]:
    table = tables()[key]
    dataset_class = type(
        table["class"],
        (HubDataset,),
        {"key": key, "__doc__": table["about"], "__module__": __name__},
    )
    return register_dataset(key)(dataset_class)


HaeraeDataset = _make_dataset_class("haerae_bench")
KMMLUDataset = _make_dataset_class("kmmlu")


@register_dataset("click")
class ClickDataset(HubDataset):
    """CLIcK: the options and the answer are texts.

    Corrected: a subset is a part of the row's id.
    """

    key = "click"

    def refuse_subset(self) -> None:
        """A subset is a part of the rows' ids."""

    def _rows(self, subset: str | None) -> Iterable[Given]:
        rows = super()._rows(subset)
        if self.published or self.subset is None:
            return rows
        wanted_ids = [self.subset] if isinstance(self.subset, str) else self.subset
        matching_rows = [
            row
            for row in rows
            if any(
                wanted_id.lower() in str(row.get("id")).lower()
                for wanted_id in wanted_ids
            )
        ]
        if not matching_rows:
            raise ValueError(
                f"No row of CLIcK has an id with {' or '.join(map(repr, wanted_ids))}; ids"
                " are such as 'KIIP_hist_0'."
            )
        return matching_rows


HRM8KDataset = _make_dataset_class("hrm8k")
K2_EvalDataset = _make_dataset_class("k2_eval")


@register_dataset("KUDGE")
class KUDGEDataset(HubDataset):
    """KUDGE: answers that a judge is to rate or compare; the answers are in the rows.

    Corrected: each pair comes in both orders.
    """

    key = "KUDGE"

    def _subsets(self) -> Sequence[str | None]:
        if self.subset is None:
            raise ValueError("subset must be specified for KUDGE dataset")
        names = [self.subset] if isinstance(self.subset, str) else self.subset
        for name in names:
            if name not in self.table["rules"]:
                raise ValueError(f"Unknown subset: {name}")
        return names


HRCDataset = _make_dataset_class("hrc")
KBLDataset = _make_dataset_class("kbl")
KorMedMCQADataset = _make_dataset_class("kormedmcqa")
AIME2025Dataset = _make_dataset_class("aime2025")
