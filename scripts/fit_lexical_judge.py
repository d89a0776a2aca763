"""Fits the weights of the judge `baseline/lexical` on one half of the labelled summaries, and measures it on the other half.

    python scripts/fit_lexical_judge.py FOLDER            measure the shipped weights on the test half
    python scripts/fit_lexical_judge.py FOLDER --write    fit on the training half first, and write weights.json

FOLDER holds articles.jsonl (article_id, text) and labelled.jsonl (id, article_id, summary, label, error). Which half an
article is in depends on a hash of its id alone, so adding articles moves none. Nothing is chosen by the test half: the
strength of the penalty comes from cross-validation over the articles of the training half. Weights are kept at 0 or above, so
that every feature can only count against a text, as its name says, and are drawn towards weights set by hand (`PRIOR`), not
towards 0, because a hundred summaries cannot say what seventeen features are worth. To the labelled summaries are added, for
each article, its own two first sentences (supported) and the summary of another article (not supported).
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from evalwright.models.consistency.lexical.features import FEATURES
from evalwright.models.consistency.lexical.halves import is_fitted_on
from evalwright.models.consistency.lexical.judge import (
    VERSION,
    Weights,
    feature_rows,
    judged,
    shipped_weights,
)
from evalwright.models.consistency.sentences import sentences
from evalwright.statistics import auroc

TARGET = Path(__file__).resolve().parents[1] / "src/evalwright/models/consistency/lexical/weights.json"
PRIOR = {
    "words missing": 2.0,
    "words scattered": 0.5,
    "clause missing": 1.0,
    "run missing": 1.5,
    "pairs missing": 0.5,
    "words substituted": 0.5,
    "words apart": 0.5,
    "letters differ": 0.5,
    "numbers missing": 2.0,
    "numbers moved": 0.5,
    "units differ": 2.0,
    "names missing": 2.0,
    "names apart": 0.5,
    "negation differs": 1.0,
    "antonyms": 1.0,
    "hedges removed": 0.7,
    "overstated": 0.5,
    "causes added": 0.5,
    "roles swapped": 1.0,
}
"""What a person who has seen no label would give."""
PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0)
COPIED, OTHER = "copied", "other article"
SHARES = (0.3, 0.5, 0.7)
"""How much the worst sentence counts beside the mean: what is tried."""
FOLDS = 5

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """A labelled summary."""

    article: str
    premise: str
    summary: str
    label: int
    error: str


def read(folder: Path) -> list[Row]:
    """All labelled summaries with their articles."""
    articles = {row["article_id"]: row["text"] for row in lines(folder / "articles.jsonl")}
    return [
        Row(
            row["article_id"],
            articles[row["article_id"]],
            row["summary"],
            int(row["label"] == "supported"),
            row["error"] or "",
        )
        for row in lines(folder / "labelled.jsonl")
    ]


def added(rows: list[Row]) -> list[Row]:
    """For each article its first two sentences, and the first supported summary of the next article."""
    firsts = {row.article: row for row in reversed(rows) if row.label}
    names = sorted(firsts)
    out = []
    for name, following in zip(names, [*names[1:], *names[:1]], strict=True):
        premise = firsts[name].premise
        out.append(Row(name, premise, " ".join(sentences(premise)[:2]), 1, COPIED))
        out.append(Row(name, premise, firsts[following].summary, 0, OTHER))
    return out


def lines(path: Path) -> list[dict[str, Any]]:
    """A JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Fit:
    """Summaries as stacked sentence features, and the penalised logistic over their worst and mean sentence."""

    def __init__(self, rows: list[Row]) -> None:
        self.features = [np.array(feature_rows(row.premise, row.summary)) for row in rows]
        self.labels = np.array([row.label for row in rows], dtype=np.float64)
        self.articles = np.array([row.article for row in rows])

    def weights(self, chosen: NDArray[np.bool_], penalty: float, worst: float) -> Array:
        """Bias and weights, shape (1 + features,)."""
        some = [each for each, kept in zip(self.features, chosen, strict=True) if kept]
        labels = self.labels[chosen]
        count = len(FEATURES)

        def loss(point: Array) -> tuple[float, Array]:
            total, slope = 0.0, np.zeros(count + 1)
            for each, label in zip(some, labels, strict=True):
                mixed = mixture(each, point, worst)
                z = float(point[0] - mixed @ point[1:])
                total += float(np.logaddexp(0, z)) - label * z
                miss = 1 / (1 + np.exp(-z)) - label
                slope[0] += miss
                slope[1:] -= miss * mixed
            total += penalty / 2 * float(((point[1:] - prior) ** 2).sum())
            slope[1:] += penalty * (point[1:] - prior)
            return total, slope

        prior = np.array([PRIOR[name] for name in FEATURES])
        start = np.array([2.0, *prior])
        bounds = [(None, None), *[(0.0, None)] * count]
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
        point: Array = np.asarray(found.x, dtype=np.float64)
        return point

    def scores(self, chosen: NDArray[np.bool_], point: Array, worst: float) -> Array:
        """z of the chosen summaries."""
        some = [each for each, kept in zip(self.features, chosen, strict=True) if kept]
        found: Array = np.array([point[0] - mixture(each, point, worst) @ point[1:] for each in some])
        return found

    def cross_validated(self, chosen: NDArray[np.bool_], penalty: float, worst: float) -> float:
        """Mean log-loss over folds of articles within the chosen ones."""
        names = sorted(set(self.articles[chosen]))
        losses = []
        for fold in range(FOLDS):
            held = chosen & np.isin(self.articles, names[fold::FOLDS])
            point = self.weights(chosen & ~held, penalty, worst)
            z = self.scores(held, point, worst)
            losses.append(np.logaddexp(0, z) - self.labels[held] * z)
        return float(np.concatenate(losses).mean())


def mixture(features: Array, point: Array, worst: float) -> Array:
    """The feature vector that stands for a summary: the worst sentence's and the mean, mixed."""
    least = int(np.argmax(features @ point[1:]))
    mixed: Array = worst * features[least] + (1 - worst) * features.mean(axis=0)
    return mixed


def fitted(rows: list[Row]) -> dict[str, Any]:
    """What weights.json holds."""
    rows = [row for row in rows if is_fitted_on(row.article)]
    labelled = len(rows)
    fit = Fit([*rows, *added(rows)])
    training = np.ones(len(fit.labels), dtype=bool)
    tried = {
        (penalty, worst): fit.cross_validated(training, penalty, worst)
        for penalty in PENALTIES
        for worst in SHARES
    }
    penalty, worst = min(tried, key=lambda pair: tried[pair])
    print(f"penalty {penalty:g}, worst {worst:g}: log-loss {tried[penalty, worst]:.3f} by cross-validation")
    point = fit.weights(training, penalty, worst)
    count = len(set(fit.articles[training]))
    note = (
        f"version {VERSION} of the features; fitted on {labelled} labelled summaries of {count} articles, one half of "
        f"those of the task summary-faithfulness (by a hash of the article's id), and on copied sentences and summaries of "
        f"other articles; measured on the other half only"
    )
    table = {name: round(float(value), 3) for name, value in zip(FEATURES, point[1:], strict=True)}
    return {
        "note": note,
        "penalty": penalty,
        "worst": worst,
        "bias": round(float(point[0]), 3),
        "weights": table,
    }


def measure(rows: list[Row], weights: Weights) -> None:
    """AUROC by articles as clusters, and by kind of error: all supported summaries against the unsupported of that kind."""
    started = time.perf_counter()
    scores = np.array([judged(row.premise, row.summary, weights) for row in rows])
    each = (time.perf_counter() - started) / len(rows)
    labels = np.array([row.label for row in rows])
    clusters = np.unique([row.article for row in rows], return_inverse=True)[1]
    whole = auroc(scores, labels, clusters=clusters)
    print(f"{len(rows)} summaries of {clusters.max() + 1} articles, {1000 * each:.2f} ms each")
    print(f"AUROC {whole.value:.3f} [{whole.low:.3f}, {whole.high:.3f}] ({whole.method})")
    right = float(((scores >= 0.5) == labels).mean())
    print(f"accuracy at 0.5: {right:.3f}; said to be supported: {(scores >= 0.5).mean():.3f}")
    easy = added(rows)
    sorted_out = auroc(
        [judged(row.premise, row.summary, weights) for row in easy], [row.label for row in easy]
    )
    print(f"AUROC of copied sentences against summaries of other articles: {sorted_out.value:.3f}")
    for kind in sorted({row.error for row in rows if row.error}):
        kept = np.array([row.label == 1 or row.error == kind for row in rows])
        found = auroc(scores[kept], labels[kept], clusters=clusters[kept])
        wrong = int(kept.sum() - labels.sum())
        print(f"  {kind:24} n={wrong:3}  AUROC {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]")


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--write", action="store_true", help="fit on the training half and write weights.json"
    )
    parser.add_argument("--training", action="store_true", help="measure on the training half instead")
    given = parser.parse_args()
    rows = read(given.folder)
    if given.write:
        TARGET.write_text(json.dumps(fitted(rows), indent=2) + "\n", encoding="utf-8")
        shipped_weights.cache_clear()
    measure([row for row in rows if is_fitted_on(row.article) == given.training], shipped_weights())


if __name__ == "__main__":
    main()
