"""Corpus metrics of lm-evaluation-harness's tasks in comparisons: made again from the record,
against sacrebleu.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats

from evalwright import ScriptedModel, compare, evaluate
from evalwright.analysis.comparison import Comparison, read_matrices
from evalwright.core.requests import Generate, Request
from evalwright.models.scripted import last_text
from evalwright.runs.scores import hashed
from evalwright.statistics.jackknife import jackknife_groups

from .conftest import Load, Write

sacrebleu = pytest.importorskip("sacrebleu")
pytest.importorskip("datasets")

COUNT = 30
WORDS = (
    "river", "bends", "near", "an", "old", "stone", "bridge", "where", "boats", "wait", "for", "evening",
    "rain",
)  # fmt: skip
TASK = """
    task: say
    dataset_path: json
    dataset_kwargs: {data_files: {test: tasks/say.jsonl}}
    test_split: test
    doc_to_text: "Say {{n}}:"
    doc_to_target: text
    generation_kwargs: {until: ["."]}
    metric_list: [{metric: acc, aggregation: chrf}, {metric: likelihood, aggregation: ter, higher_is_better: false}]
"""


def text(n: int) -> str:
    return " ".join(random.Random(n).choices(WORDS, k=4 + n % 9))


def says(share: float, n: int) -> str:
    rng = random.Random(f"{share} {n}")
    return " ".join(
        word if rng.random() < share else rng.choice(WORDS) for word in text(n).split()
    )


def model(name: str, share: float) -> ScriptedModel:
    def answer(request: Request) -> str:
        assert isinstance(request, Generate)
        return says(
            share,
            int(
                "".join(
                    c for c in last_text(request.prompt).split(":")[0] if c.isdecimal()
                )
            ),
        )

    return ScriptedModel(answer, name=name, version=f"{share}")


def test_corpus_chrf_against_sacrebleu(write: Write, load: Load) -> None:
    write("say.jsonl", [{"n": n, "text": text(n)} for n in range(COUNT)])
    write("say.yaml", TASK)
    (task,) = load("say")
    runs = [
        evaluate(task, model(name, share), name=name)[0]
        for name, share in (("one", 0.9), ("two", 0.7))
    ]
    found = compare(*runs)
    assert isinstance(found, Comparison)
    main = found.tasks[0].paired
    rows = list(runs[0].rows())
    places = [int(row["metadata"]["doc"]["n"]) for row in rows]
    scores = read_matrices(runs)[0].of_items
    units = scores.units
    keys = scores.keys
    groups = jackknife_groups(
        units[np.searchsorted(keys, [hashed(row["id"]) for row in rows])], 100
    )

    def gap(kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
        there = [n for n, keep in zip(places, kept, strict=True) if keep]
        one, two = (
            sacrebleu.corpus_chrf(
                [says(share, n) for n in there], [[text(n) for n in there]]
            ).score
            for share in (0.9, 0.7)
        )
        return float(one - two)

    count = int(groups.max()) + 1
    without = np.array([gap(groups != each) for each in range(count)])
    error = math.sqrt(
        (count - 1) / count * float(((without - without.mean()) ** 2).sum())
    )
    assert main is not None
    assert main.difference == pytest.approx(gap(groups >= 0))
    assert main.high - main.difference == pytest.approx(
        error * stats.t.ppf(0.975, count - 1)
    )
    assert main.n == COUNT and main.verdict == "better"
    assert [other.metric for other in found.tasks[0].others] == ["likelihood"]
    (ter,) = found.tasks[0].others
    assert ter.lower_is_better and ter.result.difference < 0 and ter.result.high < 0


def test_corpus_metrics_by_name(write: Write, load: Load) -> None:
    write("say.jsonl", [{"n": n, "text": text(n)} for n in range(COUNT)])
    names = ("bleu", "chrf", "ter")
    write(
        "say.yaml",
        f"{TASK.rpartition('metric_list')[0]}metric_list: [{', '.join(f'{{metric: {one}}}' for one in names)}]\n",
    )
    (run,) = evaluate(load("say"), model("one", 0.9), name="named")
    assert run.n_missing == 0
    pairs = [says(0.9, n) for n in range(COUNT)], [[text(n) for n in range(COUNT)]]
    for metric, name in zip(run.tasks[0].metrics, names, strict=True):
        wanted = getattr(sacrebleu, f"corpus_{name}")(*pairs).score
        assert metric.estimate.value == pytest.approx(wanted, rel=1e-9)
