"""Sets are drawn from the right answers with the chances that they claim, and known again by
name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import UsageError
from evalwright.analysis.judge_validation.drawing import (
    draw_set,
    draw_sets,
    find_set,
    set_file,
    write_set,
)
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from support.judging import judged_run
from support.runs import make_run, rewritten


def test_what_has_no_verdict_is_not_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0, 0.0, None] * 30, name="run")
    found = draw_set(read_verdicts(run), None, "random", 0)
    assert sorted(found.rows) == [i for i in range(90) if i % 3 < 2]
    assert found.left_out == tuple(range(2, 90, 3))
    assert set(found.probabilities) == {1.0}
    with pytest.raises(UsageError, match="between 1 and 60"):
        draw_set(read_verdicts(run), 61, "random", 0)


def test_values_that_are_no_verdicts(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[-3.0, -1.0], name="run")
    with pytest.raises(UsageError, match="run from -3 to -1"):
        read_verdicts(run)
    failed = make_run(tmp_path, scores=[None, None], name="failed")
    with pytest.raises(UsageError, match="no scored answer"):
        read_verdicts(failed)
    with pytest.raises(UsageError, match="Its scorers: score"):
        read_verdicts(run, "scores")


def test_two_runs_share_their_items(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1.0, None, 0.0, 1.0] * 10, name="a")
    b = make_run(tmp_path, scores=[0.0, 1.0, None, 1.0] * 8, name="b", model="demo/b")
    first, second = draw_sets(read_verdicts(a), read_verdicts(b), None, "random", 0)
    assert first.rows == second.rows
    assert sorted(first.rows) == [i for i in range(32) if i % 4 in (0, 3)]
    assert (first.partner, second.partner) == (second.name, first.name)
    other = make_run(tmp_path, scores=[1.0] * 9, name="c", ids="else-{}")
    with pytest.raises(UsageError, match="No item has a verdict both"):
        draw_sets(read_verdicts(a), read_verdicts(other), None, "random", 0)


def test_a_kept_set_is_read_again(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", scores=[1.0, 0.0, None] * 9, name="run")
    beside = make_run(tmp_path / "runs", scores=[1.0], name="beside")
    found = draw_set(read_verdicts(run), 9, "stratified", 3)
    path = write_set(run.folder, found)
    assert find_set(found.name, [run.folder]) == found
    assert find_set(found.name, [beside.folder]) == found
    assert find_set("s00000000", [run.folder]) is None
    data = json.loads(path.read_text())
    assert data["samples_sha256"] == run.data["samples"]["sha256"]
    assert data["design"] == "stratified"
    wrong: list[dict[str, object]] = [
        {"schema": 9},
        {"rows": "x"},
        {"rows": ["x"] * 9},
        {"design": "other"},
    ]
    for broken in ("{", "[]", *(json.dumps({**data, **one}) for one in wrong)):
        set_file(run.folder, found.name).write_text(broken)
        with pytest.raises(UsageError, match="labelling-"):
            find_set(found.name, [run.folder])
    for change in (
        {"rows": [99]},
        {"rows": [1, 1]},
        {"probabilities": [0.0] * 9},
        {"strata": [0]},
    ):
        path.write_text(json.dumps({**data, **change}))
        read = find_set(found.name, [run.folder])
        assert read is not None
        with pytest.raises(UsageError, match="was changed"):
            read.check(27)


def test_of_several_scorers_the_one_that_asks_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    scorers = ["exact-match", "token-f1", "test-scripted-judge"]
    run = judged_run(
        {"one": "yes", "two": "no"},
        lambda item, text: "0.5",
        name="run",
        scorers=scorers,
    )
    verdicts = read_verdicts(run)
    assert (verdicts.scorer, verdicts.graded, verdicts.values.tolist()) == (
        "test-scripted-judge",
        True,
        [0.5, 0.5],
    )
    assert read_verdicts(run, "exact-match").values.tolist() == [1.0, 0.0]
    plain = judged_run(
        {"one": "yes"}, lambda item, text: "1", name="plain", scorers=scorers[:2]
    )
    with pytest.raises(
        UsageError,
        match=r"exact-match, token-f1.*--scorer",
    ):
        read_verdicts(plain)


def test_the_digest_is_of_the_answers_alone(tmp_path: Path) -> None:
    """A run that is made again has other timings, and a judge may change its mind: the labels
    are still of these answers.
    """
    run = make_run(tmp_path, scores=[1.0, 0.0, 1.0], name="run")
    before = read_verdicts(run).digest
    lines = [json.loads(line) for line in run.samples_file.read_text().splitlines()]
    for change, same in (
        ({"timing": {"latency": [9.0]}}, True),
        ({"scores": {"score": {"value": 0.0}}}, True),
        ({"answer": "another"}, False),
    ):
        changed = [{**lines[0], **change}, *lines[1:]]
        run = rewritten(run, "".join(json.dumps(line) + "\n" for line in changed))
        assert (read_verdicts(run).digest == before) is same
