"""The best of several runs: corrected, and measured where it was not chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalwright.analysis.best import LEAST_ITEMS, best_runs
from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run
from support.runs import make_run
from support.typed import typed


def runs_of(folder: Path, rates: list[float], n_items: int = 200) -> list[Run]:
    rng = np.random.default_rng(5)
    return [
        make_run(
            folder / "runs",
            scores=[float(score) for score in rng.random(n_items) < rate],
            name=f"run-{number}",
            model=f"demo/{number}",
        )
        for number, rate in enumerate(rates)
    ]


def test_the_best_is_corrected_downwards(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, [0.5, 0.5, 0.5, 0.5])
    (best,) = best_runs(runs)
    means = [run.tasks[0].metrics[0].estimate.value for run in runs]
    assert best.mean == pytest.approx(max(means))
    assert best.label == f"demo/{int(np.argmax(means))}"
    assert 0.4 < best.corrected < best.mean
    assert (best.candidates, best.n, best.confirmed) == (4, 200, None)


def test_confirmation_uses_items_that_the_choice_did_not_see(tmp_path: Path) -> None:
    (best,) = best_runs(runs_of(tmp_path, [0.4, 0.7]), confirm=True)
    confirmed = best.confirmed
    assert confirmed is not None
    assert confirmed.n_chosen_on + confirmed.estimate.n == 200
    assert confirmed.label == "demo/1" and confirmed.second == "demo/0"
    assert confirmed.difference.low > 0


def test_too_few_items_for_halves_are_refused(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, [0.4, 0.7], LEAST_ITEMS - 1)
    with pytest.raises(ConfigurationError, match=f"at least {LEAST_ITEMS}"):
        best_runs(runs, confirm=True)
    with pytest.raises(ConfigurationError, match="two runs"):
        best_runs(runs[:1])


def test_compare_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_of(tmp_path, [0.4, 0.7, 0.5])
    monkeypatch.chdir(tmp_path)
    names = ["run-0", "run-1", "run-2"]
    done = typed("compare", *names, "--confirm")
    assert done.code == 0
    assert "demo/1 is best of 3" in " ".join(done.out.split())
    assert "measured on the other 100" in " ".join(done.out.split())
    assert "luck" not in typed("compare", *names).out
