"""The ten datasets of the hub whose rows become samples one by one. Where they are and what they
hold is said by our task of the same benchmark; a table (`tables.toml`) adds HRET's prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, ClassVar

from evalwright.compat.hret.datasets.base import BaseDataset, register_dataset
from evalwright.compat.hret.row_samples import Given, Rows
from evalwright.compat.hret.tables import tables
from evalwright.extend import task_definition


@cache
def definition_of(task: str) -> Given:
    """Our definition of a benchmark, which says where its rows are."""
    return task_definition(task)


@cache
def facts_of(key: str) -> Given:
    """What is known of a dataset, by its registry key."""
    table: dict[str, Any] = dict(tables()["datasets"][key])
    definition = definition_of(table["task"])
    source = definition["dataset"]
    facts = {"hub": source["hub"], "split": source["split"]}
    config = source.get("config")
    if config and "rules" not in table:
        facts["subsets"] = [config] if isinstance(config, str) else config
    choices = definition["sample"].get("choices")
    if table["kind"] == "letters":
        facts["n_options"] = len(choices)
    return {**facts, **table}


class HubDataset(BaseDataset):
    """A dataset of the table. subset: one name, several, or None for all that there are."""

    key: ClassVar[str]

    def __init__(
        self,
        dataset_name: str | None = None,
        subset: str | list[str] | None = None,
        split: str | None = None,
        base_prompt_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.table = table = facts_of(self.key)
        split = split or table["split"]
        if table.get("only_split") and split != table["split"]:
            raise ValueError("This dataset is for evaluation only. Use 'test' split.")
        self.own_template = bool(base_prompt_template)
        template = (
            table["template"] if base_prompt_template is None else base_prompt_template
        )
        if base_prompt_template == "":
            template = table.get("bare", table["template"])
        super().__init__(
            dataset_name or table["hub"], split, subset, template, **kwargs
        )

    def load(self) -> Rows:
        """The samples of all subsets.

        Raises ValueError where a subset that was named cannot be read.
        """
        self.notes = []
        self.left_out = 0
        return self.rules.reader(self).samples()

    def get_raw_samples(self) -> Any:
        """The rows as the hub has them: one table, or a list of one for each subset."""
        return self.rules.reader(self).raw()

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

    def subsets(self) -> Sequence[str | None]:
        """Those that are read, [None] for data without any."""
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

    def selected(self, rows: Iterable[Given]) -> Iterable[Given]:
        """The rows of a table without subsets that a subset means."""
        return rows


def _make_dataset_class(key: str) -> type[HubDataset]:
    table = tables()["datasets"][key]
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

    def selected(self, rows: Iterable[Given]) -> Iterable[Given]:
        """Those whose ids have the subset in them."""
        if self.subset is None:
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

    def subsets(self) -> Sequence[str | None]:
        """Those that are named."""
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
