"""How often the intervals hold the truth, where it is known: Markdown tables of simulations.

    python -m benchmarks coverage [--trials 2000] [--only WORD ...] [--seed 0] [--jobs 1]
        [--list] [--write PAGE]

Coverage of a 95% interval should be 95%. Each row makes data from a known truth many times, asks
the package for its interval and counts. `--only` keeps the settings whose names, or whose family's,
have one of the words. The settings are in `coverage_settings/`; a dear one takes fewer trials, as
the table says. `--write` puts the rows into a page between the comments that name their family, row
by row, and leaves the rows that were not run as they are. The exit status is 1 where a coverage
lies outside the limits of its setting by more than two Monte Carlo errors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from measuring import option_parser

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy loads: one process is one core

import numpy as np

from coverage_settings.registry import Covered, Family, Setting, all_families

HEAD = """| setting | method | coverage | aim | mean width | trials | Monte Carlo error | verdict |
|---|---|---|---|---|---|---|---|"""
SUMMARY = """| family | settings | lowest coverage | median coverage | lowest of the known method \
| median width, to the known method's |
|---|---|---|---|---|---|"""
_FEWEST = 50


def measure(family: str, name: str, seed: int, trials: int) -> Covered:
    """Run one setting, found by its names (so that another process can)."""
    setting = next(
        s
        for f in all_families()
        if f.name == family
        for s in f.settings
        if s.name == name
    )
    return setting.run(seed, max(_FEWEST, trials // setting.cost))


def row(setting: Setting, covered: Covered) -> str:
    """The table's row of a setting."""
    good = setting.good(covered)
    if setting.contrast:
        verdict = "fails, as it must" if good else "OUTSIDE: should fail"
    else:
        verdict = "holds" if good else "OUTSIDE"
    wide = covered.widths[np.isfinite(covered.widths)]
    method = covered.method + (f" ({covered.note})" if covered.note else "")
    cells = [
        setting.name,
        method,
        f"{covered.share:.1%}",
        f"{100 * setting.least:g} to {100 * setting.most:g}%",
        (f"{wide.mean():.3f}" if len(wide) else "") + _known_method_text(covered),
        f"{len(covered.hits):,}",
        f"{covered.monte_carlo_error:.1%}",
        verdict,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _known_method_text(covered: Covered) -> str:
    """Describe a known method: its name, mean width, and how often it was right."""
    if covered.known_method is None:
        return ""
    known_method = covered.known_method
    width = np.nanmean(known_method.widths)
    share = np.mean(known_method.hits)
    return f" ({known_method.name}: {width:.3f}, {share:.1%})"


def choose_families(words: Sequence[str]) -> list[Family]:
    """The families with the settings that have one of `words` in their own or their family's name,
    all if there are none.
    """

    def matches(family: Family, setting: Setting) -> bool:
        return not words or any(
            word in setting.name or word in family.name for word in words
        )

    chosen_families = [
        replace(f, settings=tuple(s for s in f.settings if matches(f, s)))
        for f in all_families()
    ]
    return [family for family in chosen_families if family.settings]


def measure_families(
    families: Sequence[Family], seed: int, trials: int, jobs: int
) -> Iterator[Covered]:
    """What the trials of each setting gave, in their order, from `jobs` processes."""
    tasks = [
        (family.name, setting.name, seed, trials)
        for family in families
        for setting in family.settings
    ]
    if jobs == 1:
        yield from (measure(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measure, *zip(*tasks, strict=True))


def replace_rows(page: str, family: Family, lines: dict[str, str]) -> str:
    """`page` with the rows `lines` (by setting) in the table of `family`; rows of settings that are
    gone are left out.

    Raises ValueError where the page has no place for the family.
    """
    between = re.compile(
        rf"(<!-- rows of {re.escape(family.name)} -->\n)(.*?)(<!-- end of rows -->)",
        re.DOTALL,
    )
    block = between.search(page)
    if block is None:
        raise ValueError(
            f"the page has no '<!-- rows of {family.name} -->' with an '<!-- end of"
            " rows -->'"
        )
    rows = {
        line.split(" | ")[0].removeprefix("| "): line for line in block[2].splitlines()
    } | lines
    every = next(
        candidate for candidate in all_families() if candidate.name == family.name
    )
    lines_in_order = [
        rows[setting.name] for setting in every.settings if setting.name in rows
    ]
    text = "\n".join(["", f"{every.about}", "", HEAD, *lines_in_order, "", ""])
    return page[: block.start(2)] + text + page[block.end(2) :]


def update_summary(page: str) -> str:
    """`page` with a line for each family between its comments "families", made from the rows that
    are there.
    """
    lines = [SUMMARY]
    for family in all_families():
        covered_rows = read_rows(page, family)
        if covered_rows:
            lines.append("| " + " | ".join(summarise(family, covered_rows)) + " |")
    text = "\n".join(["", *lines, "", ""])
    return re.sub(
        r"(<!-- families -->\n).*?(<!-- end of families -->)",
        lambda m: m[1] + text + m[2],
        page,
        flags=re.DOTALL,
    )


def read_rows(page: str, family: Family) -> list[list[str]]:
    """The cells of a family's rows in a page, without what is no coverage."""
    begin = f"<!-- rows of {re.escape(family.name)} -->\n"
    part = re.search(rf"{begin}(.*?)<!-- end of rows -->", page, re.DOTALL)
    if part is None:
        return []
    # What fails on purpose, and the power of plans, are no coverage.
    names = {
        setting.name
        for setting in family.settings
        if not setting.contrast
        and setting.most >= 0.9
        and not setting.name.startswith("power")
    }
    rows = [line.strip("| ").split(" | ") for line in part[1].splitlines()]
    return [cells for cells in rows if cells[0] in names and len(cells) == 8]


def summarise(family: Family, covered_rows: list[list[str]]) -> list[str]:
    """The cells of a family's line in the summary."""
    shares = [float(cells[2].rstrip("%")) for cells in covered_rows]
    known_cells = [
        re.search(r"^([\d.]+) \([^:,]+: ([\d.]+), ([\d.]+)%", cells[4])
        for cells in covered_rows
    ]
    known = [match for match in known_cells if match]
    wider = [float(match[1]) / float(match[2]) for match in known if float(match[2])]
    theirs = [float(match[3]) for match in known]
    anchor = re.sub("[^a-z -]", "", family.title.lower()).replace(" ", "-")
    return [
        f"[{family.title}](#{anchor})",
        str(len(covered_rows)),
        f"{min(shares):.1f}%",
        f"{np.median(shares):.1f}%",
        f"{min(theirs):.1f}%" if theirs else "",
        f"{np.median(wider):.2f}" if wider else "",
    ]


def write(path: Path, family: Family, lines: dict[str, str]) -> None:
    """Replace the rows in the file, which is complete at every moment."""
    text = update_summary(replace_rows(path.read_text(encoding="utf-8"), family, lines))
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes, each of one core"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument(
        "--list", action="store_true", help="print the names of the settings"
    )
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the rows into this page"
    )
    arguments = parser.parse_args(words)
    families = choose_families(arguments.only)
    if not families:
        parser.error(
            f"no setting has {' or '.join(arguments.only)} in its name; --list shows the"
            " names"
        )
    if arguments.trials < 1 or arguments.jobs < 1:
        parser.error("--trials and --jobs must be at least 1")
    if arguments.list:
        print("\n".join(f"{f.name}: {s.name}" for f in families for s in f.settings))
        return 0
    if arguments.write is not None:
        try:
            for family in families:
                replace_rows(arguments.write.read_text(encoding="utf-8"), family, {})
        except (OSError, ValueError) as problem:
            parser.error(f"cannot write into {arguments.write}: {problem}")
    results = measure_families(
        families, arguments.seed, arguments.trials, arguments.jobs
    )
    outside = 0
    for family in families:
        print(f"\n### {family.title}\n\n{family.about}\n\n{HEAD}", flush=True)
        for setting in family.settings:
            covered = next(results)
            line = row(setting, covered)
            print(line, flush=True)
            outside += not setting.good(covered)
            if arguments.write is not None:
                write(arguments.write, family, {setting.name: line})
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
