"""One Task object asked of several models: what one of them answers changes no number of
another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from compat.sea_helm.scored import sea_task
from compat.sea_helm.small_tree import entry, spoken, write
from compat.sea_helm.test_foreign import HELPING, METRIC
from evalwright import evaluate
from evalwright.cli import main
from evalwright.compat.sea_helm import foreign
from evalwright.compat.sea_helm.metric_classes import METRICS
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.core.errors import EvalwrightError, UsageError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Task
from evalwright.models.scripted import ScriptedModel
from evalwright.tasks.loading import load_tasks

BELIEFS = {
    "metric_file": "seahelm_tasks/long_context/longproc/tom_tracking/tom_tracking.py",
    "metric_class": "ToMTrackingMetric",
    "metric": "normalized_accuracy",
}
REFERENCE = "- she sees it: True\n- he sees it: False"
JUDGE: dict[str, Any] = {
    "judge_model_name": "big",
    "judge_model_type": "vllm",
    "judge_prompts": {
        "system_prompt": "Judge.",
        "criteria_prompt": "{conversation} | {rubric_item}",
    },
}
HEALTH = {
    "metric_file": "seahelm_tasks/health/healthbench/healthbench_judge_metric.py",
    "metric_class": "HealthbenchJudgeMetric",
    "metric": "average_criteria_score",
    "judge": JUDGE,
}
OWN = {
    "metric_file": "seahelm_tasks/mine/metric.py",
    "metric_class": "MyMetric",
    "metric": "mine",
}


def tree(
    root: Path, config: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Path:
    """A folder of one task, `mine`."""
    place = root / "seahelm_tasks" / "mine"
    write(place / "id.jsonl", list(rows))
    here = spoken("mine", "id", example_filepath=None)
    write(place / "config.yaml", {"mine": entry("mine", {"id": here}, **config)})
    return root


def rows(label: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{n}",
            "label": label,
            "prompts": [{"question": f"What is {n}?"}],
            "metadata": {},
            **more,
        }
        for n in range(3)
    ]


def loaded(root: Path, **settings: Any) -> Task:
    (task,) = load_tasks(
        "sea-helm:mine", dialect={"task_root": str(root), **settings}, chat=True
    )
    return task


def first_numbers(runs: Sequence[Any]) -> list[float | None]:
    return [run.data["tasks"][0]["metrics"][0]["value"] for run in runs]


def bad_row_raises(request: Any) -> str:
    """One reply of a wrong length, which SEA-HELM's code raises on; all others are right."""
    return "- she sees it: True" if "What is 1?" in str(request.prompt) else REFERENCE


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_model_whose_answer_raises_leaves_the_numbers_of_another_alone(
    own_folder: Path, order: Sequence[int]
) -> None:
    task = loaded(
        tree(own_folder / "tree", BELIEFS, rows(REFERENCE)), scoring="published"
    )
    models = [
        ScriptedModel(bad_row_raises, name="scripted/bad", version="1"),
        ScriptedModel(REFERENCE, name="scripted/good"),
    ]
    for _ in range(2):
        runs = evaluate([task], [models[place] for place in order])
        assert first_numbers(runs) == [(0, 100)[place] for place in order]
        methods = [run.data["tasks"][0]["metrics"][0]["method"] for run in runs]
        assert ["SEA-HELM's code raises" in method for method in methods] == [
            not place for place in order
        ]


def test_a_verdict_that_raises_for_one_model_leaves_the_number_of_another_alone(
    own_folder: Path,
) -> None:
    """SEA-HELM's code raises on a verdict that is a text."""
    criteria = [{"criterion": "is kind", "points": 3}]
    told = [{"role": "user", "content": "I am ill."}]
    root = tree(
        own_folder / "tree", HEALTH, rows("x", criteria=criteria, conversations=told)
    )

    def verdict(request: Any) -> str:
        return '{"criteria_met": %s}' % (
            '"true"' if "go away" in str(request.prompt) else "true"
        )

    judge = ScriptedModel(verdict, name="scripted/judge", version="1")
    task = loaded(root, scoring="published")
    bad = ScriptedModel("go away", name="scripted/bad")
    good = ScriptedModel("poor you", name="scripted/good")
    for models, numbers in (([bad, good], [0, 100]), ([good, bad], [100, 0])):
        assert (
            first_numbers(evaluate([task], models, roles={"judge": judge})) == numbers
        )


def test_a_class_of_the_folder_scores_each_model_by_its_own_replies(
    own_folder: Path,
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    root = tree(own_folder / "tree", OWN, rows("B"))
    place = root / "seahelm_tasks" / "mine"
    write(place / "metric.py", METRIC.format(mark=own_folder / "mark"))
    raising = "    if said == 'raise': raise ValueError('no')\n    return"
    write(place / "helping.py", HELPING.replace("    return", raising))
    try:
        task = loaded(root, trust=[str(root)])
        replies = ("Jawaban: raise", "Jawaban: B", "Jawaban: A")
        models = [
            ScriptedModel(text, name=f"scripted/m{n}") for n, text in enumerate(replies)
        ]
        assert first_numbers(evaluate([task], models)) == [None, 100, 0]
        assert first_numbers(evaluate([task], models[::-1])) == [0, 100, None]
    finally:
        foreign.end_workers()


def test_a_class_of_the_folder_scores_each_repeat_and_an_export_does_so_again(
    own_folder: Path,
) -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    root = tree(own_folder / "tree", OWN, rows("B"))
    place = root / "seahelm_tasks" / "mine"
    write(place / "metric.py", METRIC.format(mark=own_folder / "mark"))
    write(place / "helping.py", HELPING)
    try:
        task = loaded(root, trust=[str(root)], runs=2)
        reply: Callable[[Any], str] = lambda request: f"Jawaban: {'BA'[request.draw]}"  # noqa: E731
        (run,) = evaluate([task], ScriptedModel(reply, version="1"), name="two")
        assert first_numbers([run]) == [50]  # the mean of 100 and 0
        assert main(["export", "sea-helm", "two", "--out", "out"]) == 0
        (found,) = Path("out").rglob("run_1/results/*.json")
        assert json.loads(found.read_text())["id"]["nlu"]["mine"]["mine"] in (0, 50)
    finally:
        foreign.end_workers()


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("name", sorted(":".join(named) for named in METRICS))
def test_scorers_and_tasks_keep_nothing_between_answers(
    name: str, published: bool
) -> None:
    """A scorer is what it was before it scored, whatever it scored."""
    file, _, metric_class = name.rpartition(":")
    task = sea_task(
        file,
        metric_class,
        published=published,
        metric="normalized_metric",
        judge=JUDGE | {"classifications": {"MET": 1}},
        judgement_labels={"A_wins": "[A]", "B_wins": "[B]", "Tie": "[C]"},
    )
    metadata = {
        "linguistic_phenomenon": "x",
        "instruction_id_list": [],
        "subcategory": "startend:quotation",
    }
    row = {"label": "A", "metadata": metadata, "kwargs": [], "prompts": [{"text": "?"}]}
    try:
        (scorer,), specs = scoring_of(task, [row])
    except (
        UsageError
    ):  # a class that is not scored here, a library that is not installed
        return
    before = state_of(scorer), state_of(specs)
    for text in ("Answer: A", "", "- Ann thinks: B"):
        sample = Sample("s", targets=("A",), metadata={"row": row, "index": 0})
        answer = Answer(text, responses=(Response(text),), log_likelihoods=(-1.0,))
        with suppress(EvalwrightError, TypeError):  # rows of another class
            outcome = scorer.function(sample, answer, *[ask] * scorer.asks)
            if scorer.asks:
                asyncio.run(outcome)  # type: ignore[arg-type]
    assert (state_of(scorer), state_of(specs)) == before


async def ask(role: str, request: Any) -> Response:
    return Response("MET", values=(-1.0,))


def state_of(part: Any, seen: frozenset[int] = frozenset()) -> Any:
    """Everything that an object reaches through attributes, bound arguments and containers."""
    if id(part) in seen or isinstance(part, type | ModuleType):
        return "..."
    seen |= {id(part)}
    if isinstance(part, partial):
        return [state_of(each, seen) for each in (part.func, part.args, part.keywords)]
    if isinstance(part, Mapping):
        return {str(key): state_of(value, seen) for key, value in part.items()}
    if isinstance(part, list | tuple | set | frozenset):
        return [state_of(each, seen) for each in part]
    if isinstance(part, MethodType):
        return state_of(part.__self__, seen)
    if isinstance(part, FunctionType):
        cells = [cell.cell_contents for cell in part.__closure__ or ()]
        return [part.__qualname__, state_of(cells, seen)]
    fields = getattr(part, "__slots__", None) or getattr(part, "__dict__", None)
    if not fields:
        return repr(part)
    return {name: state_of(getattr(part, name, None), seen) for name in fields}
