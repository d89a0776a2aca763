"""How often the intervals hold the truth, where it is known: a Markdown table of simulations.

    python benchmarks/coverage.py [--trials 2000] [--only WORD ...] [--seed 0] [--list]

Coverage of a 95% interval should be 95%. Each row makes data from a known truth many times, asks the package for its
interval and counts. `--only` keeps the settings whose names have one of the words. The settings are in
`coverage_settings/`; a dear one takes fewer trials, as the table says. The exit status is 1 where a coverage lies outside
the limits of its setting by more than two Monte Carlo errors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from coverage_settings.registry import Setting, all_settings

HEAD = """| setting | method | coverage | aim | mean width | trials | Monte Carlo error |
|---|---|---|---|---|---|---|"""


def row(setting: Setting, seed: int, trials: int) -> tuple[str, bool]:
    """The table's row of a setting and whether its coverage lies within its limits."""
    covered = setting.run(seed, max(50, trials // setting.cost))
    good = setting.within(covered)
    cells = [
        setting.name,
        covered.method,
        f"{covered.share:.1%}" + ("" if good else " (!)"),
        f"{100 * setting.least:g} to {100 * setting.most:g}%",
        f"{np.mean(covered.widths):.3f}",
        f"{len(covered.hits):,}",
        f"{covered.monte_carlo_error:.1%}",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", good


def chosen(words: Sequence[str]) -> list[Setting]:
    """The settings whose names have one of `words`, all if there are none."""
    return [each for each in all_settings() if not words or any(word in each.name for word in words)]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--list", action="store_true", help="print the names of the settings")
    given = parser.parse_args()
    settings = chosen(given.only)
    if not settings:
        parser.error(f"no setting has {' or '.join(given.only)} in its name; --list shows the names")
    if given.trials < 1:
        parser.error("--trials must be at least 1")
    if given.list:
        print("\n".join(each.name for each in settings))
        return 0
    print(HEAD, flush=True)
    outside = 0
    for setting in settings:
        line, good = row(setting, given.seed, given.trials)
        print(line, flush=True)
        outside += not good
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
