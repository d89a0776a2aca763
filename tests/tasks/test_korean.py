"""The Korean benchmarks as native tasks, on local tables: what is right scores 1, what is wrong
0; samples are what their rows say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, load_task
from evalwright.core.tasks import Task
from evalwright.tasks.index import TaskIndex
from support.korean_tables import write_tables

KEYS = {
    "haerae": "haerae_bench", "kmmlu": "kmmlu", "click": "click", "hrm8k": "hrm8k", "k2": "k2_eval", "kudge": "KUDGE", "hrc": "hrc",
    "kbl": "kbl", "kormedmcqa": "kormedmcqa", "aime": "aime2025", "benchhub": "benchhub",
}  # fmt: skip
NAMES = sorted(
    name
    for entry in TaskIndex().files()
    if "/korean/" in entry.path
    for name in entry.members
)


def of_table(name: str, folder: Path, **overrides: Any) -> Task:
    """A native task on the table of its benchmark."""
    key = KEYS[name.split("-")[0]]
    rows = folder / key if (folder / key).exists() else write_tables(key, folder)
    part = "*"
    if key == "KUDGE":
        part = "-".join(
            word.capitalize() for word in name.removesuffix("-generate").split("-")[1:]
        )
    return load_task(
        name, overrides={"dataset.path": str(rows / f"{part}.jsonl"), **overrides}
    )


def shown(prompt: Any) -> str:
    """What a model reads last."""
    return str(prompt if isinstance(prompt, str) else prompt[-1].text)


def test_gold_answers_score_one_and_wrong_ones_zero(tmp_path: Path) -> None:
    tasks = [of_table(name, tmp_path) for name in NAMES if name != "k2-eval"]
    right, wrong = evaluate(tasks, ["oracle/gold", "oracle/wrong"])
    for run, value in ((right, 1.0), (wrong, 0.0)):
        found = {
            task.name: task.main.estimate.value
            for task in run.tasks
            if task.main is not None
        }
        # Any grade below that of people is right there, so a wrong one is the highest.
        assert len(found) == len(tasks)
        assert {name for name, score in found.items() if score != value} == set()


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        (
            "haerae-bench-generate",
            "'설상가상'은 어려움이 겹친다는 뜻입니다.\n정답: {letter}",
        ),
        ("kmmlu-generate", "풀이를 생략합니다.\n\n따라서, 정답은: ({letter})"),
        ("click-generate", "**정답: {letter}**"),
        ("kbl-generate", "정답은 {letter}입니다."),
        ("kormedmcqa-generate", "정답: {letter}. {text}"),
        ("hrm8k", "차근차근 풀면 다음과 같다.\n\\[ \\boxed{{{text}}} \\]"),
        ("hrc", "따라서 최종 답은 $\\boxed{{{text}}}$이다."),
        ("aime-2025-korean", "답: {text}"),
        (
            "kudge-pairwise-generate",
            "두 답변 가운데 하나는 사실과 다릅니다.\n정답: {letter}",
        ),
        ("kudge-pointwise-generate", "사실에 맞고 분명하다.\n정답: {text}"),
        ("benchhub-ko-open", "정답: {text}"),
    ],
)
def test_what_models_write_is_read(tmp_path: Path, name: str, reply: str) -> None:
    task = of_table(name, tmp_path)
    replies = {}
    for sample in task.samples:
        letter = "ABCDE"[sample.gold[0]] if sample.gold else ""
        replies[shown(task.strategy.render(sample))] = reply.format(  # type: ignore[attr-defined]
            letter=letter, text=sample.targets[0]
        )
    (run,) = evaluate(
        task,
        ScriptedModel(lambda request: replies[shown(request.prompt)]),  # type: ignore[union-attr]
    )
    (result,) = run.tasks
    assert result.main is not None and result.main.estimate.value == 1.0
    assert result.n_unsure <= len(replies) // 10


def test_both_orders_of_a_pair_are_one_cluster(tmp_path: Path) -> None:
    task = of_table("kudge-pairwise-generate", tmp_path)
    samples = list(task.samples)
    assert len(samples) == 16 and len({sample.cluster for sample in samples}) == 8
    for cluster in {sample.cluster for sample in samples}:
        pair = [sample for sample in samples if sample.cluster == cluster]
        assert sorted(sample.gold for sample in pair) == [(0,), (1,)]
    # A judge that always takes the first answer is right half of the time, in every pair.
    (run,) = evaluate(task, ScriptedModel(lambda prompt: "정답: A"))
    (result,) = run.tasks
    assert result.main is not None and result.main.estimate.value == pytest.approx(0.5)
    slices = {
        value: metrics[0].estimate.value
        for value, metrics in result.slices["order"].items()
    }
    assert slices == {"better first": 1.0, "worse first": 0.0}


def test_a_grade_below_that_of_people_finds_false_information(tmp_path: Path) -> None:
    task = of_table("kudge-pointwise-false-generate", tmp_path)
    assert {sample.gold for sample in task.samples} == {(0, 1, 2, 3)}
    means = of_table("kudge-pointwise-generate", tmp_path)
    assert {sample.gold for sample in means.samples} == {(0,), (4,), (3, 4)}


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"benchmark_name": "KMMLU"}, 10),
        ({"benchmark_name": "kmmlu"}, 0),
        ({"benchmark_name": {"contains": "k"}}, 18),
        ({"benchmark_name": ["KBL", "CLIcK"], "target_type": "Cultural"}, 8),
        ({"subject_type": "culture/Tradition"}, 10),
        ({"subject_type": {"contains": "hass"}}, 10),
    ],
)
def test_facets_of_benchhub(tmp_path: Path, where: dict[str, Any], count: int) -> None:
    from evalwright.core.errors import DatasetError

    if not count:
        with pytest.raises(DatasetError, match="no row is left"):
            of_table("benchhub-ko", tmp_path, where=where)
        return
    assert len(of_table("benchhub-ko", tmp_path, where=where).samples) == count


def test_parts_are_shown_apart(tmp_path: Path) -> None:
    of = {
        "haerae-bench": 13, "kmmlu": 6, "click": 6, "hrm8k": 5, "hrc": 3, "kbl": 4, "kormedmcqa": 4, "aime-2025-korean": 2,
    }  # fmt: skip
    for name, parts in of.items():
        task = of_table(name, tmp_path)
        assert len({sample.metadata["domain"] for sample in task.samples}) == parts, (
            name
        )
        assert "domain" in task.slices
    areas = {sample.metadata["area"] for sample in of_table("kmmlu", tmp_path).samples}
    assert areas == {"STEM", "humanities and social science"}
