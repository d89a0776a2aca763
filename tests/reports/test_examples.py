"""What pages take from samples, against plain loops over the same records."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from compat.hhem.hhem_trees import PLACEHOLDERS, REFUSAL, Line, Model, text_of
from evalwright.compat.hhem.importing import import_hhem
from evalwright.reports.documents.model_page import LONGEST_TEXT_CHARS, read_samples
from support.runs import make_run


def test_outcomes_and_the_surest_inconsistencies(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [REFUSAL, PLACEHOLDERS[0], "too short"]
    lines = [
        Line(
            i,
            rng.choice(texts) if rng.random() < 0.3 else text_of(i),
            round(rng.random(), 2),
        )
        for i in range(1, 201)
    ]
    Model().write(tmp_path / "tree", lines)
    (run,) = import_hhem(tmp_path / "tree", tmp_path / "runs")[0]
    rows = list(run.rows())
    outcomes, examples = read_samples(run, 7)
    found = {
        (outcome.task, outcome.scorer): dict(outcome.counts) for outcome in outcomes
    }
    labels = Counter(row["scores"]["answered"]["label"] for row in rows)
    assert found == {("summary-faithfulness", "answered"): dict(labels)}
    wrong = [
        row for row in rows if row["scores"].get("consistency", {}).get("value") == 0
    ]
    wanted = sorted(
        wrong,
        key=lambda row: (row["scores"]["consistency"]["parts"]["score"], row["index"]),
    )[:7]
    assert [example.id for example in examples] == [row["id"] for row in wanted]
    assert examples[0].texts == (("Answer", wanted[0]["answer"]),)
    assert read_samples(run, 0)[1] == []


def test_examples_of_questions_and_their_texts(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, scores=[1, 0, None, 0], text="z" * (LONGEST_TEXT_CHARS + 50)
    )
    outcomes, examples = read_samples(run, 5)
    assert outcomes[0].counts == (("incorrect", 2), ("correct", 1))
    assert [example.id for example in examples] == ["item-1", "item-3"]
    texts = dict(examples[0].texts)
    assert (texts["Input"], texts["Target"]) == ("Question 1 of factual?", "yes")
    assert texts["Answer"] == "z" * LONGEST_TEXT_CHARS + " …"
