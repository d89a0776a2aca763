"""What a plan says of a task: items, smallest differences and half widths, by hand, by brute
force and from real runs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from evalwright import Run, ScriptedModel, Task, evaluate, plan
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.power.forecasts import Forecast, TaskForecast
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.statistics import wilson
from evalwright.statistics.power import difference_variance
from evalwright.statistics.units import variance_components
from evalwright.tasks.loading import task_from_definition
from support.runs import make_run

ECHO = "scripted/echo"
Z = 1.959963984540054 + 0.8416212335729143


def only(forecast: Forecast) -> TaskForecast:
    (task,) = forecast.tasks
    return task


def small_task(n: int, clusters: int = 0, **more: object) -> Task:
    rows = [
        {
            "id": f"item-{i}",
            "q": f"Q{i}?",
            "a": "yes",
            "c": f"c{i % clusters}" if clusters else "",
        }
        for i in range(n)
    ]
    sample = {"id": "{{ id }}", "input": "{{ q }}", "target": "{{ a }}"}
    if clusters:
        sample["cluster"] = "{{ c }}"
    definition = {
        "task": "factual",
        "dataset": {"rows": rows},
        "sample": sample,
        "prompt": {"user": "{{ input }}"},
    }
    return task_from_definition(
        {**definition, "answer": {"max_tokens": 8}, "scorers": ["exact-match"], **more}
    )


def test_the_example_by_hand() -> None:
    """delta = 0.02, omega^2 = 0.2: (1.960 + 0.842)^2 x 0.2 / 0.0004 = 3,924.4."""
    forecast = plan("questions.yaml", ECHO, assume={"variance": 0.2})
    task = only(forecast)
    assert task.items_for_difference.value == math.ceil(Z * Z * 0.2 / 0.02**2) == 3925
    assert task.items_for_difference.basis == "assumed"
    assert task.visible_paired.value == pytest.approx(Z * math.sqrt(0.2 / 60))
    assert (
        "To detect a difference of 2.0 points four times out of five you need about 3,900 items"
        in forecast.conclusion
    )
    assert (
        "questions has 60, which can detect differences of 16.2 points or more"
        in forecast.conclusion
    )


def test_the_worst_case_by_hand() -> None:
    task = only(plan("questions.yaml", ECHO, difference=0.05, half_width=0.03))
    assert task.items_for_difference.value == math.ceil(Z * Z * 0.5 / 0.05**2)
    assert (
        task.items_for_half_width.value
        == math.ceil(1.959963984540054**2 * 0.25 / 0.03**2)
        == 1068
    )
    assert task.half_width.value == pytest.approx(
        1.959963984540054 * math.sqrt(0.25 / 60)
    )
    assert task.visible_unpaired.value == pytest.approx(Z * math.sqrt(2 * 0.25 / 60))
    assert "worst case" in task.items_for_difference.basis
    assert task.enough is False
    assert task.n_used == 60


def test_two_runs_give_the_paired_variance(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 30)
    b = np.where(rng.random(30) < 0.8, a, 1 - a)
    runs = [
        make_run(tmp_path, scores=list(map(float, x)), model=m)
        for x, m in ((a, "demo/small"), (b, "demo/large"))
    ]
    task = only(plan(small_task(200), ECHO, runs=runs, difference=0.1))
    limits = difference_variance(a, b, 0.1)
    assert task.paired_variance.value == limits.value
    # Both quantiles times the error of the share that differs.
    share = np.count_nonzero(a != b) / 30

    def visible(n: int) -> float:
        return float(
            (stats.t.ppf(0.975, n - 1) + stats.t.ppf(0.8, n - 1)) * (share / n) ** 0.5
        )

    assert task.visible_paired.value == pytest.approx(visible(200), rel=0.02)
    wanted = next(n for n in range(30, 999) if visible(n) <= 0.1)
    assert task.items_for_difference.value == pytest.approx(wanted, rel=0.04)
    low, value, high = (
        getattr(task.items_for_difference, end) for end in ("low", "value", "high")
    )
    assert low < value < high
    assert (
        task.items_for_difference.basis
        == "measured on 30 items of demo/small and demo/large, 95% limits"
    )


@pytest.mark.parametrize("cluster_size", [0, 4])
@pytest.mark.parametrize("graded", [False, True])
def test_the_plan_says_of_the_design_that_was_run_what_the_comparison_says(
    tmp_path: Path, cluster_size: int, graded: bool
) -> None:
    rng = np.random.default_rng(9)
    scores = (
        rng.random((2, 60))
        if graded
        else (rng.random((2, 60)) < [[0.5], [0.7]]).astype(float)
    )
    # Where the range of a score is not known, nothing bounds what failed, and nothing is said.
    lost = 0.0 if graded else 0.1
    given = [[None if rng.random() < lost else float(x) for x in row] for row in scores]
    runs = [
        make_run(
            tmp_path,
            scores=row,
            model=f"demo/{name}",
            cluster_size=cluster_size,
            metric="mean" if graded else "accuracy",
        )
        for row, name in zip(given, ("small", "large"), strict=True)
    ]
    clusters = {"clusters": 15} if cluster_size else {}
    forecast = plan(small_task(60, **clusters), ECHO, runs=runs, difference=0.1)
    (compared,) = compare_runs(*runs).tasks
    assert compared.paired is not None
    task = only(forecast)
    made = next(design for design in task.designs if design.made)
    assert (made.items, made.repeats, made.prompts, made.answers) == (60, 1, 1, 60)
    assert made.visible == pytest.approx(
        compared.paired.smallest_visible_difference, rel=1e-9
    )
    assert made.half_width == pytest.approx(
        (compared.paired.high - compared.paired.low) / 2, rel=1e-9
    )
    assert task.visible_paired.value == made.visible
    (cheapest,) = [design for design in task.designs if design.cheapest]
    assert cheapest.enough and cheapest.items == task.items_for_difference.value
    widths = [
        design.half_width
        for design in sorted(task.designs, key=lambda design: design.items)
    ]
    assert widths == sorted(widths, reverse=True)
    assert "part of the items' share" in ((task.parts and task.parts.draw.basis) or "")


def test_prompts_and_repeats_of_the_same_items_are_parts_of_their_own() -> None:
    """Two models on 40 items, four prompts and two repeats of each: everything is measured, and
    more of each buys something.
    """
    rng = np.random.default_rng(8)
    chances: dict[tuple[str, str], float] = {}

    def model(name: str, more: float) -> ScriptedModel:
        def answer(request: object) -> str:
            text = (
                request.prompt  # type: ignore[attr-defined]
                if isinstance(request.prompt, str)  # type: ignore[attr-defined]
                else request.prompt[-1].text  # type: ignore[attr-defined]
            )
            chance = chances.setdefault(
                (name, text), float(rng.uniform(0.0, 0.6)) + more
            )
            return "yes" if rng.random() < chance else "no"

        return ScriptedModel(answer, name=name, version="1")

    models = [model("m/a", 0.4), model("m/b", 0.0)]
    answer = {"max_tokens": 8, "temperature": 1.0, "draws": 2}
    wordings = (
        "{{ input }}",
        "Please: {{ input }}",
        "{{ input }} Answer.",
        "Now, {{ input }}",
    )
    runs = [
        run
        for number, wording in enumerate(wordings)
        for run in evaluate(
            small_task(40, answer=answer, prompt={"user": wording}),
            models,
            name=f"prompt-{number}",
        )
    ]
    task = small_task(40, answer=answer, prompt={"user": wordings[0]})
    found = only(plan(task, models, runs=runs, difference=0.1))
    assert found.parts is not None
    assert (
        "4 prompts" in found.parts.prompt.basis
        and "2 repeats" in found.parts.draw.basis
    )
    assert found.parts.draw.value == pytest.approx(0.3, abs=0.1)
    made = next(design for design in found.designs if design.made)
    compared = compare_runs(runs[0], runs[1]).tasks[0].paired
    assert compared is not None
    assert (made.items, made.repeats, made.prompts, made.answers) == (40, 2, 1, 80)
    assert made.visible == pytest.approx(compared.smallest_visible_difference, rel=1e-9)
    by_design = {
        (design.items, design.repeats, design.prompts): design
        for design in found.designs
    }
    assert (
        by_design[40, 8, 1].half_width
        < by_design[40, 4, 1].half_width
        < made.half_width
    )
    assert by_design[40, 2, 10].half_width < by_design[40, 2, 3].half_width
    assert by_design[40, 2, 3].answers == 240
    alone = only(plan(task, models, runs=runs[:2], difference=0.1))
    assert {design.prompts for design in alone.designs} == {1}
    assert alone.parts is not None and alone.parts.shift.value is None
    assert "one prompt" in alone.parts.shift.basis


def test_the_average_over_tasks_is_that_of_the_comparison(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    names = ("factual-closed-book", "factual-grounded")
    runs = [
        make_run(
            tmp_path,
            scores={
                name: (rng.random(80) < rate).astype(float).tolist() for name in names
            },
            model=f"demo/{model}",
        )
        for model, rate in (("small", 0.4), ("large", 0.6))
    ]
    tasks = [dataclasses.replace(small_task(80), name=name) for name in names]
    forecast = plan(tasks, ECHO, runs=runs)
    overall = compare_runs(*runs).overall
    assert overall is not None and forecast.visible_overall is not None
    assert forecast.visible_overall.value == pytest.approx(
        overall.smallest_visible_difference, rel=1e-9
    )


def test_a_pilot_without_any_difference_is_no_certainty(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[1.0] * 30, model=name)
        for name in ("demo/small", "demo/large")
    ]
    task = only(plan(small_task(100), ECHO, runs=runs))
    assert (
        task.paired_variance.value
        == task.paired_variance.high
        == pytest.approx(wilson(0, 30)[1])
    )
    assert "the upper limit is used" in task.paired_variance.basis


def test_clusters_of_the_whole_task_count(tmp_path: Path) -> None:
    clustered = small_task(120, clusters=30)
    task = only(plan(clustered, ECHO))
    assert (task.n_clusters, task.design_effect.value, task.design_effect.low) == (
        30,
        4.0,
        1.0,
    )
    alone = only(plan(small_task(120), ECHO))
    assert task.visible_paired.value == pytest.approx(
        2 * (alone.visible_paired.value or 0)
    )
    # A stored run whose neighbours share a cluster, all alike within it: the correlation is 1, so
    # is the worst case.
    run = make_run(
        tmp_path, scores=[float(i // 4 % 2) for i in range(120)], cluster_size=4
    )
    measured = only(plan(clustered, ECHO, runs=[run]))
    assert measured.design_effect.value == pytest.approx(4.0, abs=0.05)
    mixed = make_run(
        tmp_path,
        scores=[float(i % 2) for i in range(120)],
        cluster_size=4,
        name="mixed",
    )
    assert only(plan(clustered, ECHO, runs=[mixed])).design_effect.value == 1.0


def test_draws_are_planned_from_runs_with_several() -> None:
    rng = np.random.default_rng(4)
    chance = {f"Q{i}?": p for i, p in enumerate(rng.beta(1, 1, 60))}

    def answer(request: object) -> str:
        text = (
            request.prompt[-1].text  # type: ignore[attr-defined]
            if not isinstance(request.prompt, str)  # type: ignore[attr-defined]
            else request.prompt  # type: ignore[attr-defined]
        )
        return "yes" if rng.random() < chance[text.split("\n")[-1].strip()] else "no"

    drawing = small_task(60, answer={"max_tokens": 8, "temperature": 1.0, "draws": 6})
    model = ScriptedModel(answer, name="coin", version="1")
    run = evaluate(drawing, model)[0]
    task = only(plan(drawing, model, runs=[run], difference=0.15))
    scores = np.array([r.scores["exact-match"].value for r in run.samples()]).reshape(
        60, 6
    )
    within = variance_components(scores).within
    assert task.draws.planned == 6
    assert task.draws.best.value == 1
    assert "every draw pays for its prompt again" in task.draws.best.basis
    # n items, K draws: (between + 2 within / K) / n, the first K that shows the difference.
    between = max(0.0, (task.paired_variance.value or 0) - 2 * within / 6)
    needed = next(
        (
            k
            for k in range(1, 65)
            if Z * math.sqrt((between + 2 * within / k) / 60) <= 0.15
        ),
        None,
    )
    assert task.draws.needed.value == needed


def test_assumed_draws_by_hand() -> None:
    drawing = small_task(60, answer={"max_tokens": 8, "temperature": 1.0, "draws": 2})
    task = only(
        plan(
            drawing,
            ECHO,
            assume={"variance": 0.3, "within": 0.1, "accuracy": 0.5},
            difference=0.15,
        )
    )
    # between = 0.3 - 2 x 0.1 = 0.1; 60 items show 0.15 where (0.1 + 0.2 / K) <= 60 (0.15 /
    # 2.8016)^2 = 0.172
    assert task.draws.needed.value == 3
    hopeless = only(plan(drawing, ECHO, assume={"variance": 0.3, "within": 0.1}))
    assert hopeless.draws.needed.value is None
    assert "no number of draws" in hopeless.draws.needed.basis


def test_the_average_over_tasks_by_hand() -> None:
    forecast = plan(
        "factual", "demo/small", assume={"variance": 0.2, "design_effect": 1.0}
    )
    sizes = [task.n_total for task in forecast.tasks]
    assert len(sizes) == 7
    expected = Z * math.sqrt(sum(0.2 / n for n in sizes)) / 7
    assert forecast.visible_overall is not None
    assert forecast.visible_overall.value == pytest.approx(expected)
    assert (
        f"The average over the 7 tasks can detect differences of {100 * expected:.1f} points or more"
        in forecast.conclusion
    )


def bad() -> Iterator[tuple[dict[str, object], type[Exception], str]]:
    yield {"difference": 0.0}, ConfigurationError, "above 0"
    yield {"difference": 2}, ConfigurationError, "2 points are 0.02"
    yield {"half_width": float("nan")}, ConfigurationError, "half width must be above 0"
    yield {"power": 1.0}, ConfigurationError, "between 0 and 1"
    yield {"power": 0.3}, ConfigurationError, "missing the difference"
    yield {"level": 95}, ConfigurationError, "between 0 and 1"
    yield {"pilot": 1}, ConfigurationError, "at least 2 items"
    yield {"assume": {"acuracy": 0.7}}, UnknownName, "accuracy"
    yield {"assume": {"accuracy": 7}}, ConfigurationError, "between 0 and 1"
    yield {"assume": {"discordant": 0.01}}, ConfigurationError, "disagree on at least"
    yield {"assume": {"discordant": 0.2, "variance": 0.2}}, ConfigurationError, "either"
    yield {"assume": {"variance": 0.0}}, ConfigurationError, "cannot be 0"
    yield {"runs": ["questons"]}, UnknownName, "Unknown run"
    yield {"pilot": 5, "runs": ["x"]}, ConfigurationError, "not both"
    yield {"limit": 5}, ConfigurationError, "leave out limit"


@pytest.mark.parametrize(
    ("settings", "error", "says"), list(bad()), ids=lambda value: str(value)[:40]
)
def test_what_cannot_be_planned_is_said(
    settings: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        plan("questions.yaml", ECHO, **settings)
    assert not list(Path("home").glob("store.sqlite*"))


def test_runs_must_have_the_task(tmp_path: Path) -> None:
    run: Run = make_run(tmp_path, scores=[1.0, 0.0])
    with pytest.raises(RunError, match="is of the task factual, not of 'questions'"):
        plan("questions.yaml", ECHO, runs=[run])
    other = make_run(tmp_path, scores=[1.0, 0.0], name="broken")
    other.samples_file.write_text("{}\n")
    with pytest.raises(RunError, match="changed after the run"):
        plan("questions.yaml", ECHO, runs=[other])
