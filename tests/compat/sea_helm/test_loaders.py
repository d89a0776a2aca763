"""Raw rows of data sets of the hub become rows as SEA-HELM's loader classes make them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compat.sea_helm.small_tree import entry
from evalwright.compat.sea_helm.conversations import conversation
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.compat.sea_helm.task_rows import LOADERS, file_of_hub, load_rows
from evalwright.core.errors import DatasetError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CVQA = {
    "dataloader_file": "seahelm_tasks/vision/cvqa/cvqa_dataloader.py",
    "dataloader_class": "CVQADataloader",
}
ENGLISH = {"question": "Why?", "options": [" one", "two "]}


def _rows(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    loader: str,
    name: str,
    language: str,
    *raws: Mapping[str, Any],
) -> tuple[list[Any], list[str | None]]:
    """The rows, and which configuration and split of the data set they were taken from."""
    found: list[str | None] = []

    def copy(repository: str, revision: str, config: str | None, split: str) -> Path:
        found.extend([config, split])
        path = folder / "data.jsonl"
        path.write_text("".join(f"{json.dumps(raw)}\n" for raw in raws))
        return path

    monkeypatch.setattr("evalwright.tasks.datasets.reading.copy_of_hub", copy)
    monkeypatch.setattr(
        "evalwright.tasks.datasets.reading.first_fetched", lambda repository: "main"
    )
    (file, kind) = next(one for one in LOADERS if one[1] == loader)
    here = {"filepath": "owner/data", "prompt_template": {"task_template": ""}}
    config = entry(name, {language: here}, dataloader_file=file, dataloader_class=kind)
    return list(load_rows(SeaTask(name, language, config, folder))), found


@pytest.mark.parametrize(
    ("loader", "name", "language", "raws", "made", "source"),
    [
        (
            "MMLUProDataloader", "mmlu_pro_computer_science-logprobs", "en",
            [
                {**ENGLISH, "category": "Computer Science", "question_id": 7, "answer": "B", "src": "s"},
                {**ENGLISH, "category": "law", "question_id": 8, "answer": "A", "src": "s"},
            ],
            {"id": 7, "label": "B", "prompts": [{"question": "Why?", "options": "A. one\nB. two"}],
             "metadata": {"language": "en", "category": "Computer Science", "src": "s"}},
            [None, "test"],
        ),
        (
            "MuSRDataloader", "musr_team_allocation", "en",
            [{"narrative": "n", "question": "q", "choices": "['x', 'y']", "answer_index": 1}],
            {"id": 0, "label": "2", "prompts": [{"narrative": "n", "question": "q", "choices": "1 - x\n2 - y"}],
             "metadata": {"language": "en"}},
            [None, "team_allocation"],
        ),
        (
            "TranslationDataloader", "translation-en-xx", "th", [{"id": 1, "prompts": [{"text": "t"}]}],
            {"id": 1, "prompts": [{"text": "t"}]}, ["en_to_th", "eval"],
        ),
        (
            "MMLUReduxDataloader", "mmlu_redux_anatomy", "en",
            [
                {"question": "q", "choices": ["a", "b"], "error_type": "no_correct_answer", "correct_answer": None},
                {"question": "q", "choices": ["a", "b"], "error_type": "wrong_groundtruth", "correct_answer": 1,
                 "answer": 0, "source": "s"},
            ],
            {"id": 1, "label": "B", "prompts": [{"question": "q", "options": "A. a\nB. b"}],
             "metadata": {"language": "en", "src": "s"}},
            ["anatomy", "test"],
        ),
        (
            "CVQADataloader", "cvqa", "ms",
            [
                {"ID": 1, "Subset": "('Tamil', 'India')"},
                {"ID": 2, "Subset": "('Malay', 'Malaysia')", "Question": "q", "Options": list("wxyz"), "Label": 2,
                 "Category": "c", "image": {"bytes": "eA=="}},
            ],
            {"id": 2, "label": "C", "prompts": [{"question": "q", "option_a": "w", "option_b": "x", "option_c": "y", "option_d": "z"}],
             "metadata": {"language": "ms", "category": "c", "subset": "('Malay', 'Malaysia')"}, "images": ["eA=="]},
            [None, "test"],
        ),
        (
            "MMMUProDataloader", "mmmu_pro_10_options", "en",
            [{"id": "a", "question": "q", "options": "['x', 'y']", "answer": "A", "subject": "s", "topic_difficulty": "Easy",
              "img_type": "t", "image_1": {"bytes": "eA=="}, "image_2": None}],
            {"id": "a", "label": "A", "prompts": [{"question": "q", "options": "A: x\nB: y"}],
             "metadata": {"language": "en", "subject": "s", "difficulty": "Easy", "img_type": "t"}, "images": ["eA=="]},
            ["standard (10 options)", "test"],
        ),
        (
            "MarvlDataloader", "marvl", "en",
            [{"id": 3, "label": True, "hypo_en": "h", "hypothesis": "x", "chapter": "c", "concept": "d", "left_img": {"bytes": "eA=="}}],
            {"id": 3, "label": "Benar", "prompts": [{"hypothesis": "h"}],
             "metadata": {"language": "en", "chapter": "c", "concept": "d"}, "images": ["eA==", ""]},
            [None, "id"],
        ),
        (
            "MathArenaDataloader", "aime_2024", "en", [{"id": 60, "problem": "p", "answer": 204}],
            {"id": 60, "label": "204", "prompts": [{"problem": "p"}], "metadata": {"language": "en", "dataset": "aime_2024"}},
            [None, "train"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith("loader") else "",
)  # fmt: skip
def test_each_kind_of_cell(
    loader: str, name: str, language: str, raws: Any, made: Any, source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    found, of = _rows(monkeypatch, tmp_path, loader, name, language, *raws)
    assert found == [made]
    assert of == source


def test_the_right_option_of_each_row_is_at_the_published_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raws = [
        {"sample_id": n, "subject": "anatomy", "question": "q", "answer": "B", **{f"option_{one}": f"{n}{one}" for one in "abcd"}}
        for n in range(8)
    ]  # fmt: skip
    found, _ = _rows(
        monkeypatch,
        tmp_path,
        "GlobalMMLUDataloader",
        "global_mmlu_anatomy",
        "id",
        *raws,
    )
    assert sorted(row["label"] for row in found) == sorted("ABCD" * 2)
    for n, row in enumerate(found):
        assert row["prompts"][0][f"option_{row['label'].lower()}"] == f"{n}b"
        assert row["metadata"]["region"] is None
        assert sorted(row["prompts"][0].values())[:4] == [f"{n}{one}" for one in "abcd"]


def test_a_column_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match=r"row 1.*(narrative|choices)"):
        _rows(
            monkeypatch,
            tmp_path,
            "MuSRDataloader",
            "musr_x",
            "en",
            {"question": "q", "answer_index": 1},
        )


def test_a_file_that_was_unpacked_in_the_librarys_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    snapshot = tmp_path / "datasets--owner--data" / "snapshots" / COMMIT
    (snapshot / "images").mkdir(parents=True)
    (snapshot / "images" / "a.jpg").write_bytes(b"a")
    (tmp_path / "secret").write_bytes(b"b")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(
        "evalwright.tasks.datasets.reading.first_fetched", lambda repository: COMMIT
    )
    assert file_of_hub("owner/data", "images/a.jpg").read_bytes() == b"a"
    with pytest.raises(DatasetError, match="cannot be fetched"):
        file_of_hub("owner/data", "../../../secret")


def test_hidden_labels_are_d_as_published_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {
        "ID": "1",
        "Question": "q",
        "Options": list("wxyz"),
        "Label": -1,
        "Category": "c",
        "Subset": "('Malay', 'Malaysia')",
        "image": None,
    }
    rows, _ = _rows(monkeypatch, tmp_path, "CVQADataloader", "cvqa", "ms", raw)
    assert "label" not in rows[0]
    task = SeaTask(
        "cvqa",
        "ms",
        entry(
            "cvqa",
            {
                "ms": {
                    "filepath": "owner/data",
                    "prompt_template": {"task_template": ""},
                }
            },
            **CVQA,
        ),
        tmp_path,
        published=True,
    )
    assert load_rows(task)[0]["label"] == "D"


def test_a_row_without_its_picture_is_a_failed_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = {"question": "q", "answer": "A", "l2_category": "c"}
    pictures: list[Any] = [None, "", {"bytes": None}, {"bytes": ""}]
    raws = [{**raw, "index": place, "image": one} for place, one in enumerate(pictures)]
    rows, _ = _rows(
        monkeypatch,
        tmp_path,
        "MMStarDataloader",
        "mmstar",
        "en",
        *raws,
        {**raw, "index": 4},
    )
    assert [row["images"] for row in rows] == [[""]] * 5
    task = SeaTask(
        "mmstar",
        "en",
        entry("mmstar", {"en": {"prompt_template": {"task_template": "{question}"}}}),
    )
    unnamed: dict[str, Any] = {
        "id": 4,
        "prompts": [{"question": "q"}],
        "image_files": [None],
    }
    for row in [*rows, unnamed]:
        with pytest.raises(
            DatasetError, match=f"The row '{row['id']}' lacks a picture"
        ):
            conversation(task, row)
    blind = {
        "question": "q",
        "gt_answer": "1",
        "category": "c",
        "subcategory": "s",
        "image": None,
    }
    for name, images in (("hallusionbench", []), ("hallusionbench_image", [""])):
        rows, _ = _rows(
            monkeypatch, tmp_path, "HallusionBenchDataloader", name, "en", blind
        )
        assert rows[0]["images"] == images
