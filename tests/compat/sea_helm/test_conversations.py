"""Conversations, byte for byte those of SEA-HELM's own code; what templates may hold; how many
shots.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compat.sea_helm.small_tree import (
    TREE,
    golden,
    needs_golden,
    needs_tree,
    small_tree,
)
from evalwright.compat.sea_helm.compiling import (
    published_failure,
    sampling_of,
    sea_task,
)
from evalwright.compat.sea_helm.config import read_tree, root_of
from evalwright.compat.sea_helm.conversations import (
    Shots,
    base_text,
    conversation,
    shots_of,
)
from evalwright.compat.sea_helm.naming import Options, options_of
from evalwright.compat.sea_helm.placeholders import render
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.compat.sea_helm.task_rows import load_rows
from evalwright.core.errors import TaskError


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(values: Sequence[Any]) -> str:
    return hashlib.sha256(
        "".join(f"{_text(one)}\n" for one in values).encode()
    ).hexdigest()


def _task(line: dict[str, Any], languages: dict[tuple[str, str], Any]) -> SeaTask:
    pair = line["task"], line["lang"]
    here = (
        line["language_config"]
        or languages[line["task"].removesuffix("-logprobs"), line["lang"]]
    )
    languages[pair] = here
    return SeaTask(
        *pair, {**line["config"], "languages": {line["lang"]: here}}, published=True
    )


@needs_golden
def test_each_recorded_row_becomes_the_recorded_conversation() -> None:
    """By the configurations and rows in the golden outputs themselves."""
    languages: dict[tuple[str, str], Any] = {}
    tasks = {
        (line["task"], line["lang"]): _task(line, languages) for line in golden("task")
    }
    compared = 0
    for line in golden("prompts"):
        task = replace(tasks[line["task"], line["lang"]], base=line["form"] == "base")
        by_subject = (
            task.name == "global_mmlu_lite" and line["form"] != "instruct-0shot"
        )
        if "rows" not in line or by_subject:
            continue
        examples = line.get("examples") or ()
        for row in (one for one in line["rows"] if "prompts" in one):
            made = conversation(task, row, examples[: line["shots_used"]])
            assert [one.as_dict() for one in made] == row["conversation"], (
                line["task"],
                line["form"],
                row["i"],
            )
            compared += 1
        if line.get("base_texts"):
            assert (
                base_text(
                    conversation(task, line["rows"][0], examples[: line["shots_used"]])
                )
                == line["base_texts"][0]
            )
    assert compared > 400


@needs_golden
def test_the_model_is_asked_as_published(tmp_path: Path) -> None:
    tree = read_tree(small_tree(tmp_path))
    tree = replace(tree, thinking=20_000)
    languages: dict[tuple[str, str], Any] = {}
    for line in golden("task"):
        task = _task(line, languages)
        for form, (generation, more) in line["gen"].items():
            asked = replace(task, base=form == "base")
            made = sampling_of(asked, tree, Options(reasoning=form == "reasoning"))
            assert made.max_tokens == generation["max_tokens"]
            assert made.temperature is None
            assert list(made.stop) == (
                [] if "use_logprobs" in more else generation.get("stop", [])
            )
            assert (more.get("answer_tag", task.answer_tag) or "") == task.answer_tag
            if "answer_tag_separator" in more:
                assert task.separator == more["answer_tag_separator"]


@needs_tree
def test_whole_tasks_of_the_folder_become_the_recorded_conversations() -> None:
    """All rows of a few tasks."""
    tree = read_tree(root_of([TREE]))
    wanted = {
        ("paraphrase", "tl"), ("qa-mc-logprobs", "su"), ("global_mmlu_lite", "ms"), ("safeguard_general_response", "ta"),
    }  # fmt: skip
    for line in golden("prompts"):
        if (line["task"], line["lang"]) not in wanted:
            continue
        base = line["form"] == "base"
        task = sea_task(
            tree,
            line["task"],
            line["lang"],
            Options(scoring="published", base_model=base),
        )
        count = shots_of(
            task, 5 if line["form"] == "instruct-5shot" else None, tree.constants
        )
        if "error" in line:
            assert "TypeError" in published_failure(task, tree, count)
            continue
        rows = load_rows(task)
        shots = Shots(task, count or 0)
        made = [conversation(task, row, shots(row)) for row in rows]
        assert (
            _digest([[one.as_dict() for one in told] for told in made])
            == line["digest"]
        )
        assert _digest([row.get("label") for row in rows]) == line["labels_digest"]
        assert _digest([row.get("id") for row in rows]) == line["ids_digest"]
        if base:
            assert _digest([base_text(one) for one in made]) == line["base_text_digest"]


def _plain(tmp_path: Path, **options: Any) -> SeaTask:
    return sea_task(
        read_tree(small_tree(tmp_path)), "colours", "id", Options(**options)
    )


def test_a_later_turn_repeats_shots_and_preamble_behind_the_replies(
    tmp_path: Path,
) -> None:
    task = _plain(tmp_path)
    row = {"prompts": [{"question": "One?"}, {"question": "Two?"}]}
    example = {"label": ["B", "C"], "prompts": [{"question": "Zero?"}]}
    made = conversation(task, row, [example], ["first"])
    opening = "Pick one (id). Write Jawaban: and {a letter}.\n\nQuestion: Zero?"
    assert [one.content for one in made] == [
        opening, "Jawaban: B", "Question: One?\n", "first", opening, "Jawaban: B", "Question: Two?\n",
    ]  # fmt: skip
    assert [one.role for one in made] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert base_text(made[:2]) == f"{opening}\n\nJawaban: B\n\n"


@pytest.mark.parametrize(
    "template",
    [
        "{question.__class__}",
        "{question!r}",
        "{question:>999999999}",
        "{question[0]}",
        "{",
        "{0}",
        "{nowhere}",
    ],
)
def test_a_template_holds_names_alone(template: str) -> None:
    with pytest.raises(TaskError, match="The template"):
        render(template, {"question": "x"}, "The template")


def test_shots_are_the_tasks_own_the_default_or_those_asked_for(tmp_path: Path) -> None:
    tree = read_tree(small_tree(tmp_path))
    for own, base, asked, count in (
        ({"instruct": 0, "base": 3}, True, None, 3),
        ({"instruct": 0, "base": 3}, False, None, 0),
        ({"instruct": 0, "base": None}, True, None, None),
        (None, True, None, 5),
        (None, False, None, 0),
        ({"instruct": 0, "base": 3}, True, 2, 2),
    ):
        task = SeaTask(
            "x", "id", {"fewshot_num_examples": own, "languages": {"id": {}}}, base=base
        )
        assert shots_of(task, asked, tree.constants) == count


def test_corrected_a_row_is_never_its_own_example(tmp_path: Path) -> None:
    small_tree(tmp_path)
    folder = tmp_path / "seahelm_tasks" / "colours"
    (folder / "id_examples.jsonl").write_text((folder / "id.jsonl").read_text())
    for scoring, first in (
        ("published", ["item0", "item1"]),
        ("corrected", ["item1", "item2"]),
    ):
        task = sea_task(
            read_tree(tmp_path), "colours", "id", options_of({"scoring": scoring})
        )
        shots = Shots(task, 2)
        assert [one["id"] for one in shots(load_rows(task)[0])] == first
