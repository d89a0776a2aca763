"""Boards corrected by labels: rates, rank sets, and what to label next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from coverage_settings.registry import (
    F64,
    Bools,
    Covered,
    Plain,
    Setting,
    repeat_trials,
)
from evalwright.statistics import (
    JudgeCorrection,
    corrected_mean,
    rank_sets,
    rogan_gladen,
)
from evalwright.statistics.corrected_ranks import (
    CorrectedScores,
    LabelledModel,
    correct_scores,
)
from evalwright.statistics.labels_for_ranks import plan_labels

ABOUT = (
    "Rates: the 95% interval of a model's rate of wrong answers, corrected by labels, should hold"
    " what people would have said of all its answers in 95% of the trials. Near 0 and with few"
    " labels it is wider than needed (up to 99.9%): a judge that was right on all of 40 labels may"
    " still err on one answer in 40. Ranks: all rank sets of a board should hold all true ranks in"
    " at least 95% of the trials, and no model should be called better falsely in more than 5%"
    " (equal models); there is no upper limit, because Holm's procedure adds up errors that mostly"
    " occur together. A judge that misses m of the wrong answers and raises f false alarms among"
    ' the right ones is "m / f".'
)
Random = np.random.Generator
Draw = Callable[[Random, F64, F64], tuple[F64, F64]]
ITEMS = 2000
FEW_LABELS = (20, 40, 100, 200, 400, 1000)


def judged_by(rng: Random, right: F64, miss: float, alarm: float) -> F64:
    """Verdicts on answers: 1 passes."""
    errs = rng.random(len(right)) < np.where(right == 1, alarm, miss)
    return np.where(errs, 1 - right, right)


def panel_of(
    rng: Random, right: F64, miss: float, alarm: float, correlation: float
) -> F64:
    """Verdicts (judges, items) of three judges; a shared cause makes their errors correlate."""
    share = np.sqrt(correlation)
    # With the chance `share` a judge follows the shared draw: two of them with `correlation`.
    shared = rng.random(len(right))
    verdicts = np.empty((3, len(right)))
    for judge in range(3):
        chance = np.where(
            rng.random(len(right)) < share, shared, rng.random(len(right))
        )
        errs = chance < np.where(right == 1, alarm, miss)
        verdicts[judge] = np.where(errs, 1 - right, right)
    return verdicts


def choose(rng: Random, n: int, items: int = ITEMS) -> Bools:
    """A random set of `n` items."""
    chosen = np.zeros(items, dtype=np.bool_)
    chosen[rng.choice(items, n, replace=False)] = True
    return chosen


def _half_by_verdict(rng: Random, verdict: F64, n: int) -> Bools:
    """Half of the labels from each verdict, as far as there are answers."""
    chosen = np.zeros(len(verdict), dtype=np.bool_)
    rare, common = sorted(
        (np.flatnonzero(verdict == value) for value in (0.0, 1.0)), key=len
    )
    of_rare = min(n // 2, len(rare))
    chosen[rng.choice(rare, of_rare, replace=False)] = True
    chosen[rng.choice(common, n - of_rare, replace=False)] = True
    return chosen


# -- rates -----------------------------------------------------------------------------


def _rate(
    rate: float,
    miss: float,
    alarm: float,
    labels: int,
    *,
    stratified: bool = False,
    people: int = 1,
    panel: tuple[str, float] | None = None,
    cluster_size: int = 1,
    most: float = 0.97,
) -> Setting:
    careless = 0.05  # of each label, where two people label

    def make(rng: Random, trial: int) -> JudgeCorrection:
        clusters = None
        chances = np.full(ITEMS, rate)
        if cluster_size > 1:
            clusters = np.repeat(np.arange(ITEMS // cluster_size), cluster_size)
            of_cluster = rng.beta(3 * rate, 3 * (1 - rate), ITEMS // cluster_size)
            chances = of_cluster[clusters]
        right = (rng.random(ITEMS) >= chances).astype(np.float64)
        if panel is None:
            verdict = judged_by(rng, right, miss, alarm)
        else:
            verdicts = panel_of(rng, right, miss, alarm, panel[1])
            verdict = verdicts.mean(axis=0)
            if panel[0] == "majority":
                verdict = (verdict > 0.5).astype(np.float64)
        human = right
        if people > 1:
            flips = rng.random((people, ITEMS)) < careless
            human = np.where(flips, 1 - right, right).mean(axis=0)
        chosen = (
            _half_by_verdict(rng, verdict, labels)
            if stratified
            else choose(rng, labels)
        )
        return corrected_mean(
            verdict,
            np.where(chosen, human, np.nan),
            clusters=clusters,
            strata=verdict.astype(np.int64) if stratified else None,
        )

    truth = 1 - rate
    if people > 1:
        truth = truth * (1 - careless) + rate * careless
    words = [f"{rate:.0%} wrong", f"judge {miss:.0%} / {alarm:.0%}"]
    if panel is not None:
        words[1] = (
            f"{panel[0]} of 3 judges {miss:.0%} / {alarm:.0%}, correlation {panel[1]:g}"
        )
    if cluster_size > 1:
        words.append(f"clusters of {cluster_size}")
    if people > 1:
        words.append(f"{people} people who differ")
    how = "labels, half from each verdict" if stratified else "labels"
    name = f"rate, {', '.join(words)}, {labels:,} {how}"
    return Setting(name, repeat_trials(make, truth), most=most)


def _few(rate: float, labels: int) -> float:
    """Where an interval may be wider than needed: few labels, or few wrong answers among them."""
    return 1.0 if labels <= 20 or rate * labels < 20 else 0.975


def _rates() -> list[Setting]:
    settings = []
    for n in FEW_LABELS:
        settings += [
            _rate(0.03, 0.3, 0.05, n, most=_few(0.03, n)),
            _rate(0.03, 0.1, 0.01, n, most=1.0),
            _rate(0.03, 0.6, 0.1, n, most=_few(0.03, n)),
            _rate(0.45, 0.2, 0.1, n, most=_few(0.45, n)),
        ]
    for n in FEW_LABELS[1:]:
        settings += [
            _rate(0.03, 0.3, 0.05, n, stratified=True, most=1.0),
            _rate(0.45, 0.2, 0.1, n, stratified=True),
            _rate(0.03, 0.3, 0.05, n, people=2, most=_few(0.03, n)),
            _rate(0.3, 0.2, 0.1, n, people=2, most=_few(0.3, n)),
            _rate(0.03, 0.3, 0.05, n, cluster_size=5, most=_few(0.03, n)),
            _rate(0.3, 0.2, 0.1, n, cluster_size=5, most=_few(0.3, n)),
        ]
    for n in (40, 200, 1000):
        for correlation in (0.3, 0.5, 0.8):
            settings += [
                _rate(0.03, 0.3, 0.05, n, panel=("majority", correlation), most=1.0),
                _rate(
                    0.3,
                    0.25,
                    0.15,
                    n,
                    panel=("majority", correlation),
                    most=_few(0.3, n),
                ),
            ]
        settings.append(
            _rate(0.3, 0.25, 0.15, n, panel=("mean", 0.5), most=_few(0.3, n))
        )
    return settings


def _judge_alone(rate: float, miss: float, alarm: float) -> Setting:
    def make(rng: Random, trial: int) -> Plain:
        right = (rng.random(ITEMS) >= rate).astype(np.float64)
        mean = float(judged_by(rng, right, miss, alarm).mean())
        half = 1.96 * float(np.sqrt(mean * (1 - mean) / ITEMS))
        return Plain(mean - half, mean + half, "the judge's own number")

    return Setting(
        f"rate, {rate:.0%} wrong, judge {miss:.0%} / {alarm:.0%}, no labels",
        repeat_trials(make, 1 - rate),
        contrast=True,
    )


def _errors_of_others(models: int, labels: int) -> Setting:
    """Rogan and Gladen with the judge's errors on other models, which differ by a factor of 1.5."""

    def make(rng: Random, trial: int) -> Plain:
        counts = np.zeros(4, dtype=np.int64)
        for _ in range(models):
            right = (rng.random(labels) >= 0.1).astype(np.float64)
            verdict = judged_by(rng, right, 0.3, 0.05 * np.exp(rng.normal(0, 0.4)))
            counts += [
                np.count_nonzero((right == 1) & (verdict == 1)),
                np.count_nonzero(right == 1),
                np.count_nonzero((right == 0) & (verdict == 0)),
                np.count_nonzero(right == 0),
            ]
        right = (rng.random(ITEMS) >= 0.1).astype(np.float64)
        verdict = judged_by(rng, right, 0.3, 0.05 * np.exp(rng.normal(0, 0.4)))
        interval = rogan_gladen(int(verdict.sum()), ITEMS, *counts.tolist())
        return Plain(interval.low, interval.high, "Rogan-Gladen, errors of others")

    return Setting(
        f"rate, 10% wrong, no labels of the model, {models} others with {labels} each",
        repeat_trials(make, 0.9),
        contrast=True,
    )


# -- ranks -----------------------------------------------------------------------------


Board = Callable[[Random], list[LabelledModel]]


def _board(
    rates: Sequence[float],
    misses: Sequence[float],
    alarms: Sequence[float],
    labels: int,
    *,
    design: str = "same items",
    alike: float = 0.5,
    missing: float = 0.0,
    items: int = ITEMS // 2,
) -> Board:
    """A board whose models find the same items hard, to the degree `alike`."""

    def draw(rng: Random) -> list[LabelledModel]:
        hardness = rng.random(items)
        same = choose(rng, labels, items)
        models = []
        for rate, miss, alarm in zip(rates, misses, alarms, strict=True):
            shared = rng.random(items) < alike
            chance = np.where(shared, hardness, rng.random(items))
            right = (chance >= rate).astype(np.float64)
            verdict = judged_by(rng, right, miss, alarm)
            strata = None
            chosen = same if design == "same items" else choose(rng, labels, items)
            if design == "by verdict":
                strata = verdict.astype(np.int64)
                chosen = _half_by_verdict(rng, verdict, labels)
            if missing:
                verdict[rng.random(items) < missing] = np.nan
            models.append(
                LabelledModel(verdict, np.where(chosen, right, np.nan), strata)
            )
        return models

    return draw


def _ranks(
    name: str,
    rates: Sequence[float],
    draw: Callable[[Random, int], CorrectedScores],
) -> Setting:
    """All rank sets hold; between equal models that is that none is called better."""
    wrong = np.array(rates)
    best = 1 + (wrong < wrong[:, None]).sum(axis=1)
    worst = len(wrong) - (wrong > wrong[:, None]).sum(axis=1)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=np.bool_)
        widths = np.zeros(trials)
        for trial in range(trials):
            differences = draw(rng, trial).differences
            assert differences is not None
            sets = rank_sets(differences)
            hits[trial] = bool(((sets.low <= best) & (sets.high >= worst)).all())
            widths[trial] = float((sets.high - sets.low).mean())
        note = f"mean range of {widths.mean():.1f} ranks"
        return Covered(hits, np.full(trials, np.nan), "rank sets, MOVER, Holm", note)

    return Setting(name, run, least=0.95, most=1.0, short=100, cost=1)


def _plain_ranks(name: str, rates: Sequence[float], board: Board) -> Setting:
    return _ranks(name, rates, lambda rng, _: correct_scores(board(rng)))


def _clustered_ranks(labels: int) -> Setting:
    rates = (0.3,) * 6
    clusters = np.repeat(np.arange(200), 5)

    def draw(rng: Random, _: int) -> CorrectedScores:
        chances = rng.beta(0.9, 2.1, 200)[clusters]
        models = []
        for model in range(6):
            right = (rng.random(1000) >= chances).astype(np.float64)
            verdict = judged_by(rng, right, 0.2, 0.05 * (model + 1))
            chosen = choose(rng, labels, 1000)
            models.append(LabelledModel(verdict, np.where(chosen, right, np.nan)))
        return correct_scores(models, clusters=clusters)

    return _ranks(
        f"ranks, 6 equal models, 30% wrong, clusters of 5, {labels} labels each",
        rates,
        draw,
    )


def _for_ranks(
    rates: Sequence[float],
    misses: Sequence[float],
    alarms: Sequence[float],
    first: int,
    more: int,
    words: str,
) -> Setting:
    """A random set of each model, then labels where they could settle a rank."""
    board = _board(rates, misses, alarms, 1000, design="own items")

    def draw(rng: Random, trial: int) -> CorrectedScores:
        everything = board(rng)
        models = []
        for model in everything:
            chosen = choose(rng, first, len(model.judge))
            models.append(replace(model, human=np.where(chosen, model.human, np.nan)))
        try:
            plan = plan_labels(models, more, seed=trial)
        except ValueError:  # every rank is settled by the first labels
            return correct_scores(models)
        relabelled = []
        for model, full, planned in zip(models, everything, plan.models, strict=True):
            human = model.human.copy()
            indices = list(planned.indices)
            human[indices] = full.human[indices]
            strata = planned.strata if indices else None
            relabelled.append(LabelledModel(model.judge, human, strata))
        return correct_scores(relabelled)

    name = f"ranks, {words}, {first} labels each and {more} more for ranks"
    return _ranks(name, rates, draw)


SPREAD = (0.02, 0.03, 0.03, 0.06, 0.1, 0.2)
SAME_JUDGE = ((0.3,) * 6, (0.05,) * 6)
FAVOURS = ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (0.02, 0.05, 0.08, 0.12, 0.2, 0.3))


def _all_ranks() -> list[Setting]:
    settings = []
    for n in (40, 100, 200, 400, 1000):
        items = 2 * ITEMS if n == 1000 else ITEMS // 2
        settings += [
            _plain_ranks(
                f"ranks, 6 equal models, 3% wrong, judge 30% / 5%, {n:,} labels each",
                (0.03,) * 6,
                _board((0.03,) * 6, *SAME_JUDGE, n, items=items),
            ),
            _plain_ranks(
                f"ranks, 6 equal models, 40% wrong, a judge that favours some, {n:,} labels"
                " each",
                (0.4,) * 6,
                _board((0.4,) * 6, *FAVOURS, n, items=items, design="own items"),
            ),
            _plain_ranks(
                "ranks, 6 models of 2 to 20% wrong, a judge that favours some,"
                f" {n:,} labels by verdict each",
                SPREAD,
                _board(SPREAD, *FAVOURS, n, items=items, design="by verdict"),
            ),
        ]
    settings += [
        _plain_ranks(
            "ranks, 6 equal models that answer nearly alike, 30% wrong, 200 labels each",
            (0.3,) * 6,
            _board((0.3,) * 6, *SAME_JUDGE, 200, alike=0.97),
        ),
        _plain_ranks(
            "ranks, 6 equal models, 30% wrong, 10% without a verdict, 100 labels each",
            (0.3,) * 6,
            _board((0.3,) * 6, *FAVOURS, 100, missing=0.1),
        ),
        _plain_ranks(
            "ranks, 6 equal models, 10% wrong, a judge that favours some, 20 labels each",
            (0.1,) * 6,
            _board((0.1,) * 6, *FAVOURS, 20),
        ),
        _clustered_ranks(40),
        _clustered_ranks(200),
        _for_ranks((0.03,) * 6, *SAME_JUDGE, 40, 300, "6 equal models, 3% wrong"),
        _for_ranks(
            (0.3,) * 6,
            *FAVOURS,
            40,
            600,
            "6 equal models, 30% wrong, a judge that favours some",
        ),
        _for_ranks(SPREAD, *FAVOURS, 100, 600, "6 models of 2 to 20% wrong, favoured"),
    ]
    return settings


def _rate_after_ranks() -> Setting:
    """The rate of one of the models whose labels were drawn for ranks."""
    rates = (0.03, 0.03, 0.05, 0.08)
    board = _board(rates, (0.3,) * 4, (0.02, 0.05, 0.1, 0.15), 1000, design="own items")

    def make(rng: Random, trial: int) -> JudgeCorrection:
        everything = board(rng)
        models = []
        for model in everything:
            chosen = choose(rng, 40, len(model.judge))
            models.append(replace(model, human=np.where(chosen, model.human, np.nan)))
        first = models[0]
        plan = plan_labels(models, 400, seed=trial)
        indices = list(plan.models[0].indices)
        human = first.human.copy()
        human[indices] = everything[0].human[indices]
        strata = plan.models[0].strata if indices else None
        return corrected_mean(first.judge, human, strata=strata)

    return Setting(
        "rate, 3% wrong, 40 labels and up to 400 more drawn for ranks",
        repeat_trials(make, 0.97),
        most=1.0,
    )


SETTINGS: tuple[Setting, ...] = (
    *_rates(),
    _judge_alone(0.03, 0.3, 0.05),
    _errors_of_others(8, 40),
    _rate_after_ranks(),
    *_all_ranks(),
)
