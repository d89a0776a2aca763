"""The coverage settings of `benchmarks/coverage.py` in a short seeded form, and the command
itself.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import mean_interval

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARKS))
    from coverage_settings.registry import Covered, Setting, all_families, all_settings

    FAMILIES = all_families()
    SETTINGS = all_settings()
    _SPEC = importlib.util.spec_from_file_location(
        "coverage_command", BENCHMARKS / "coverage.py"
    )
    assert _SPEC is not None and _SPEC.loader is not None
    command: ModuleType = importlib.util.module_from_spec(_SPEC)
    _SPEC.loader.exec_module(command)


each_setting = pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: setting.name
)


def checked(setting: Setting, trials: int) -> Covered:
    covered = setting.run(12, trials)
    assert len(covered.hits) == len(covered.widths) == trials
    assert not np.isinf(covered.widths).any()
    assert covered.method
    return covered


def most_trials(setting: Setting) -> int:
    return max(6, min(400, setting.short // setting.cost**3))


@each_setting
def test_a_few_trials_do_not_speak_against_the_interval(setting: Setting) -> None:
    """Give or take two Monte Carlo errors; a wrong method may need more trials to be seen.

    The seed is fixed, so what passes once always does.
    """
    covered = checked(setting, max(6, most_trials(setting) // 10))
    assert setting.contrast or setting.within(covered)


@pytest.mark.slow
@each_setting
def test_the_interval_covers(setting: Setting) -> None:
    """400 trials, give or take two Monte Carlo errors; the first 100 are enough where they lie
    within the limits (of a contrast: surely outside of them). The seed is fixed, so what passes
    once always does.
    """
    trials = most_trials(setting)
    for few in (100, trials) if trials == 400 else (trials,):
        covered = checked(setting, few)
        if (
            setting.good(covered)
            if setting.contrast
            else setting.least <= covered.share <= setting.most
        ):
            return
    if setting.contrast:  # the same simulation tells a wrong method from a right one
        assert not setting.within(covered)
    else:
        assert setting.within(covered)


@pytest.mark.parametrize("n", [20, 60, 200])
def test_right_or_wrong_covers_95_percent_on_average(n: int) -> None:
    """No simulation: the sum over all counts is the coverage; a tenth off the quantile would be
    2.5 points.
    """
    found = [mean_interval(np.arange(n) < k) for k in range(n + 1)]
    chances = np.linspace(0.05, 0.95, 181)
    pmf = stats.binom.pmf(np.arange(n + 1)[:, None], n, chances)
    lows = np.array([e.low for e in found])[:, None]
    highs = np.array([e.high for e in found])[:, None]
    covered = np.where((lows <= chances) & (highs >= chances), pmf, 0.0).sum(axis=0)
    assert covered.mean() == pytest.approx(0.95, abs=0.008)
    assert covered.min() > 0.9


def test_a_wrong_interval_is_seen() -> None:
    narrow = Covered(np.arange(2000) % 100 < 90, np.ones(2000), "too narrow")
    assert narrow.share == 0.9
    plain = Setting("any", lambda seed, trials: narrow)
    assert not plain.within(narrow)
    assert not plain.good(narrow)
    assert replace(plain, contrast=True).good(narrow)
    assert command.row(plain, narrow).endswith(
        "| 90.0% | 93 to 97% | 1.000 | 2,000 | 0.7% | OUTSIDE |"
    )
    assert command.row(replace(plain, contrast=True), narrow).endswith(
        "| fails, as it must |"
    )
    sound = Covered(
        np.arange(2000) % 100 < 95, np.full(2000, np.nan), "sound", "a note"
    )
    assert command.row(plain, sound) == (
        "| any | sound (a note) | 95.0% | 93 to 97% |  | 2,000 | 0.5% | holds |"
    )
    assert command.row(replace(plain, contrast=True), sound).endswith(
        "| OUTSIDE: should fail |"
    )
    assert (
        0
        < Covered(np.ones(100, dtype=bool), np.ones(100), "all").monte_carlo_error
        < 0.01
    )


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(BENCHMARKS / "coverage.py"), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=1800)


def test_the_command_prints_and_writes_a_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    old = "| 100 items, right or wrong, p = 0.95 | old row |"
    gone = "| a setting that is gone | old row |"
    page.write_text(
        f"# Page\n<!-- rows of one_model -->\n{old}\n{gone}\n<!-- end of rows -->\nThe end.\n"
    )
    done = _command(
        "--trials",
        "200",
        "--jobs",
        "2",
        "--only",
        "20 items, right or wrong, p = 0.9",
        "--write",
        str(page),
    )
    rows = [line for line in done.stdout.splitlines() if line.startswith("| 20 items")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) == 2
    assert rows[0].startswith("| 20 items, right or wrong, p = 0.9 | Wilson | 9")
    assert rows[1].endswith("| fails, as it must |")
    written = page.read_text()
    assert written.startswith("# Page\n<!-- rows of one_model -->\n")
    assert written.endswith("<!-- end of rows -->\nThe end.\n")
    assert [line for line in written.splitlines() if line in (*rows, old, gone)] == [
        *rows,
        old,
    ]


def test_the_page_has_every_setting_and_holds() -> None:
    """`docs/reference/coverage.md` is what the command printed, whole: no setting is left out for its
    result.
    """
    text = (ROOT / "docs" / "reference" / "coverage.md").read_text(encoding="utf-8")
    rows = {
        cells[0]: cells
        for line in re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
        if (cells := line.split(" | "))
    }
    for setting in SETTINGS:
        assert setting.name in rows, (
            f"docs/reference/coverage.md lacks {setting.name!r}; run benchmarks/coverage.py --write"
        )
        assert rows[setting.name][-1] == (
            "fails, as it must" if setting.contrast else "holds"
        )
