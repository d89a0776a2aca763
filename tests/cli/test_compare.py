"""`compare` as it is typed: two runs, several, gates and their exit codes, files, and what is
refused.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evalwright.core.samples import Score
from support.runs import make_run
from support.typed import typed

DROP = "accuracy drops by more than 0.02"


@pytest.fixture(autouse=True)
def _runs(folder: Path) -> None:
    for name, right in (("a", 36), ("b", 20), ("c", 34), ("same", 36)):
        scores = [1.0] * right + [0.0] * (40 - right)
        make_run(
            folder / "runs",
            scores=scores,
            name=name,
            model=f"demo/{name}",
            domains=["x", "y"],
        )


def test_two_runs_with_slices_flips_and_equivalence() -> None:
    done = typed(
        "compare", "a", "b", "--slice", "domain", "--flips", "2", "--equivalent", "0.1"
    )
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert "factual by domain" in text
    assert "Benjamini-Hochberg over the 2 values of 'domain'" in text
    assert "item-21" in done.out and "item-22" not in done.out
    assert "were not shown to be equivalent within 10 points" in text
    assert (
        "the mean difference A - B for items drawn like these, paired by item" in text
    )
    assert "score differently" not in typed("compare", "a", "b", "--flips", "0").out


def test_small_slices_are_counted_in_a_line_and_findings_come_first(
    folder: Path,
) -> None:
    domains = (
        ["plain"] * 20 + ["unlike"] * 20 + [f"few {number}" for number in range(6)]
    )
    for name, unlike in (("one", 20), ("two", 0)):
        make_run(
            folder / "runs",
            scores=[1.0] * 20 + [1.0] * unlike + [0.0] * (20 - unlike) + [1.0] * 6,
            name=name,
            domains=domains,
        )
    by_domain = typed("compare", "one", "two", "--slice", "domain")
    text = " ".join(by_domain.out.split())
    assert (by_domain.code, by_domain.err) == (0, "")
    assert by_domain.out.index("  unlike") < by_domain.out.index("  plain")
    assert "few 1" not in text
    assert (
        "6 of the 8 values of 'domain' have under 5 items, or nothing to test, and no"
        " finding (6 items): --all-slices shows them."
    ) in text
    assert "over the 8 values" in text

    all_slices = typed("compare", "one", "two", "--slice", "domain", "--all-slices")
    assert all(f"few {number}" in all_slices.out for number in range(6))
    assert "--all-slices" not in all_slices.out


def test_a_run_shows_fourteen_slices_and_pooled_ones_without_an_empty_interval(
    folder: Path,
) -> None:
    names = [f"area {number}" for number in range(14)]
    make_run(
        folder / "runs",
        scores=[1.0, 0.0] * 42 + [0.0] * 8,
        name="areas",
        domains=names * 6 + ["few"] * 4 + ["fewer"] * 4,
        cluster_size=2,
    )
    shown = typed("runs", "show", "areas", "--details").out
    assert all(f"  {name} " in shown for name in names)
    assert re.search(r"2 values with under 5 items each +0\.0 +8", shown)
    assert "[n/a]" not in shown


@pytest.mark.parametrize(
    ("how", "says"),
    [("holm", "Holm over the 2 values"), ("none", "tested at 5% alone")],
)
def test_how_slices_are_adjusted_is_chosen_and_said(how: str, says: str) -> None:
    done = typed("compare", "a", "b", "--slice", "domain", "--slices-adjust", how)
    assert done.code == 0 and says in " ".join(done.out.split())
    assert typed("compare", "a", "b", "--slices-adjust", how).code == 2


def test_tasks_as_a_sample_of_tasks(folder: Path) -> None:
    rates = {"a": (30, 22, 34), "b": (26, 12, 20), "c": (20, 20, 20)}
    for name, right in rates.items():
        scores = {
            f"t{place}": [1.0] * n + [0.0] * (40 - n) for place, n in enumerate(right)
        }
        make_run(
            folder / "runs", scores=scores, name=f"three-{name}", model=f"demo/{name}"
        )
    command = ("compare", "three-a", "three-b", "--json")
    rule = "overall drops by more than 5 points"
    both = (
        typed(*command, "--tasks-are", are, "--fail-if", rule)
        for are in ("fixed", "sample")
    )
    fixed, sample = (json.loads(done.out) for done in both)
    for said in ("mean of these 3 tasks", "scores 23.3 points higher"):
        assert said in fixed["conclusion"]
    assert sample["conclusion"].startswith(
        "Over tasks like these no significant difference"
    )
    assert "mean of 3 tasks as a sample, 120 items" in sample["conclusion"]
    assert "over tasks like these 3" in sample["estimand"]
    assert (
        sample["overall"]["high"] > fixed["overall"]["high"]
        and sample["overall"]["tasks_are"] == "sample"
    )
    assert fixed["gates"][0]["failed"] and not sample["gates"][0]["failed"]
    assert "as a sample" in sample["gates"][0]["outcomes"][0]["sentence"]
    done = typed(
        "compare", "three-a", "three-b", "three-c", "--tasks-are", "sample", "--json"
    )
    several = json.loads(done.out)
    assert several["conclusion"].startswith("Over tasks like these ")
    assert several["overall"]["correction"].endswith("for tasks like these")
    assert several["overall"]["pairs"][0]["high"] > sample["overall"]["high"]
    board = [
        json.loads(
            typed("leaderboard", "three-a", "three-b", "--tasks-are", are, "--json").out
        )
        for are in ("fixed", "sample")
    ]
    widths = [
        one["rows"][0]["overall"]["high"] - one["rows"][0]["overall"]["low"]
        for one in board
    ]
    assert widths[1] > widths[0]
    assert any("about tasks like these" in note for note in board[1]["notes"])
    assert [row["ranks"] for row in board[1]["rows"]] == [[1, 2], [1, 2]]
    for refused in (
        ("compare", "a", "b"),
        ("leaderboard", "a", "b"),
        ("compare", "a", "b", "c"),
    ):
        done = typed(*refused, "--tasks-are", "sample")
        assert (
            done.code == 2
            and "need a mean over at least 3 tasks, but there is none" in done.err
        )


def test_three_runs_and_a_baseline() -> None:
    done = typed("compare", "a", "b", "c")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Comparison of 3 runs, all pairs")
    data = json.loads(
        typed(
            "compare", "a", "b", "c", "--baseline", "c", "--slice", "domain", "--json"
        ).out
    )
    assert data["baseline"] == "c"
    assert [(pair["a"], pair["b"]) for pair in data["tasks"][0]["pairs"]] == [
        (0, 2),
        (1, 2),
    ]
    assert len(data["slices"]) == 2


def test_a_gate_decides_the_exit_code() -> None:
    assert typed("compare", "a", "b", "--fail-if", DROP).code == 1
    assert typed("compare", "a", "c", "--fail-if", DROP).code == 0
    assert (
        typed("compare", "a", "c", "--fail-if", DROP, "--gate", "not-ruled-out").code
        == 1
    )
    assert (
        typed("compare", "b", "a", "--fail-if", DROP, "--gate", "not-ruled-out").code
        == 0
    )
    assert typed("compare", "a", "same", "--fail-if", "n_missing is above 0").code == 0
    two = typed(
        "compare", "b", "a", "--fail-if", DROP, "--fail-if", "accuracy is above 50%"
    )
    assert two.code == 1
    assert "FAILED" in two.out and "passed" in two.out
    assert "1 of 2 failed" in two.out


def test_every_other_run_is_held_against_the_first_or_the_baseline() -> None:
    done = typed("compare", "a", "b", "c", "--fail-if", DROP, "--json")
    gates = json.loads(done.out)["gates"]
    assert [(gate["a"], gate["b"], gate["failed"]) for gate in gates] == [
        ("a", "b", True),
        ("a", "c", False),
    ]
    assert "Bonferroni over 2 tests" in gates[0]["outcomes"][0]["sentence"]
    assert done.code == 1
    done = typed(
        "compare", "a", "b", "c", "--baseline", "b", "--fail-if", DROP, "--json"
    )
    assert [gate["b"] for gate in json.loads(done.out)["gates"]] == ["a", "c"]
    assert done.code == 0


def test_files_are_written_beside_what_is_shown() -> None:
    done = typed(
        "compare", "a", "b", "--fail-if", DROP, "--junit", "out/gate.xml", "--json-file", "out/compare.json"
    )  # fmt: skip
    assert done.code == 1
    assert done.err == "Written: out/gate.xml\nWritten: out/compare.json\n"
    suite = ElementTree.fromstring(Path("out/gate.xml").read_bytes())[0]
    assert suite.get("failures") == "1"
    data = json.loads(Path("out/compare.json").read_text())
    assert data["gates"][0]["failed"] is True
    assert data["tasks"][0]["paired"]["discordant"] == [16, 0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("a",), "two runs or more"),
        (("a", "z"), "Unknown run 'z'"),
        (
            ("a", "b", "--fail-if", "accuracy falls"),
            'For example: "accuracy drops by more than 0.02"',
        ),
        (("a", "b", "--fail-if", "acuracy differs"), "Did you mean 'accuracy'"),
        (("a", "b", "--fail-if", "factual.acuracy differs"), "'factual.accuracy'"),
        (
            ("a", "b", "--gate", "not-ruled-out", "--fail-if", "accuracy differs"),
            "has no margin",
        ),
        (("a", "b", "--gate", "maybe"), "not-ruled-out"),
        (("a", "b", "--junit", "x.xml"), "--junit can only be used with --fail-if"),
        (("a", "b", "--slice", "domian"), "Did you mean 'domain'?"),
        (("a", "b", "--slice", "level"), "The samples have domain."),
        (("a", "b", "--equivalent", "0"), "smallest difference that would matter"),
        (("a", "b", "c", "--equivalent", "0.1"), "pair by pair"),
        (("a", "b", "c", "--baseline", "same"), "must be one of the runs"),
        (("a", "b", "a"), "named more than once"),
        (("a", "b", "--flips", "-1"), "--flips"),
        (("a", "b", "--json-file", "runs/a"), "cannot be written"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], says: str) -> None:
    done = typed("compare", *arguments)
    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_metric_by_name_and_the_others_beside_the_main_one(folder: Path) -> None:
    for name, right in (("p", 30), ("q", 12)):
        labels = [(float(i % 3), float(i % 3 if i < right else 0)) for i in range(40)]
        scores = [
            Score(float(i < right), parts={"gold": gold, "predicted": said})
            for i, (gold, said) in enumerate(labels)
        ]
        more: dict[str, Any] = {"metric": "macro-f1", "more_metrics": ["accuracy"]}
        make_run(
            folder / "runs", scores=scores, name=name, model=f"demo/{name}", **more
        )
    done = typed("compare", "p", "q")
    assert (done.code, done.err) == (0, "")
    text = " ".join(done.out.split())
    assert (
        "factual (macro-f1)" in text
        and "jackknife t (G = 40)" in text
        and "n = 40" in text
    )
    assert "factual, also accuracy: A 75.0, B 30.0, A - B +45.0" in text
    assert "They also differ significantly by 'accuracy'" in text
    assert "not a mean" not in text
    for name in ("accuracy", "factual.accuracy"):
        task = json.loads(typed("compare", "p", "q", "--metric", name, "--json").out)[
            "tasks"
        ][0]
        assert (task["metric"], task["paired"]["difference"], task["others"]) == (
            "accuracy",
            0.45,
            [],
        )
    several = typed("compare", "p", "q", "a", "--metric", "accuracy")
    assert several.code == 0 and "factual (accuracy)" in several.out
    gated = typed(
        "compare", "p", "q", "--fail-if", "macro-f1 drops by more than 5 points"
    )
    assert gated.code == 1 and "factual, also accuracy" in gated.out
    unknown = typed("compare", "p", "q", "--metric", "acuracy")
    told = "Unknown metric 'acuracy'. Did you mean 'accuracy' or 'factual.accuracy'?"
    assert unknown.code == 2 and told in unknown.err
    assert "--metric" in typed("compare", "p", "--metric", "accuracy").err
    board = typed("leaderboard", "p", "q", "--metric", "accuracy", "--json")
    assert json.loads(board.out)["tasks"][0]["metric"] == "accuracy"
    assert typed("leaderboard", "p", "q", "--metric", "f1").code == 2


def test_one_unit_in_one_table(folder: Path) -> None:
    metric = {"quiz": "accuracy", "prose": "word-perplexity"}
    rows = {"a": [-20.0, -30.0, -25.0], "b": [-21.0, -29.0, -28.0]}
    for name, prose in rows.items():
        scores = {"quiz": [1.0, 0.0, 1.0], "prose": prose}
        make_run(
            folder / "runs",
            scores=scores,
            name=f"mixed-{name}",
            model=f"demo/{name}",
            metric=metric,
        )
    tables = typed("compare", "mixed-a", "mixed-b").out.split("A - B")
    assert "quiz (accuracy)" in tables[1] and "prose" not in tables[1]
    assert "prose (word-perplexity" in tables[2]
    files = ("--csv", "board.csv", "--json-file", "board.json", "--html", "board.html")
    done = typed("leaderboard", "mixed-a", "mixed-b", *files)
    assert done.code == 0
    header, *lines = (folder / "board.csv").read_text().splitlines()
    assert "quiz" in header and "prose_low" in header and len(lines) == 2
    columns = json.loads((folder / "board.json").read_text())["columns"]
    assert [(column["name"], column["metric"]) for column in columns] == [
        ("quiz", "accuracy"),
        ("prose", "word-perplexity"),
    ]
    assert "word-perplexity" in (folder / "board.html").read_text()
    assert done.out.index("quiz") < done.out.index("word-perplexity")


def test_a_rule_about_one_run_gates_a_single_run(tmp_path: Path) -> None:
    passing = typed("compare", "a", "--fail-if", "n_missing is above 0")
    assert passing.code == 0, passing.text
    assert "Gate 'shown' of a: passed." in " ".join(passing.out.split())
    failing = typed(
        *("compare", "a", "--fail-if", "accuracy is below 99%", "--junit", "one.xml"),
        "--json",
    )
    assert failing.code == 1, failing.text
    assert json.loads(failing.out)["gates"][0]["failed"] is True
    assert 'name="a"' in Path("one.xml").read_text()
    comparing = typed("compare", "a", "--fail-if", "accuracy differs")
    assert comparing.code == 2
    assert "compares two runs: name the reference first" in " ".join(
        comparing.err.split()
    )


def test_an_exact_tie_is_not_a_difference_that_more_items_would_show(
    tmp_path: Path,
) -> None:
    halves = [1.0, 0.0] * 20
    make_run(Path("runs"), scores=halves, name="even", model="demo/even")
    make_run(Path("runs"), scores=halves[::-1], name="odd", model="demo/odd")
    text = " ".join(typed("compare", "even", "odd").out.split())
    assert "difference of 0.0" not in text
    assert "The two score the same here" in text


def test_a_gate_without_its_reference_says_how_one_is_made_and_kept() -> None:
    done = typed("compare", "released", "a", "--fail-if", "accuracy differs")
    assert done.code == 2
    text = " ".join(done.err.split())
    assert "Unknown run 'released'" in text
    assert "--name released" in text and "cache" in text
    unknown_candidate = typed(
        "compare", "a", "candidat", "--fail-if", "accuracy differs"
    )
    assert "would be the reference" not in unknown_candidate.err


def test_a_comparison_of_many_tasks_opens_with_its_answer(folder: Path) -> None:
    for name, right in (("strong", 36), ("weak", 12)):
        scores = [1.0] * right + [0.0] * (40 - right)
        make_run(
            folder / "runs",
            scores={f"task-{number}": scores for number in range(9)},
            more_metrics=["hallucination-rate"],
            name=name,
            model=f"demo/{name}",
        )
    brief = typed("compare", "strong", "weak")
    assert (brief.code, brief.err) == (0, "")
    answer = "demo/strong scores 60.0 points higher than demo/weak"
    assert brief.out.index(answer) < brief.out.index("task-0")
    text = " ".join(brief.out.split())
    assert "hallucination-rate on 9 of 9 tasks" in text
    assert "216 higher in A, 0 higher in B. --details lists some of each task." in text
    assert "also differ significantly on 9 of 9 tasks" in text
    assert "item-12" not in text

    details = typed("compare", "strong", "weak", "--details").out
    assert "task-0, also hallucination-rate" in details
    assert "item-12" in details
