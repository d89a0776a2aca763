"""Boards that go by metadata, and that are ranked at any of their nodes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.board import Board, board_columns, make_board
from evalwright.analysis.board_plan import plan_board, rank_plan
from evalwright.analysis.board_tree import find_in
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.node_ranks import TERMS_OF_NODE
from evalwright.analysis.ranking import rank
from evalwright.analysis.trees import Average
from evalwright.core.errors import EvalwrightError, UnknownName, UsageError
from evalwright.runs.reader import Run, open_run
from support.board_checks import check_nodes, node_of
from support.runs import edited, make_run
from support.tagged_runs import language_metadata, make_tagged_run

TASKS = ("th-reading", "th-safety", "vi-reading", "vi-safety")


def languages(
    folder: Path,
    shares: dict[str, dict[str, float]],
    *,
    n: int = 60,
    without: dict[str, str] | None = None,
    **settings: Any,
) -> list[Run]:
    """A run for each model, with the share of right answers by task."""
    runs = []
    for model, share_by_task in shares.items():
        scores = {
            task: [1] * round(n * share) + [0] * (n - round(n * share))
            for task, share in share_by_task.items()
            if task != (without or {}).get(model)
        }
        metadata = language_metadata(scores)
        runs.append(
            make_tagged_run(
                folder, scores, metadata, model=f"demo/{model}", name=model, **settings
            )
        )
    return runs


SHARES = {
    "a": {"th-reading": 0.9, "th-safety": 0.9, "vi-reading": 0.2, "vi-safety": 0.2},
    "b": {"th-reading": 0.3, "th-safety": 0.3, "vi-reading": 0.9, "vi-safety": 0.9},
}


def order(board: Board) -> list[str]:
    return [row.run for row in board.rows]


def test_tasks_are_grouped_by_their_metadata(tmp_path: Path) -> None:
    board = make_board(languages(tmp_path, SHARES), by=["language", "competency"])
    check_nodes(board)
    assert [node.id for node in find_in(board.tree)] == [
        "overall",
        "overall/Thai",
        "overall/Thai/reading",
        "overall/Thai/reading/th-reading",
        "overall/Thai/Safety",
        "overall/Thai/Safety/th-safety",
        "overall/Vietnamese",
        "overall/Vietnamese/reading",
        "overall/Vietnamese/reading/vi-reading",
        "overall/Vietnamese/Safety",
        "overall/Vietnamese/Safety/vi-safety",
    ]
    thai = node_of(board, "overall/Thai")
    assert thai.keys == {"language": "th"}
    assert thai.metric == "mean of 2 groups"
    values = {
        row.run: estimate.value
        for row, estimate in zip(board.rows, thai.estimates, strict=True)
        if estimate
    }
    assert values == pytest.approx({"a": 0.9, "b": 0.3})
    assert [(key.key, key.values) for key in board.dimensions][:2] == [
        ("language", (("th", "Thai"), ("vi", "Vietnamese"))),
        ("competency", (("reading", "reading"), ("safety", "Safety"))),
    ]
    assert order(board) == ["b", "a"]
    assert board.tree[0].estimates == tuple(row.overall for row in board.rows)


@pytest.mark.parametrize(
    "wanted",
    ["overall/Thai", "Thai", "thai", "language=th", "language=Thai", "th-reading"],
)
def test_any_node_ranks(tmp_path: Path, wanted: str) -> None:
    runs = languages(tmp_path, SHARES)
    board = make_board(runs, by=["language", "competency"], rank_by=wanted)
    check_nodes(board)
    assert order(board) == ["a", "b"]
    assert [row.ranks for row in board.rows] == [(1, 1), (2, 2)]
    ranked = board.headline
    assert ranked.ranks == ((1, 1), (2, 2))
    assert board.is_ranked_elsewhere
    assert any("sorted and ranked by" in note for note in board.notes)
    assert board.as_dict()["rank_by"] == ranked.id


def test_ranks_at_a_task_are_those_of_a_board_of_the_task(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    runs = []
    for model in "abcdef":
        scores = {
            task: (rng.random(80) < 0.3 + 0.1 * i).astype(int).tolist()
            for i, task in enumerate(TASKS)
        }
        runs.append(make_run(tmp_path, scores=scores, model=f"demo/{model}"))
    whole = make_board(runs, rank_by="th-safety")
    alone = make_board(runs, "th-safety.accuracy")
    assert [(row.run, row.ranks, row.letters, row.together) for row in whole.rows] == [
        (row.run, row.ranks, row.letters, row.together) for row in alone.rows
    ]


def test_a_value_without_a_level_of_its_own_ranks_too(tmp_path: Path) -> None:
    board = make_board(languages(tmp_path, SHARES), rank_by="competency=safety")
    check_nodes(board)
    assert order(board) == ["b", "a"]
    assert board.headline.tasks == ("th-safety", "vi-safety")
    assert board.headline.keys == {"competency": "safety"}
    assert board.tree[0].id == "overall"


def test_one_name_has_one_number_beside_another_tree(tmp_path: Path) -> None:
    """`competency=reading` is the node of that name, not a mean of its own beside it."""
    shares = {
        model: {**by_task, "vi-talk": 0.5, "vi-chat": 0.1}
        for model, by_task in SHARES.items()
    }
    runs = languages(tmp_path, shares)
    board = make_board(
        runs,
        by=("language",),
        by_beside=("competency", "language"),
        rank_by="competency=reading",
    )
    named = [
        node for node in find_in(board.tree) if node.keys == {"competency": "reading"}
    ]
    assert [node.id for node in named] == [board.rank_by]
    assert board.rank_by.startswith("By competency/")


def test_scores_below_chance_are_named_and_intervals_stay_in_their_range(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(5)
    runs = []
    for number, share in enumerate((0.02, 0.3, 0.9)):
        scores = {
            f"task-{task}": (rng.random(60) < share).astype(int).tolist()
            for task in range(3)
        }
        runs.append(
            make_run(
                tmp_path,
                scores=scores,
                label=f"m{number}",
                metric="chance-normalised",
                metric_options={"chance-normalised": {"chance": 0.25, "clip": True}},
            )
        )
    board = make_board(runs)
    assert [note for note in board.notes if "below chance" in note] == [
        "0.0 [0.0, 0.0] is a score that is below chance with its whole interval, and counts as"
        " 0: m0 on 3 tasks."
    ]
    for row in board.rows:
        assert row.together is not None and row.overall is not None
        assert 0 <= row.together.low <= row.overall.low
        assert row.overall.high <= row.together.high <= 1


def test_another_metric_of_a_task_ranks(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path,
            scores=scores,
            more_metrics=["mean"],
            model=f"demo/{name}",
            name=name,
        )
        for name, scores in (("a", [1, 0, 0, 0]), ("b", [1, 1, 1, 0]))
    ]
    board = make_board(runs, rank_by="factual.mean")
    assert order(board) == ["b", "a"]
    assert board.headline.metric == "mean"
    assert board.tree[-1] is board.headline
    same = make_board(runs, rank_by="factual.accuracy")
    assert same.rank_by == "factual" and not same.is_ranked_elsewhere


def test_slices_break_a_task_down(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path,
            scores=scores,
            domains=["law", "logic"],
            model=f"demo/{name}",
            name=name,
        )
        for name, scores in (("a", [1, 0] * 30), ("b", [0, 1] * 25 + [1, 1] * 5))
    ]
    board = make_board(runs, by=["domain"])
    check_nodes(board)
    assert [node.id for node in find_in(board.tree)] == [
        "factual",
        "factual/law",
        "factual/logic",
    ]
    law = node_of(board, "factual/law")
    assert (law.kind, dict(law.keys), law.metric) == (
        "slice",
        {"domain": "law"},
        "accuracy",
    )
    recorded = {
        run.id: run.tasks[0].slices["domain"]["law"][0].estimate for run in runs
    }
    assert law.estimates == tuple(recorded[row.run] for row in board.rows)

    by_law = make_board(runs, rank_by="domain=law")
    assert order(by_law) == ["a", "b"]
    assert [row.ranks for row in by_law.rows] == [(1, 1), (2, 2)]
    assert order(make_board(runs, rank_by="domain=logic")) == ["b", "a"]


def test_a_slice_of_several_tasks_is_their_mean(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path,
            scores={"x": [1, 0, 1, 0], "y": [0, 1, 1, 1, 0, 1]},
            domains=["law", "logic"],
        )
    ]
    board = make_board(runs, by=["domain"])
    check_nodes(board)
    law = node_of(board, "overall/law")
    (estimate,) = law.estimates
    assert estimate and estimate.value == pytest.approx((1.0 + 1 / 3) / 2)
    assert estimate.n == 5
    assert [part.tasks for part in law.parts] == [("x",), ("y",)]
    assert law.metric == "mean of 2 tasks"


def test_tasks_and_samples_can_be_mixed(tmp_path: Path) -> None:
    runs = languages(tmp_path, SHARES, domains=["law", "logic"])
    board = make_board(runs, by=["language", "domain"])
    check_nodes(board)
    node = node_of(board, "overall/Thai/law")
    assert (node.kind, dict(node.keys)) == (
        "slice",
        {"language": "th", "domain": "law"},
    )
    assert node.tasks == ("th-reading", "th-safety")
    swapped = make_board(runs, by=["domain", "language"])
    assert {node.id for node in find_in(swapped.tree)} == {
        node.id for node in find_in(board.tree)
    }


def test_a_key_that_some_tasks_have(tmp_path: Path) -> None:
    scores = {"th-reading": [1, 0, 1], "vi-reading": [1, 1, 0], "plain": [0, 0, 1]}
    run = make_tagged_run(tmp_path, scores, language_metadata(scores))
    board = make_board([run], by=["language"])
    check_nodes(board)
    assert [root.id for root in board.tree] == ["overall", "plain"]
    assert any("lacks plain" in note for note in board.notes)
    (overall,) = board.tree[0].estimates
    assert overall and overall.value == pytest.approx(2 / 3)


def test_a_task_without_a_later_key_is_a_part_of_the_node_above(tmp_path: Path) -> None:
    scores = {"th-reading": [1, 0], "th-safety": [1, 1]}
    metadata: dict[str, Any] = language_metadata(scores)
    del metadata["th-safety"]["competency"]
    run = make_tagged_run(tmp_path, scores, metadata)
    board = make_board([run], by=["language", "competency"])
    (thai,) = board.tree[0].parts
    assert [part.title for part in thai.parts] == ["reading", "th-safety"]


def test_a_task_in_two_places_counts_in_both(tmp_path: Path) -> None:
    scores = {"th-reading": [1, 1], "translation": [1, 0]}
    metadata: dict[str, dict[str, Any]] = {
        "th-reading": {"language": "th"},
        "translation": {"language": ["th", "vi"]},
    }
    run = make_tagged_run(tmp_path, scores, metadata)
    board = make_board([run], by=["language"])
    check_nodes(board)
    values = {
        node.id: estimate.value
        for node in find_in(board.tree)
        if (estimate := node.estimates[0])
    }
    assert values["overall/Thai"] == pytest.approx(0.75)
    assert values["overall/Vietnamese"] == pytest.approx(0.5)
    # 0.5 * (0.5 * 1 + 0.5 * 0.5) + 0.5 * 0.5: the translation weighs three quarters
    assert values["overall"] == pytest.approx(0.25 * 1 + 0.75 * 0.5)
    assert board.tree[0].estimates[0] and board.tree[0].estimates[0].n == 4
    again = make_board([run], by=["language"], rank_by="translation")
    assert again.headline.tasks == ("translation",)


def test_runs_with_different_tasks_share_the_tree(tmp_path: Path) -> None:
    runs = languages(tmp_path, SHARES, without={"b": "th-safety"})
    board = make_board(runs, by=["language", "competency"])
    check_nodes(board)
    place = order(board).index("b")
    thai = node_of(board, "overall/Thai")
    assert thai.estimates[place] is None
    assert thai.reasons[place] == "1 of 2 tasks; missing: th-safety"
    vietnamese = make_board(runs, by=["language", "competency"], rank_by="Vietnamese")
    assert order(vietnamese) == ["b", "a"]
    assert [row.ranks for row in vietnamese.rows] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("missing", [{}, {"missing": "ignore"}])
def test_runs_of_a_suite_by_metadata_share_its_tree(
    tmp_path: Path, missing: dict[str, str]
) -> None:
    tree = {"by": "language", "name": "Asia", **missing}
    runs = languages(tmp_path, SHARES, without={"b": "th-safety"}, tree=tree)
    board = make_board(runs)
    check_nodes(board)
    place = order(board).index("b")
    thai = node_of(board, "Asia/Thai")
    assert (thai.estimates[place] is None) == (not missing)
    assert thai.reasons[place] == "1 of 2 tasks; missing: th-safety"


def test_units_are_not_mixed(tmp_path: Path) -> None:
    scores: dict[str, list[float]] = {
        "th-reading": [1, 0, 1],
        "vi-reading": [1, 1, 0],
        "th-prose": [-5.0, -4.0],
        "vi-prose": [-3.0, -4.0],
    }
    run = make_tagged_run(
        tmp_path,
        scores,
        language_metadata(scores),
        metric={"th-prose": "token-perplexity", "vi-prose": "token-perplexity"},
    )
    board = make_board([run], by=["language"])
    check_nodes(board)
    assert [root.tasks for root in board.tree] == [
        ("th-reading", "vi-reading"),
        ("th-prose", "vi-prose"),
    ]
    assert board.tree[0].estimates[0] is not None
    assert board.headline.id == "overall"
    prose = make_board([run], by=["language"], rank_by="th-prose")
    assert [task.name for task in prose.tasks] == ["th-prose", "vi-prose"]
    assert prose.rows[0].ranks == (1, 1)


def test_a_key_that_nothing_has(tmp_path: Path) -> None:
    run = make_tagged_run(
        tmp_path,
        {"th-reading": [1, 0]},
        language_metadata({"th-reading": 0}),
        domains=["law"],
    )
    with pytest.raises(UnknownName) as raised:
        make_board([run], by=["langauge"])
    assert str(raised.value) == (
        "Unknown metadata key 'langauge'. Did you mean 'language'? Keys of the tasks:"
        " competency and language; of their samples: domain. A key with more than 200"
        " values makes no slices."
    )


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("Thia", "Did you mean 'Thai'?"),
        ("language=zz", "Unknown node to rank by 'language=zz'."),
        ("reading", "can be 2 nodes of the board: 'overall/Thai/reading' and"),
        ("th-reading.acuracy", "Did you mean 'th-reading.accuracy', "),
        ("\x1b[31m=\n", "Unknown"),
        ("=", "Unknown node to rank by '='."),
        ("overall/", "Unknown node"),
    ],
)
def test_a_node_that_does_not_exist(tmp_path: Path, wanted: str, words: str) -> None:
    runs = languages(tmp_path, SHARES)
    with pytest.raises(UsageError) as raised:
        make_board(runs, by=["language", "competency"], rank_by=wanted)
    assert words in str(raised.value)
    assert "\x1b" not in str(raised.value)


HOSTILE = ["<script>", "a/b", "a", "=", "th", "overall", "|*_`", "‮x", "x" * 300]


def test_hostile_values_make_nodes_of_their_own(tmp_path: Path) -> None:
    scores = {f"t{i}": [1, 0] for i in range(len(HOSTILE))} | {"a": [1, 1]}
    metadata = {f"t{i}": {"k/=": value} for i, value in enumerate(HOSTILE)}
    run = make_tagged_run(tmp_path, scores, metadata)
    board = make_board([run], by=["k/="])
    check_nodes(board)
    assert {node.keys["k/="] for node in board.tree[0].parts} == {*HOSTILE}
    for node in find_in(board.tree):
        ranked = make_board([run], by=["k/="], rank_by=node.id)
        assert ranked.rank_by == node.id


def test_everything_missing(tmp_path: Path) -> None:
    scores: dict[str, list[float | None]] = {"th-reading": [None], "vi-reading": [None]}
    run = make_tagged_run(tmp_path, scores, language_metadata(scores), domains=["law"])
    for by in (["language"], ["domain"], ["language", "domain"]):
        try:
            check_nodes(make_board([run], by=by))
        except EvalwrightError:  # a key of samples that have no score makes no slice
            assert by == ["domain"]
    board = make_board([run], by=["language"], rank_by="Thai")
    assert board.rows[0].ranks is None
    assert any("without ranks" in note for note in board.notes)


def test_a_published_average_sorts_without_ranks(tmp_path: Path) -> None:

    runs = languages(tmp_path, SHARES)
    metric = {
        "label": "score", "kind": "mean", "scorer": "", "low": None, "high": None,
        "level": 0.95, "n": 240, "n_missing": 0, "n_clusters": None,
        "standard_error": None, "method": "as published",
    }  # fmt: skip
    for run, value in zip(runs, (0.7, 0.6), strict=True):
        with edited(run.folder) as record:
            record["groups"] = [
                {
                    "name": "harness:ALL",
                    "label": "ALL",
                    "tasks": list(TASKS),
                    "metrics": [{**metric, "value": value}],
                    "average": "",
                }
            ]

    board = make_board([open_run(run.folder) for run in runs], rank_by="ALL")
    check_nodes(board)
    assert order(board) == ["a", "b"]
    assert [row.ranks for row in board.rows] == [None, None]
    assert board.headline.ranks == ()
    assert any(
        note.startswith(
            "Models are sorted by 'harness:ALL' (as published), without ranks: another"
        )
        for note in board.notes
    )
    assert not any("Models without a rank" in note for note in board.notes)


def test_further_nodes_have_ranks_while_they_are_cheap(tmp_path: Path) -> None:

    runs = languages(tmp_path, SHARES)
    board = make_board(runs, by=["language"], ranks_below=True)
    ranked = {node.id: node.ranks for node in find_in(board.tree) if node.ranks}
    assert ranked["overall/Thai"] == ((2, 2), (1, 1))
    assert len(ranked) == len(list(find_in(board.tree)))
    plan = plan_board(runs, board_columns(runs, None), None, "fixed", ["language"])
    # One pair of models: on four tasks at the root, on two at the outermost further node.
    root_terms = 4 + TERMS_OF_NODE
    of_two = 2 + TERMS_OF_NODE
    one, first_ranks = rank_plan(plan, True, root_terms + of_two)
    assert [node.id for node in find_in(one.roots) if node.ranks] == ["overall/Thai"]
    none, ranks = rank_plan(plan, True, 0)
    assert not any(node.ranks for node in find_in(none.roots))
    # The node that sorts the board is ranked whatever it takes.
    assert ranks == first_ranks
    assert ranks[0] is not None


def test_a_board_ranked_at_a_group_has_the_ranks_of_the_whole_too(
    tmp_path: Path,
) -> None:
    runs = languages(tmp_path, SHARES)
    whole = make_board(runs, by=["language"], ranks_below=True)
    thai = make_board(runs, by=["language"], rank_by="Thai", ranks_below=True)
    assert thai.rank_by == "overall/Thai"

    def ranks(board: Board) -> dict[str, dict[str, tuple[int, int] | None]]:
        labels = order(board)
        return {
            node.id: dict(zip(labels, node.ranks, strict=True))
            for node in find_in(board.tree)
        }

    assert ranks(thai) == ranks(whole)


def test_another_metric_has_averages_too(tmp_path: Path) -> None:
    scores = {"th-reading": [1, 0, 1], "vi-reading": [1, 1, 0]}
    run = make_tagged_run(
        tmp_path, scores, language_metadata(scores), more_metrics=["mean"]
    )
    board = make_board([run], "mean", by=["language"])
    check_nodes(board)
    (estimate,) = node_of(board, "overall/Thai").estimates
    assert estimate and math.isclose(estimate.value, 2 / 3)


def test_a_metric_without_a_better_direction_sorts_without_ranks(
    tmp_path: Path,
) -> None:
    runs = [
        make_run(
            tmp_path,
            scores={"x": [1, 0]},
            more_metrics=["mean"],
            model=f"demo/{name}",
            name=name,
        )
        for name in "ab"
    ]
    for run in runs:
        with edited(run.folder) as record:
            for task in record["tasks"]:
                task["metric_specs"].append(
                    {"label": "words", "kind": "mean", "scorer": "words", "options": {}}
                )
                task["scorers"].append(
                    {"name": "words", "kind": "words", "options": {}}
                )
                task["metrics"].append(
                    {**task["metrics"][1], "label": "words", "scorer": "words"}
                )
    plan = plan_board(runs, board_columns(runs, None), None, "fixed", (), "x.mean")
    assert plan.units[0].ranked_node == "x.mean"
    runs = [open_run(run.folder) for run in runs]
    words = plan_board(runs, board_columns(runs, None), None, "fixed", (), "x.words")
    assert words.units[0].why_unranked == "neither higher nor lower values are better"


ALL_RIGHT = [[1] * 4] * 6
ONE_WRONG = [*ALL_RIGHT[:5], [1, 1, 1, 0]]


@pytest.mark.parametrize("tiny", [ALL_RIGHT, [[0] * 4] * 6, ONE_WRONG])
def test_a_tiny_task_without_spread_leaves_models_apart(
    tmp_path: Path, tiny: list[list[int]]
) -> None:
    rng = np.random.default_rng(0)
    runs = []
    for number, share in enumerate((0.35, 0.45, 0.5, 0.6, 0.7, 0.9)):
        scores: dict[str, Any] = {
            f"task-{task}": (rng.random(60) < share).astype(int).tolist()
            for task in range(3)
        }
        scores["tiny"] = tiny[number]
        runs.append(
            make_run(
                tmp_path,
                scores=scores,
                label=f"m{number}",
                metric="chance-normalised",
                metric_options={"chance-normalised": {"chance": 0.25}},
            )
        )
    board = make_board(runs)
    worst = next(row for row in board.rows if row.label == "m0")
    assert worst.ranks is not None
    assert worst.ranks[0] > 1
    assert not any("have no interval" in note for note in board.notes)
    for row in board.rows:
        assert row.together is not None
        assert math.isfinite(row.together.low)

    # The board says of each pair what a comparison of the two says.
    compared = compare_runs(runs[0], runs[5]).overall
    assert compared is not None
    assert compared.p_value < 0.001
    assert compared.low < compared.difference < compared.high < 0


def test_tasks_with_different_ranges_are_tested_as_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    runs = []
    for number, share in enumerate((0.3, 0.9)):
        scores: dict[str, Any] = {
            f"task-{task}": (rng.random(60) < share).astype(int).tolist()
            for task in range(2)
        }
        scores["tiny"] = [1, 1, 1, 1]
        runs.append(
            make_run(
                tmp_path,
                scores=scores,
                label=f"m{number}",
                metric={"task-0": "chance-normalised"},
                metric_options={"chance-normalised": {"chance": 0.25}},
            )
        )
    board = make_board(runs)
    assert [row.ranks for row in board.rows] == [(1, 1), (2, 2)]
    average = board_average(runs)
    both = average.difference()
    pairs = rank(average.samples).pairs()
    assert math.isclose(pairs[0].p_value, both.p_value, rel_tol=1e-6)


def board_average(runs: list[Run]) -> Average:
    plan = plan_board(runs, board_columns(runs, None), None, "fixed")
    average = plan.units[0].scores.average
    assert average is not None
    return average
