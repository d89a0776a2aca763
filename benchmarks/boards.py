"""Rank ranges on a board of 96 models: how wide they are, and whether the true ranks lie inside.

    python -m benchmarks boards [--boards 200] [--articles 7731] [--seed 0] [--numbers FILE]
        [--before FILE] [--write PAGE]

The 96 models have the hallucination rates and answer rates that the public hallucination
leaderboard published on 10 March 2026 (`decision_questions/hallucination_rates.csv`, from the
README of github.com/vectara/hallucination-leaderboard). The correlation between models (which is
the spread of difficulty over articles) and how far a missing summary depends on difficulty are
those of eight recorded runs of its engine (`decision_questions/recorded_structure.json`: one factor
by least squares on the tetrachoric correlations of all pairs of models).

An article's difficulty is normal; a model hallucinates where its loading on the difficulty and a
part of its own exceed a threshold, and lacks a summary likewise. A model's loadings are drawn from
those of the recorded models. The true rank is that of the rate over all articles, those without a
summary included; models with the same published rate share their ranks. Each board goes to the
package's `rank`, which `leaderboard` calls, as a matrix of scores with the missing ones marked;
beside it stands Holm's method on mid-p McNemar tests, each on the articles that both models have.
The same seed gives the same data on any version of the package.
"""

from __future__ import annotations

import csv
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from measuring import add_numbers, option_parser, table_lines

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy loads: one process is one core

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import binom

from decision_questions.methods import ALPHA, holm
from decision_questions.pages import add_output_options, write_numbers, write_page
from evalwright.analysis.ranking import Ranking, rank
from evalwright.runs.measures import Matrix, Measure

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

QUESTIONS = Path(__file__).parent / "decision_questions"
RATES = QUESTIONS / "hallucination_rates.csv"
STRUCTURE = QUESTIONS / "recorded_structure.json"
ARTICLES = 7_731  # of the published leaderboard
PAGE_ROWS = "boards"
MARKED = 0.05  # share of missing answers above which a board marks a model

MEASURE = Measure(
    "articles", "accuracy", "consistency", "accuracy", True, False, "score"
)


# -- difficulty and correlation --------------------------------------------------------


@dataclass(frozen=True)
class Structure:
    """What the recorded runs say of articles.

    Args:
        loadings: of each recorded model, the correlation of its errors with difficulty (on the
        normal scale).
        missing_loadings: the same of missing summaries, of the models that lack more than a few.
        mean_correlation: of right-or-wrong scores, over pairs.
        mean_latent_correlation: tetrachoric, over pairs.
        residual: root mean square of what one factor leaves of the latent correlations.
    """

    loadings: tuple[float, ...]
    missing_loadings: tuple[float, ...]
    mean_correlation: float
    mean_latent_correlation: float
    residual: float


def read_structure(file: Path = STRUCTURE) -> Structure:
    """Read what was estimated from the recorded runs."""
    return Structure(**json.loads(file.read_text(encoding="utf-8")))


# -- boards ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Published:
    """The models of the leaderboard: rates (models,), as shares."""

    names: Sequence[str]
    hallucination_rate: F64
    answer_rate: F64

    @property
    def true_ranks(self) -> tuple[I64, I64]:
        """The best and the worst rank of each model, (models,); models of one rate share them."""
        rates = self.hallucination_rate
        better = (rates[None, :] < rates[:, None]).sum(axis=1)
        worse = (rates[None, :] > rates[:, None]).sum(axis=1)
        return 1 + better, len(rates) - worse


def read_published(file: Path = RATES) -> Published:
    """Read the published rates."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    shares = (
        np.array(
            [
                [float(row["hallucination_rate"]), float(row["answer_rate"])]
                for row in rows
            ]
        )
        / 100
    )
    return Published([row["model"] for row in rows], shares[:, 0], shares[:, 1])


@dataclass(frozen=True, eq=False)
class Population:
    """The 96 models with loadings of their own, (models,)."""

    published: Published
    loadings: F64
    missing_loadings: F64


def make_population(
    published: Published, structure: Structure, seed: int
) -> Population:
    """Draw each model's loadings from those of the recorded ones."""
    rng = np.random.default_rng([seed, 0])
    models = len(published.names)
    return Population(
        published,
        rng.choice(structure.loadings, models),
        rng.choice(structure.missing_loadings or (0.0,), models),
    )


def simulate_board(
    population: Population, articles: int, rng: np.random.Generator
) -> Matrix:
    """Scores (models, articles), 1 where a summary is consistent, nan where it is missing."""
    difficulty = rng.normal(size=articles)

    def exceeds(loadings: F64, shares: F64) -> Bools:
        noise = rng.normal(size=(len(loadings), articles))
        latent = (
            loadings[:, None] * difficulty + np.sqrt(1 - loadings**2)[:, None] * noise
        )
        above: Bools = latent > -ndtri(np.clip(shares, 1e-9, 1 - 1e-9))[:, None]
        return above

    published = population.published
    hallucinated = exceeds(population.loadings, published.hallucination_rate)
    missing = exceeds(population.missing_loadings, 1 - published.answer_rate)
    values = np.where(missing, np.nan, 1.0 - hallucinated)
    nothing = np.zeros_like(missing)
    keys = np.arange(articles, dtype=np.int64)
    return Matrix(MEASURE, keys, values, ~nothing, missing, nothing, None, {})


@dataclass(frozen=True)
class RankSummary:
    """What many boards gave by one method.

    Args:
        median_width: of the rank ranges of all models and boards, a range from r to r having width
        1.
        width_quantiles: 5, 25, 75 and 95%.
        median_width_unmarked, median_width_marked: of models with at most 5% missing, and with
        more.
        ranks_inside: share of the models' true ranks inside their ranges.
        boards_inside: share of boards on which every true rank is inside.
        boards_inside_unmarked: the same, of the models with at most 5% missing.
        pairs_separated: share of the pairs with different rates that a board separates.
        pairs_wrong: mean number of pairs a board separates in the wrong direction, or though the
        rates are equal.
    """

    median_width: float
    width_quantiles: tuple[float, ...]
    median_width_unmarked: float
    median_width_marked: float
    ranks_inside: float
    boards_inside: float
    boards_inside_unmarked: float
    pairs_separated: float
    pairs_wrong: float


class RankRanges:
    """Collects the rank ranges of one method, board by board."""

    def __init__(self, published: Published) -> None:
        rates = published.hallucination_rate
        self._best, self._worst = published.true_ranks
        self._marked = 1 - published.answer_rate > MARKED
        self._is_better = rates[:, None] < rates[None, :]
        self._widths: list[I64] = []
        self._inside: list[Bools] = []
        self._separated: list[float] = []
        self._wrong: list[int] = []

    def add(self, low: I64, high: I64, better: Bools) -> None:
        """Take a board: best and worst ranks (models,), and whether the row's model is called
        better than the column's.
        """
        self._widths.append(high - low + 1)
        self._inside.append((low <= self._best) & (high >= self._worst))
        self._separated.append(float(better[self._is_better].mean()))
        self._wrong.append(int(better[~self._is_better].sum()))

    def summary(self) -> RankSummary:
        """Summarise all boards."""
        widths = np.array(self._widths)
        inside = np.array(self._inside)
        marked = self._marked
        quantiles = np.quantile(widths, [0.05, 0.25, 0.75, 0.95])
        return RankSummary(
            median_width=float(np.median(widths)),
            width_quantiles=tuple(float(quantile) for quantile in quantiles),
            median_width_unmarked=float(np.median(widths[:, ~marked])),
            median_width_marked=float(np.median(widths[:, marked])),
            ranks_inside=float(inside.mean()),
            boards_inside=float(inside.all(axis=1).mean()),
            boards_inside_unmarked=float(inside[:, ~marked].all(axis=1).mean()),
            pairs_separated=float(np.mean(self._separated)),
            pairs_wrong=float(np.mean(self._wrong)),
        )


@dataclass(frozen=True)
class BoardResults:
    """What many boards gave, by the package and by Holm's method."""

    boards: int
    models: int
    articles: int
    package: RankSummary
    holm: RankSummary
    seconds_per_board: float


def measure_boards(
    population: Population, boards: int, articles: int, seed: int
) -> BoardResults:
    """Simulate boards and collect their rank ranges."""
    by_package = RankRanges(population.published)
    by_holm = RankRanges(population.published)
    seconds = 0.0
    for board in range(boards):
        matrix = simulate_board(
            population, articles, np.random.default_rng([seed, 1, board])
        )
        started = time.monotonic()
        ranking = rank([matrix])
        seconds += time.monotonic() - started
        low, high = np.array(ranking.ranks).T
        by_package.add(low, high, _called_better(ranking))

        better = holm_better(matrix.values)
        by_holm.add(1 + better.sum(axis=0), len(better) - better.sum(axis=1), better)
        if (board + 1) % 20 == 0:
            print(f"{board + 1} of {boards} boards", file=sys.stderr)

    models = len(population.published.names)
    return BoardResults(
        boards,
        models,
        articles,
        by_package.summary(),
        by_holm.summary(),
        seconds / boards,
    )


def _called_better(ranking: Ranking) -> Bools:
    """(models, models), whether the row's model is better than the column's by the ranking's own
    pairs.
    """
    models = len(ranking.ranks)
    better = np.zeros((models, models), dtype=bool)
    for pair in ranking.pairs():
        if pair.verdict == "better":
            better[pair.a, pair.b] = True
        elif pair.verdict == "worse":
            better[pair.b, pair.a] = True
    return better


def holm_better(values: F64) -> Bools:
    """(models, models), whether the row is better by Holm on mid-p McNemar, each pair on the
    articles that both have.
    """
    right = (values == 1).astype(np.float32)
    wrong = (values == 0).astype(np.float32)
    wins = np.round(right @ wrong.T).astype(np.int64)
    first, second = np.triu_indices(len(values), 1)
    ahead = wins[first, second]
    behind = wins[second, first]
    fewer = np.minimum(ahead, behind)
    discordant = ahead + behind
    p_values = 2 * binom.cdf(fewer, discordant, 0.5) - binom.pmf(fewer, discordant, 0.5)
    significant = np.array(holm(np.minimum(p_values, 1.0).tolist())) < ALPHA
    better = np.zeros(wins.shape, dtype=bool)
    better[first, second] = significant & (ahead > behind)
    better[second, first] = significant & (behind > ahead)
    return better


# -- the report ------------------------------------------------------------------------


def report(
    results: BoardResults,
    structure: Structure,
    before: Mapping[str, Any] | None,
) -> list[str]:
    """The lines that are printed. before: what `--numbers` wrote of another version."""
    loadings = ", ".join(f"{loading:.2f}" for loading in structure.loadings)
    of_missing = ", ".join(f"{loading:.2f}" for loading in structure.missing_loadings)
    columns = {
        "Evalwright": _cells(results.package),
        "Holm on mid-p McNemar, scored articles": _cells(results.holm),
    }
    if before is not None:
        columns = {
            "before": _cells(RankSummary(**before["boards"]["package"])),
            **columns,
        }
    names = list(_cells(results.package))
    rows = [[name, *(cells[name] for cells in columns.values())] for name in names]
    return [
        (
            f"From {len(structure.loadings)} recorded runs: correlation of errors between models"
            f" {structure.mean_correlation:.2f}, latent"
            f" {structure.mean_latent_correlation:.2f}; loadings on difficulty"
            f" {loadings} (residual {structure.residual:.2f}); those of missing"
            f" summaries {of_missing or 'none'}."
        ),
        "",
        (
            f"{results.boards} boards of {results.models} models on"
            f" {results.articles:,} articles, ranked in {results.seconds_per_board:.1f}"
            " s each:"
        ),
        "",
        *table_lines(["", *columns], rows),
    ]


def _cells(ranks: RankSummary) -> dict[str, str]:
    return {
        "width of a rank range, median": f"{ranks.median_width:.0f}",
        "5%, 25%, 75%, 95% of the widths": ", ".join(
            f"{width:.0f}" for width in ranks.width_quantiles
        ),
        "median, models with at most 5% missing": f"{ranks.median_width_unmarked:.0f}",
        "median, models with more": f"{ranks.median_width_marked:.0f}",
        "pairs of different rates that are separated": f"{ranks.pairs_separated:.0%}",
        "true ranks inside their ranges": f"{ranks.ranks_inside:.2%}",
        "boards on which all true ranks are inside": f"{ranks.boards_inside:.1%}",
        "the same, of models with at most 5% missing": (
            f"{ranks.boards_inside_unmarked:.1%}"
        ),
        "pairs separated wrongly, on a board": f"{ranks.pairs_wrong:.2f}",
    }


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = option_parser(__doc__)
    add_numbers(parser, boards=200, articles=ARTICLES, seed=0)
    add_output_options(parser)
    options = parser.parse_args(words)
    if options.boards < 1 or options.articles < 2:
        parser.error("--boards must be at least 1 and --articles at least 2")

    structure = read_structure()
    population = make_population(read_published(), structure, options.seed)
    results = measure_boards(population, options.boards, options.articles, options.seed)
    before = (
        json.loads(options.before.read_text(encoding="utf-8"))
        if options.before
        else None
    )
    lines = report(results, structure, before)
    if options.write:
        write_page(options.write, PAGE_ROWS, lines)
    if options.numbers:
        write_numbers(options.numbers, {"boards": asdict(results)})
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
