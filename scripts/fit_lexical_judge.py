"""Fits the weights of the judge `baseline/lexical` on one half of the labelled summaries, and measures it on the other half.

    python scripts/fit_lexical_judge.py FOLDER            measure the shipped weights on the test half
    python scripts/fit_lexical_judge.py FOLDER --write    fit on the training half first, and write weights.json

FOLDER holds articles.jsonl (article_id, text) and labelled.jsonl (id, article_id, summary, label, error). Which half an
article is in depends on a hash of its id alone, so adding articles moves none. Nothing is chosen by the test half: the
strength of the penalty comes from cross-validation over the articles of the training half. Weights are kept at 0 or above, so
that every kind of evidence can only count against a text, as its name says, and are drawn towards weights set by hand (`PRIOR`),
not towards 0. To the labelled summaries is added, for each article, the summary of another article (not supported). The bias is
then moved to where 0.5 separates the labelled summaries of the training half best.
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

from evalwright.models.judges.lexical.halves import is_fitted_on
from evalwright.models.judges.lexical.judge import VERSION, Weights, explained, judged, shipped_weights
from evalwright.models.judges.lexical.kinds import KINDS, strongest
from evalwright.models.judges.sentences import sentences
from evalwright.statistics import auroc

TARGET = Path(__file__).resolve().parents[1] / "src/evalwright/models/judges/lexical/weights.json"
PRIOR = dict.fromkeys(KINDS, 1.0) | {"other words": 6.0, "copy altered": 5.0}
"""What a person who has seen no label would give."""
PENALTIES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
COPIED, OTHER = "copied", "other article"
FOLDS, SHUFFLES = 5, 6
AS_GOOD = 1.015
"""The strongest penalty is taken whose log-loss is at most this many times the least."""

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


def table(rows: list[Row]) -> Array:
    """The strongest evidence of each kind, shape (rows, kinds)."""
    return np.array([strongest(explained(row.premise, row.summary).evidence) for row in rows])


def logistic(features: Array, labels: Array, penalty: float) -> Array:
    """Bias and weights, shape (1 + kinds,)."""
    prior = np.array([PRIOR[name] for name in KINDS])

    def loss(point: Array) -> tuple[float, Array]:
        z = point[0] - features @ point[1:]
        miss = 1 / (1 + np.exp(-z)) - labels
        away = point[1:] - prior
        total = float((np.logaddexp(0, z) - labels * z).sum() + penalty / 2 * (away**2).sum())
        return total, np.concatenate([[miss.sum()], penalty * away - features.T @ miss])

    bounds = [(None, None), *[(0.0, None)] * len(KINDS)]
    found = minimize(loss, np.array([2.0, *prior]), jac=True, method="L-BFGS-B", bounds=bounds)
    point: Array = np.asarray(found.x, dtype=np.float64)
    return point


def cross_validated(features: Array, labels: Array, rows: list[Row], penalty: float) -> tuple[float, float]:
    """Mean log-loss, and AUROC of the labelled summaries, over folds of articles, each averaged over shuffles."""
    articles = np.array([row.article for row in rows])
    labelled = np.array([row.error != OTHER for row in rows])
    losses, areas = [], []
    for seed in range(SHUFFLES):
        names = np.random.default_rng(seed).permutation(sorted(set(articles)))
        z = np.zeros(len(rows))
        for fold in range(FOLDS):
            held = np.isin(articles, names[fold::FOLDS])
            point = logistic(features[~held], labels[~held], penalty)
            z[held] = point[0] - features[held] @ point[1:]
        losses.append(float((np.logaddexp(0, z) - labels * z).mean()))
        supported = 1 / (1 + np.exp(-z[labelled]))
        areas.append(auroc(supported, labels[labelled].astype(int)).value)
    return float(np.mean(losses)), float(np.mean(areas))


def separating(z: Array, labels: Array) -> float:
    """What to add to z so that 0 separates the labels best; the middle of the best places."""
    places = np.sort(z)
    middles = (places[1:] + places[:-1]) / 2
    right = np.array([((z >= place) == labels).mean() for place in middles])
    return -float(np.median(middles[right == right.max()]))


def fitted(rows: list[Row]) -> dict[str, Any]:
    """What weights.json holds."""
    rows = [row for row in rows if is_fitted_on(row.article)]
    every = [*rows, *(row for row in added(rows) if row.error == OTHER)]
    features = table(every)
    labels = np.array([row.label for row in every], dtype=np.float64)
    tried = {penalty: cross_validated(features, labels, every, penalty) for penalty in PENALTIES}
    for each, (loss, area) in tried.items():
        print(f"penalty {each:g}: log-loss {loss:.3f}, AUROC of the labelled {area:.3f} by cross-validation")
    least = min(loss for loss, _ in tried.values())
    penalty = max(each for each, (loss, _) in tried.items() if loss <= AS_GOOD * least)
    point = logistic(features, labels, penalty)
    z = point[0] - features[: len(rows)] @ point[1:]
    bias = float(point[0]) + separating(z, labels[: len(rows)])
    note = (
        f"version {VERSION} of the kinds of evidence; fitted on {len(rows)} labelled summaries of "
        f"{len({row.article for row in rows})} articles, one half of those of the task summary-faithfulness (by a hash of the "
        f"article's id), and on summaries of other articles; measured on the other half only"
    )
    weights = {name: round(float(value), 3) for name, value in zip(KINDS, point[1:], strict=True)}
    return {"note": note, "penalty": penalty, "bias": round(bias, 3), "weights": weights}


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
    for kind in (COPIED, OTHER):
        given = [judged(row.premise, row.summary, weights) for row in easy if row.error == kind]
        print(f"P(supported), {kind}: {min(given):.3f} to {max(given):.3f}")
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
