"""The twelve dataset classes: each defect of the data part is mended in corrected mode;
published samples are those of the recorded runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.hret import datasets as hret

datasets = pytest.importorskip("datasets")


class Hub:
    """Stands in for `datasets.load_dataset`: tables by repository, subset and split; errors in
    the library's words.
    """

    def __init__(self, tables: Mapping[str, Any], *, streams: bool = False) -> None:
        self.tables = tables
        self.streams = streams
        self.calls: list[dict[str, Any]] = []

    def __call__(
        self, path: str, name: str | None = None, *, split: str, **options: Any
    ) -> Any:
        self.calls.append({"path": path, "name": name, "split": split, **options})
        if (
            unknown := set(options)
            - {"revision", "token"}
            - ({"streaming"} if self.streams else set())
        ):
            raise ValueError(
                f"BuilderConfig ParquetConfig(name='{name}') doesn't have a '{min(unknown)}' key."
            )
        subsets = self.tables.get(path, {})
        found = subsets.get(name or "default")
        if found is None:
            raise ValueError(
                f"BuilderConfig '{name}' not found. Available: {sorted(subsets)}"
            )
        if split not in found:
            raise ValueError(
                f'Unknown split "{split}". Should be one of {sorted(found)}.'
            )
        rows = found[split]
        return iter(rows) if options.get("streaming") else rows


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives rows to `load_dataset` and returns the stand-in."""

    def give(tables: Mapping[str, Any], **options: Any) -> Hub:
        stand_in = Hub(tables, **options)
        monkeypatch.setattr(datasets, "load_dataset", stand_in)
        return stand_in

    return give


def loaded(key: str, mode: str = "corrected", **arguments: Any) -> list[dict[str, Any]]:
    dataset = hret.load_datasets(key, **{"split": "test", **arguments})
    dataset.scoring = mode
    samples: list[dict[str, Any]] = dataset.load()
    return samples


# -- what corrected mode mends
# ------------------------------------------------------------------------------------------

MC = {
    "question": "대한민국의 수도는?",
    "A": "부산",
    "B": "서울",
    "C": "인천",
    "D": "대구",
}


def one_split(
    repository: str, rows: Any, subset: str = "default", split: str = "test"
) -> dict[str, Any]:
    return {repository: {subset: {split: rows}}}


def test_kmmlu_missing_answer_becomes_a(hub: Any) -> None:
    rows = [{**MC, "answer": 2}, {**MC, "answer": None}, {**MC, "answer": 9}]
    hub(one_split("HAERAE-HUB/KMMLU", rows, "Law"))
    published = loaded("kmmlu", "published", subset="Law")
    assert [sample["reference"] for sample in published] == ["(B)", "(A)", ""]
    dataset = hret.load_datasets("kmmlu", subset="Law")
    assert [sample["reference"] for sample in dataset.load()] == ["(B)"]
    assert dataset.left_out == 2 and "2 rows" in dataset.info()["notes"][0]


def test_kbl_reference_is_a_letter_among_texts(hub: Any) -> None:
    row = {**MC, "E": None, "gt": "B", "meta": {"year": 2012}}
    hub(one_split("lbox/kbl", [row], "bar_exam_civil_2012"))
    for mode, reference in (("published", "B"), ("corrected", "서울")):
        (sample,) = loaded("kbl", mode, subset="bar_exam_civil_2012")
        assert (sample["reference"], sample["reference"] in sample["options"]) == (
            reference,
            mode == "corrected",
        )
        assert sample["metadata"] == {"year": 2012}


@pytest.mark.parametrize("key", ["click", "kormedmcqa", "kbl"])
def test_nothing_says_how_options_are_answered(hub: Any, key: str) -> None:
    rows = {
        "click": ("EunsuKim/CLIcK", {"id": "KIIP_1", "paragraph": "", "question": MC["question"], "choices": ["부산", "서울"], "answer": "서울"}),
        "kormedmcqa": ("sean0042/KorMedMCQA", {**MC, "answer": 2}),
        "kbl": ("lbox/kbl", {**MC, "gt": "B"}),
    }  # fmt: skip
    repository, row = rows[key]
    hub(one_split(repository, [row], "default" if key == "click" else "one"))
    more = {} if key == "click" else {"subset": "one"}
    (published,) = loaded(key, "published", **more)
    (corrected,) = loaded(key, **more)
    assert (
        "그대로 쓰십시오" in corrected["input"]
        and "그대로 쓰십시오" not in published["input"]
    )
    assert "(B) 서울" in corrected["input"] and corrected["answer_letter"] == "B"
    # A template of the caller's own is the whole prompt.
    template = {
        "click": "{question} {choices}",
        "kormedmcqa": "{question}{choices_str}",
        "kbl": "{question}{choices}",
    }
    (own,) = loaded(key, base_prompt_template=template[key], **more)
    assert "그대로 쓰십시오" not in own["input"] and "(B) 서울" in own["input"]


def test_click_ignores_subset_and_arguments(hub: Any) -> None:
    rows = [
        {
            "id": f"KIIP_{part}_1",
            "paragraph": "",
            "question": "물음",
            "choices": ["가", "나"],
            "answer": "가",
        }
        for part in ("history", "law")
    ]
    stand_in = hub(one_split("EunsuKim/CLIcK", rows, split="train"))
    assert (
        len(loaded("click", "published", split="train", subset="history", revision="x"))
        == 2
    )
    assert len(loaded("click", split="train", subset="history", revision="x")) == 1
    assert [call.get("revision") for call in stand_in.calls] == [None, "x"]
    with pytest.raises(ValueError, match="No row of CLIcK has an id with 'music'"):
        loaded("click", split="train", subset="music")


def test_k2_eval_template_is_lost(hub: Any) -> None:
    hub(
        one_split(
            "HAERAE-HUB/K2-Eval",
            [{"instruction": "쓰시오.", "subject": "역사", "ability": "설명"}],
            "generation",
        )
    )
    published, corrected = (
        loaded("k2_eval", mode, base_prompt_template="지시: {instruction}")[0]["input"]
        for mode in ("published", "corrected")
    )
    assert (published, corrected) == ("쓰시오.", "지시: 쓰시오.")


def test_kudge_pairs_always_have_the_chosen_answer_first(hub: Any) -> None:
    pair = {"judge_query": "물음", "chosen_response": "좋음", "rejected_response": "나쁨", "chosen_model": "x", "rejected_model": "y"}  # fmt: skip
    hub(
        one_split(
            "HAERAE-HUB/KUDGE",
            [{**pair, "winner": "A"}, {**pair, "winner": "x"}],
            "Pairwise",
        )
    )
    assert [
        sample["prediction"]
        for sample in loaded("KUDGE", "published", subset="Pairwise")
    ] == [
        "좋음",
        "좋음",
    ]
    samples = loaded("KUDGE", subset="Pairwise")
    assert [
        (one["prediction"], one["model_response_b"], one["reference"])
        for one in samples
    ] == [
        ("좋음", "나쁨", "A"),
        ("나쁨", "좋음", "B"),
    ] * 2
    assert [one["_cluster"] for one in samples] == ["Pairwise-0"] * 2 + [
        "Pairwise-1"
    ] * 2
    assert (samples[1]["model_a"], samples[1]["model_b"]) == ("y", "x")


def test_kudge_refuses_a_list_of_subsets(hub: Any) -> None:
    tables = {
        "HAERAE-HUB/KUDGE": {
            "Pointwise": {
                "test": [{"judge_query": "q", "response": "r", "final_score": 3}]
            },
            "Pointwise-False": {
                "test": [
                    {"judge_query": "q", "response": "r", "original_human_score": 4.0}
                ]
            },
        }
    }
    hub(tables)
    samples = loaded("KUDGE", subset=["Pointwise", "Pointwise-False"])
    assert [(one["_subset_name"], one["reference"]) for one in samples] == [
        ("Pointwise", "3"),
        ("Pointwise-False", "4.0"),
    ]
    with pytest.raises(ValueError, match="Unknown subset: Pears"):
        loaded("KUDGE", subset=["Pears"])


@pytest.mark.parametrize("key", ["click", "hrc", "kormedmcqa", "benchhub"])
def test_default_split_does_not_exist(hub: Any, key: str) -> None:
    from support.korean_tables import hub_of_tables

    tables = hub_of_tables()
    tables["sean0042/KorMedMCQA"] = {name: {"train": splits["test"]} for name, splits in tables["sean0042/KorMedMCQA"].items()}  # fmt: skip
    hub(tables)
    dataset = hret.load_datasets(key, split="test")
    assert len(dataset.load()) >= 30
    assert (
        "There is no split 'test'; the rows are of 'train'." in dataset.info()["notes"]
    )


def test_failed_subsets_are_skipped_in_silence(hub: Any) -> None:
    hub(one_split("lbox/kbl", [{**MC, "gt": "B"}], "bar_exam_civil_2012"))
    named = ["bar_exam_civil_2012", "bar_exam_nowhere"]
    assert len(loaded("kbl", "published", subset=named)) == 1
    with pytest.raises(ValueError, match="bar_exam_nowhere"):
        loaded("kbl", subset=named)
    dataset = hret.load_datasets("kbl")
    assert len(dataset.load()) == 1 and len(dataset.notes) == 55


def test_benchhub_filter_takes_other_names_too(hub: Any) -> None:
    rows = [
        {"prompt": name, "options": [], "answer": "답", "benchmark_name": name, "subject_type": ["science/Math", "HASS"]}
        for name in ("KBL", "KBLx", "KMMLU")
    ]  # fmt: skip
    hub(one_split("BenchHub/BenchHub-Ko", rows, split="train"))

    def names(mode: str = "corrected", **arguments: Any) -> list[str]:
        return [
            sample["input"]
            for sample in loaded("benchhub", mode, split="train", **arguments)
        ]

    assert names("published", benchmark_names=["kbl"]) == ["KBL", "KBLx"]
    assert names(benchmark_names=["kbl"]) == ["KBL"]
    assert names(benchmark_names=["kb"]) == ["KBL", "KBLx"]
    assert names(benchmark_names=["kbl"], filter_match="substring") == ["KBL", "KBLx"]
    assert names(benchmark_names=["kb"], filter_match="exact") == []
    assert names(benchmark_names=["KMMLU", "kblx"], subject_types=["math"]) == [
        "KBLx",
        "KMMLU",
    ]


def test_benchhub_reads_the_split_twice_and_seeds_everybody(hub: Any) -> None:
    import random

    from support.korean_tables import hub_of_tables

    stand_in = hub(hub_of_tables(), streams=True)
    random.seed(5)
    expected = random.random()
    random.seed(5)
    first, again, other = (
        [
            sample["input"]
            for sample in loaded("benchhub", split="train", sample_size=8, seed=seed)
        ]
        for seed in (7, 7, 8)
    )
    assert random.random() == expected
    assert first == again != other and len(first) == 8
    assert [call.get("streaming") for call in stand_in.calls] == [True] * 3


def test_benchhub_template_is_dropped_where_a_row_has_no_options(hub: Any) -> None:
    hub(
        one_split(
            "BenchHub/BenchHub-Ko",
            [{"prompt": "물음", "options": [], "answer": "답"}],
            split="train",
        )
    )
    arguments = {"split": "train", "base_prompt_template": "{query}|{options_str}|"}
    assert loaded("benchhub", "published", **arguments)[0]["input"] == "물음"
    assert loaded("benchhub", **arguments)[0]["input"] == "물음||"
    with pytest.raises(ValueError, match=r"the field 'nothing'.*column"):
        loaded("benchhub", split="train", base_prompt_template="{nothing}")


def test_generic_file_guesses_what_cells_are(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "g.csv").write_text(
        "input,reference,extra\n물음,01,7\n둘,,NA\n", encoding="utf-8"
    )
    path = {"file_path": str(tmp_path / "g.csv")}
    assert [
        one["reference"] for one in loaded("generic_file", "published", **path)
    ] == ["1.0", "nan"]
    assert loaded("generic_file", **path) == [
        {"input": "물음", "reference": "01", "metadata": {"extra": "7"}},
        {"input": "둘", "reference": "", "metadata": {"extra": "NA"}},
    ]


def test_generic_file_splits_tsv_at_commas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "g.tsv").write_text("질문\t답\n가, 나\t다\n", encoding="utf-8")
    arguments = {
        "file_path": str(tmp_path / "g.tsv"),
        "input_col": "질문",
        "reference_col": "답",
    }
    (sample,) = loaded("generic_file", **arguments)
    assert (sample["input"], sample["reference"]) == ("가, 나", "다")
    assert loaded("generic_file", "published", **arguments) != [sample]
    assert loaded("generic_file", sep="\t", **arguments) == [sample]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_generic_file_cannot_read_json(tmp_path: Path, ending: str) -> None:
    row = {"input": "물음", "reference": "답"}
    text = json.dumps([row] if ending == "json" else row, ensure_ascii=False)
    (tmp_path / f"g.{ending}").write_text(text, encoding="utf-8")
    path = {"file_path": str(tmp_path / f"g.{ending}")}
    assert loaded("generic_file", **path) == [{**row, "metadata": {}}]
    with pytest.raises(ValueError, match=f"Unsupported file extension: .{ending}"):
        loaded("generic_file", "published", **path)


# -- the registry and what is not a defect
# -----------------------------------------------------------------------------


def test_a_registered_class_needs_load_and_a_free_name() -> None:
    with pytest.raises(ValueError, match="Dataset 'kmmlu' already registered"):
        hret.register_dataset("kmmlu")(hret.BaseDataset)
    with pytest.raises(TypeError, match=r"needs a method load"):
        hret.register_dataset("test-no-load")(object)
    with pytest.raises(ValueError, match="Unknown dataset 'pears'"):
        hret.load_datasets("pears")


@pytest.mark.parametrize(
    "template",
    ["{question.__class__}", "{question[0]}", "{question!r}", "{question:>99999999}"],
)
def test_a_template_looks_into_no_value(hub: Any, template: str) -> None:
    hub(one_split("HAERAE-HUB/HRM8K", [{"question": "1+1?", "answer": 2.0}], "KSM"))
    with pytest.raises(ValueError, match="plain name in braces"):
        loaded("hrm8k", subset="KSM", base_prompt_template=template)
    assert loaded("hrm8k", subset="KSM", base_prompt_template="{{}} {question}") == [
        {"input": "{} 1+1?", "reference": "2", "_subset_name": "KSM"}
    ]


def test_guards_are_in_the_information(hub: Any) -> None:
    from support.korean_tables import hub_of_tables

    hub(hub_of_tables())
    only = {key: hret.load_datasets(key).info().get("evaluation_only") for key in hret.DATASET_REGISTRY if key not in ("KUDGE", "generic_file")}  # fmt: skip
    assert only.pop("k2_eval") == ["llm_judge"] and not any(only.values())
    assert hret.load_datasets("KUDGE", subset="Pairwise").info()["evaluation_only"] == [
        "llm_judge"
    ]
    assert len(hret.load_datasets("kormedmcqa").get_raw_samples()) == 4


def test_every_key_loads_its_local_table(hub: Any) -> None:
    from support.korean_tables import FOLDER, hub_of_tables, table

    hub(hub_of_tables())
    for path in FOLDER.glob("*.json"):
        one = table(path.stem)
        rows = sum(map(len, one["tables"].values()))
        more = (
            {"subset": list(one["tables"])}
            if path.stem in ("KUDGE", "kmmlu", "kbl")
            else {}
        )
        for mode in ("published", "corrected"):
            samples = loaded(path.stem, mode, split=one["split"], **more)
            pairs = 16 if path.stem == "KUDGE" and mode == "corrected" else 0
            assert len(samples) == rows + pairs >= 30, (path.stem, mode)


def test_citations_of_benchhub_leave_nothing_out() -> None:
    from evalwright.compat.hret.internal.benchhub_info import (
        DATASETS,
        benchmark_details,
        citation_report,
    )

    assert len(DATASETS) == 12
    for entry in DATASETS:
        assert entry.citation.split("{", 1)[1].startswith(entry.citation_key + ",")
    samples = [
        {"metadata": {"benchmark_name": name}}
        for name in ("BLEnD", "BLEnD", "Unheard_of")
    ]
    report = citation_report(samples)
    assert r"BLEnD & 2 & cc-by-sa-4.0 & \cite{myung2025blend} \\" in report
    assert r"Unheard\_of & 1 &  & citation missing \\" in report
    assert list(benchmark_details(samples)) == ["BLEnD"]
