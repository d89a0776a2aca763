"""HRET's own behaviour stands behind one interface, a benchmark's facts stand once, and a row's own
request has a mark.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

from evalwright import Ask, Generate, Response, Sample, ScriptedModel
from evalwright.compat import hret
from evalwright.compat.hret import datasets, models
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_ask import RowAsk
from evalwright.compat.hret.row_samples import ROW, RowPrompt, prompt_of
from evalwright.compat.hret.rules import Rules, current, rules_of, using
from evalwright.compat.hret.tables import tables

FOLDER = Path(hret.__file__).parent
PACKAGE = "evalwright.compat.hret"


def imports_of(path: Path) -> set[str]:
    return {
        node.module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }


def test_each_of_the_two_rules_is_one_package_that_no_other_file_knows() -> None:
    """Results of HRET are read by its own arithmetic, and its evaluators parse as they do."""
    known_by = {"published": {"evaluation/base.py", "importing.py"}, "corrected": set()}
    for name, expected in known_by.items():
        importing = {
            str(path.relative_to(FOLDER))
            for path in FOLDER.rglob("*.py")
            if path.parent.name != name
            and any(
                module.startswith(f"{PACKAGE}.{name}") for module in imports_of(path)
            )
        }
        assert importing == expected


def test_the_rules_are_chosen_where_a_call_begins() -> None:
    assert current().name == "corrected"
    with using("published") as rules:
        assert isinstance(rules, Rules) and current() is rules is rules_of(None)
        with using(None) as inner:
            assert inner is rules
    assert current() is rules_of("corrected")
    with pytest.raises(ValueError, match="'published' or 'corrected'"):
        rules_of("both")


def test_the_registries_are_in_hrets_order() -> None:
    """A message that lists the known names lists them so."""
    assert list(datasets.DATASET_REGISTRY)[:3] == ["haerae_bench", "kmmlu", "click"]
    ours = [name for name in models.MODEL_REGISTRY if name in tables()["models"]]
    assert ours == [
        "huggingface",
        "huggingface_judge",
        "huggingface_reward",
        "openai",
        "openai_judge",
        "litellm",
        "litellm_judge",
        "vllm",
    ]
    assert list(models.MODEL_REGISTRY).index("multi") == len(ours)


def test_where_a_benchmark_is_stands_in_our_task_alone() -> None:
    for key, table in tables()["datasets"].items():
        assert ("task" in table) != ("tasks" in table), key
        assert not {"hub", "subsets"} & table.keys(), key


class Recording(Ask):
    """Answers everything, and keeps what it was asked."""

    def __init__(self) -> None:
        self.prompts: list[Any] = []

    async def __call__(self, role: str, request: Any) -> Response:
        self.prompts.append(request.prompt)
        return Response("yes")


@pytest.mark.parametrize("text", ["", "What is it?"])
def test_a_row_s_images_go_with_its_own_prompt_and_no_other(text: str) -> None:
    """Whatever the texts are: every prompt begins with an empty input."""
    row = {"input": text, "images": ["data:,no-image"]}
    sample = Sample("0", text, metadata={ROW: row}, row=row)
    native = Native(ScriptedModel("x"), chat=True, vision=True, lenient=True)
    recording = Recording()
    ask = RowAsk(recording, sample, row, {"target": native})
    row_prompt = prompt_of(sample)
    for prompt in (
        row_prompt,
        row_prompt + " Think.",
        str(row_prompt),
        f"{text} Think.",
    ):
        asyncio.run(ask("target", Generate(prompt)))
    have_images = [isinstance(turn.content, tuple) for (turn,) in recording.prompts]
    assert have_images == [True, True, False, False]


def test_what_stands_behind_a_row_s_prompt_is_known() -> None:
    prompt = RowPrompt("What is it?") + "\nThink." + "\n"
    assert isinstance(prompt, RowPrompt)
    assert (prompt.row_text, prompt.suffix) == ("What is it?", "\nThink.\n")
