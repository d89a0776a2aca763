"""The ten datasets of the hub whose rows become samples one by one: a table says where they are, a class what a row becomes.

`published` makes samples as HRET does. `corrected` mends what made right answers wrong there: a row without an answer is left out and counted
instead of getting (A); options are shown with their letters, the reference is always one of them, and the prompt says how to answer; a template
and a subset that were given are used; KUDGE's pairs come in both orders; a split that is missing gives way to the dataset's own, with a note.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from evalwright.compat.hret.datasets.base import BaseDataset, filled, hub_rows, register_dataset
from evalwright.compat.hret.published import texts

LETTERS = "ABCDE"
HOW_TO_ANSWER = "\n\n정답으로 고른 보기의 내용을 마지막 줄에 그대로 쓰십시오."
"""Corrected mode: the end of a default prompt whose options are texts."""


@cache
def tables() -> dict[str, dict[str, Any]]:
    """What is known of each dataset, by its registry key."""
    found: dict[str, dict[str, Any]] = {key: dict(table) for key, table in texts()["datasets"].items()}
    for table in found.values():
        for exam, (first, last) in table.pop("exams", {}).items():
            table.setdefault("subsets", []).extend(f"{exam}_{year}" for year in range(first, last + 1))
    return found


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
        self.table = tables()[self.key]
        split = split or self.table["split"]
        if self.table.get("only_split") and split != self.table["split"]:
            raise ValueError("This dataset is for evaluation only. Use 'test' split.")
        super().__init__(dataset_name or self.table["hub"], split, subset, base_prompt_template, **kwargs)
        self.own_template = bool(base_prompt_template)
        if base_prompt_template is None:
            self.base_prompt_template = self.table["template"]
        elif not base_prompt_template:
            bare = self.table.get("bare", self.table["template"])
            self.base_prompt_template = bare if bare or self.published else self.table["template"]

    def load(self) -> list[dict[str, Any]]:
        """The samples of all subsets. Raises ValueError where a subset that was named cannot be read."""
        self.notes, self.left_out = [], 0
        samples: list[dict[str, Any]] = []
        for subset in self._subsets():
            for number, row in enumerate(self._rows(subset)):
                made = self._samples(row, number, subset)
                self.left_out += not made
                samples += made
        if self.left_out:
            self.notes.append(f"{self.left_out} rows without a valid answer were left out.")
        return samples

    def get_raw_samples(self) -> Any:
        """The rows as the hub has them: one table, or a list of one for each subset."""
        raw = [self._read(subset, self.split) for subset in self._subsets()]
        return raw[0] if len(raw) == 1 else raw

    def info(self) -> dict[str, Any]:
        """Name, subset, split, and `evaluation_only`; after `load`, `notes` where there is something to say."""
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

    def _subsets(self) -> Sequence[str | None]:
        if "subsets" not in self.table:
            self.refuse_subset()
            return [None]
        names = self.table["subsets"] if self.subset is None else self.subset
        return [names] if isinstance(names, str) else list(names)

    def _rows(self, subset: str | None) -> Iterable[Mapping[str, Any]]:
        splits = [self.split, *self.table.get("splits", ())]
        if not self.published and self.table["split"] not in splits:
            splits.append(self.table["split"])
        error: Exception | None = None
        for split in dict.fromkeys(splits):
            try:
                rows = self._read(subset, split)
            except Exception as caught:
                error = error or caught
                if "split" not in str(caught).lower():
                    break
                continue
            if split != self.split:
                self.notes.append(f"There is no split '{self.split}'; the rows are of '{split}'.")
            return rows  # type: ignore[no-any-return]
        assert error is not None
        # Exams that one version of the data lacks are passed over, unless somebody named them.
        if self.table.get("skips") and (self.published or self.subset is None):
            self.notes.append(f"The subset '{subset}' cannot be read and is left out: {error}")
            return []
        raise error

    def _read(self, subset: str | None, split: str) -> Any:
        options = dict(self.kwargs) if "subsets" in self.table or not self.published else {}
        if "token" in self.table:
            options.setdefault("token", os.getenv(self.table["token"]))
        return hub_rows(self.dataset_name, subset, split, options)

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        """What a row becomes; nothing where it has no answer."""
        raise NotImplementedError

    def _filled(self, **fields: str) -> str:
        try:
            return filled(self.base_prompt_template or "", fields)
        except KeyError as error:
            if self.published:
                raise
            raise ValueError(
                f"The prompt template has the field {error}; it may have {', '.join(fields)}."
            ) from None

    def _made(
        self, subset: str | None, reference: str, options: list[str] | None = None, **fields: str
    ) -> dict[str, Any]:
        """A sample whose prompt is the template with these fields."""
        sample = {"input": self._filled(**fields), "reference": reference}
        more = {"options": options, "_subset_name": subset}
        return sample | {name: value for name, value in more.items() if value is not None}

    def _of_texts(
        self,
        subset: str | None,
        texts: list[str],
        right: int | None,
        published: tuple[str, str],
        field: str,
        **fields: str,
    ) -> list[dict[str, Any]]:
        """A question whose options are texts. right: the place of the answer. published: HRET's reference and how it shows the options."""
        if self.published:
            return [self._made(subset, published[0], texts, **{field: published[1]}, **fields)]
        if right is None:
            return []
        shown = "\n".join(f"({letter}) {text}" for letter, text in zip(LETTERS, texts, strict=False))
        sample = self._made(subset, texts[right], texts, **{field: shown}, **fields)
        if not self.own_template:
            sample["input"] += HOW_TO_ANSWER
        return [sample | {"answer_letter": LETTERS[right]}]


def text_of(row: Mapping[str, Any], column: str) -> str:
    """A cell as text without spaces around it; nothing where it is empty."""
    value = row.get(column)
    return "" if value is None else str(value).strip()


def _place(number: Any, count: int) -> int | None:
    """The place of an answer that is counted from 1, or None where it is none."""
    try:
        place = int(number) - 1
    except (TypeError, ValueError):
        return None
    return place if 0 <= place < count else None


def _lettered(row: Mapping[str, Any]) -> tuple[list[str], list[str], str]:
    """The letters of the columns A to E that have an option, the options, and both as lines."""
    letters = [letter for letter in LETTERS if row.get(letter) is not None]
    texts = [text_of(row, letter) for letter in letters]
    shown = "\n".join(f"({letter}) {text}" for letter, text in zip(letters, texts, strict=True))
    return letters, texts, shown


@register_dataset("haerae_bench")
class HaeraeDataset(HubDataset):
    """HAE-RAE Bench: five options, the letter is the answer."""

    key = "haerae_bench"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        reference = text_of(row, "answer")
        options = [f"({letter})" for letter in LETTERS]
        if not self.published and reference not in options:
            return []
        query = text_of(row, "query").replace(self.table["removed"], "").strip()
        return [self._made(subset, reference, options, query=query)]


@register_dataset("kmmlu")
class KMMLUDataset(HubDataset):
    """KMMLU: four options, the answer is counted from 1."""

    key = "kmmlu"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        options = [f"({letter})" for letter in LETTERS[:4]]
        right = _place(row.get("answer"), 4)
        if right is None and not self.published:
            return []
        if right is None and not row.get("answer"):
            right = 0
        fields = {f"choice_{letter}": text_of(row, letter) for letter in LETTERS[:4]}
        question = text_of(row, "question").replace(self.table["removed"], "").strip()
        reference = "" if right is None else options[right]
        return [self._made(subset, reference, options, question=question, **fields)]


@register_dataset("click")
class ClickDataset(HubDataset):
    """CLIcK: the options and the answer are texts. Corrected: a subset is a part of the row's id."""

    key = "click"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        texts = [str(choice) for choice in row.get("choices") or ()]
        paragraph, question, answer = (text_of(row, name) for name in ("paragraph", "question", "answer"))
        published = answer, ", ".join(texts)
        if not self.published:
            texts = [text.strip() for text in texts]
        right = texts.index(answer) if answer in texts else None
        return self._of_texts(
            None, texts, right, published, "choices", paragraph=paragraph, question=question
        )

    def refuse_subset(self) -> None:
        """A subset is a part of the rows' ids."""

    def _rows(self, subset: str | None) -> Iterable[Mapping[str, Any]]:
        rows = super()._rows(subset)
        if self.published or self.subset is None:
            return rows
        wanted = [self.subset] if isinstance(self.subset, str) else self.subset
        kept = [row for row in rows if any(one.lower() in str(row.get("id")).lower() for one in wanted)]
        if not kept:
            raise ValueError(
                f"No row of CLIcK has an id with {' or '.join(map(repr, wanted))}; ids are such as 'KIIP_hist_0'."
            )
        return kept


@register_dataset("hrm8k")
class HRM8KDataset(HubDataset):
    """HRM8K: problems with a number as the answer."""

    key = "hrm8k"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        answer = row.get("answer", "")
        if not self.published:
            if answer is None or not str(answer).strip():
                return []
            if isinstance(answer, float) and answer.is_integer():
                answer = int(answer)
        sample = self._made(subset, str(answer).strip(), question=text_of(row, "question"))
        return [sample | {"input": sample["input"].strip()}]


@register_dataset("k2_eval")
class K2_EvalDataset(HubDataset):
    """K2-Eval: instructions without a reference, for a judge."""

    key = "k2_eval"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        instruction, subject, ability = (text_of(row, name) for name in ("instruction", "subject", "ability"))
        sample = self._made(subset, "", instruction=instruction)
        if self.published:
            sample["input"] = instruction
        return [sample | {"subject": subject, "ability": ability}]


@register_dataset("KUDGE")
class KUDGEDataset(HubDataset):
    """KUDGE: answers that a judge is to rate or compare; the answers are in the rows. Corrected: each pair comes in both orders."""

    key = "KUDGE"

    def _subsets(self) -> Sequence[str | None]:
        if self.subset is None:
            raise ValueError("subset must be specified for KUDGE dataset")
        names = [self.subset] if isinstance(self.subset, str) else self.subset
        for name in names:
            if name not in self.table["rules"]:
                raise ValueError(f"Unknown subset: {name}")
        return names

    def _read(self, subset: str | None, split: str) -> Any:
        return hub_rows(self.dataset_name, subset, split, self.kwargs)

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        rule = self.table["rules"][subset]
        more = {key: str(row[rule[key]]) for key in ("model_a", "model_b") if rule.get(key) in row}
        sample = {
            "input": str(row.get("judge_query", "")),
            "prediction": str(row.get(rule["answer"], "")),
            "reference": str(row.get(rule["expected"], "")),
            "_subset_name": subset,
            **({"model_response_b": str(row.get(rule["other"], rule["other"]))} if "other" in rule else {}),
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
            "reference": {"A": "B", "B": "A"}.get(sample["reference"], sample["reference"]),
        }
        if more:
            swapped |= {"model_a": more.get("model_b", ""), "model_b": more.get("model_a", "")}
        return [sample, swapped]


@register_dataset("hrc")
class HRCDataset(HubDataset):
    """HRC: problems with a short answer, from several sources."""

    key = "hrc"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        answer = str(row.get("answer", "")).strip()
        if not self.published and (not answer or row.get("answer") is None):
            return []
        about = {"source": row.get("source"), "category": row.get("category")}
        return [self._made(subset, answer, input=text_of(row, "question")) | {"metadata": about}]


@register_dataset("kbl")
class KBLDataset(HubDataset):
    """KBL: bar examinations. Published: the reference is the letter, the options are texts. Corrected: it is the text of that letter."""

    key = "kbl"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        letters, texts, shown = _lettered(row)
        gold = text_of(row, "gt")
        letter = gold.strip("()").upper()
        right = letters.index(letter) if letter in letters else None
        made = self._of_texts(
            subset, texts, right, (gold, shown), "choices", question=text_of(row, "question")
        )
        return [sample | {"metadata": row.get("meta")} for sample in made]


@register_dataset("kormedmcqa")
class KorMedMCQADataset(HubDataset):
    """KorMedMCQA: licensing examinations; the answer is counted from 1 and becomes the option's text."""

    key = "kormedmcqa"

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        _, texts, shown = _lettered(row)
        right = _place(row.get("answer"), len(texts))
        published = "" if right is None else texts[right], shown
        made = self._of_texts(
            subset, texts, right, published, "choices_str", question=text_of(row, "question")
        )
        return [sample | {"metadata": {"cot": row.get("cot")}} for sample in made]


@register_dataset("aime2025")
class AIME2025Dataset(HubDataset):
    """AIME 2025: both examinations; `I`, `II`, `1` and `2` name them too."""

    key = "aime2025"

    def _subsets(self) -> Sequence[str | None]:
        names = [str(name).strip() for name in super()._subsets()]
        return [self.table["names"].get(name.lower(), name) for name in names]

    def _samples(self, row: Mapping[str, Any], number: int, subset: str | None) -> list[dict[str, Any]]:
        answer = text_of(row, "answer")
        if not self.published and not answer:
            return []
        return [self._made(subset, answer, question=text_of(row, "question"))]
