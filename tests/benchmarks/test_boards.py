"""The boards of `benchmarks/boards.py`: ranks are those that `leaderboard` gives."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from evalwright import leaderboard

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARKS))
    from decision_questions.records import task_scores, write_run

    _SPEC = importlib.util.spec_from_file_location(
        "boards_command", BENCHMARKS / "boards.py"
    )
    assert _SPEC is not None and _SPEC.loader is not None
    boards: ModuleType = importlib.util.module_from_spec(_SPEC)
    sys.modules["boards_command"] = boards
    _SPEC.loader.exec_module(boards)


def test_the_published_rates_are_of_96_models_and_ties_share_ranks() -> None:
    published = boards.read_published()
    assert len(published.names) == 96
    best, worst = published.true_ranks
    assert best[0] == worst[0] == 1
    tied = np.flatnonzero(np.isclose(published.hallucination_rate, 0.093))
    assert len(tied) > 2
    assert (worst[tied] - best[tied] == len(tied) - 1).all()
    assert (best <= worst).all()


def test_ranks_are_those_of_the_leaderboard(tmp_path: Path) -> None:
    published = boards.read_published()
    few = np.arange(0, 96, 12)
    chosen = boards.Published(
        [published.names[row] for row in few],
        3 * published.hallucination_rate[few],
        published.answer_rate[few],
    )
    structure = boards.Structure((0.7,), (0.2,), 0.2, 0.5, 0.0)
    population = boards.make_population(chosen, structure, seed=1)
    matrix = boards.simulate_board(population, 300, np.random.default_rng(2))
    ranking = boards.rank([matrix])
    runs = [
        write_run(
            tmp_path,
            f"run-{row}",
            {"articles": task_scores(np.nan_to_num(values), missing=missing)},
        )
        for row, (values, missing) in enumerate(
            zip(matrix.values, matrix.missing, strict=True)
        )
    ]
    by_run = {row.run: row.ranks for row in leaderboard(runs).rows}
    assert [by_run[run.id] for run in runs] == list(ranking.ranks)


def test_boards_of_different_models_hold_the_true_ranks() -> None:
    rates = np.array([0.05, 0.10, 0.10, 0.30])
    chosen = boards.Published(list("abcd"), rates, np.array([1.0, 0.99, 0.93, 1.0]))
    population = boards.Population(chosen, np.full(4, 0.6), np.zeros(4))
    results = boards.measure_boards(population, boards=20, articles=2000, seed=0)
    for found in (results.package, results.holm):
        assert found.ranks_inside > 0.9
        assert found.pairs_wrong < 0.2
        assert found.median_width <= 2
        assert found.pairs_separated > 0.8
