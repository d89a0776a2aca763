"""Forty ordinary questions with a known answer: how the data come about, what is asked, and the
best valid method.

Right-or-wrong scores of several models share the difficulty of the items (a normal copula). Missing
answers are drawn at random unless the question says otherwise. An unsure reading is right with the
probability that the question names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from decision_questions import methods, product
from decision_questions.product import Tasks, Verdict
from decision_questions.records import F64, I64, TaskScores, task_scores

Random = np.random.Generator
Make = Callable[[Random], Sequence[Tasks]]
Ask = Callable[[Sequence[Tasks]], Verdict]
Decide = Callable[[Sequence[Tasks]], str | None]

TASK = "questions"

WHICH = "which of two models"
MISSING = "which of two, answers missing"
UNSURE = "which of two, answers unsure"
GRADED = "which of two, graded scores"
PROMPT = "is this prompt better"
WORSE = "has it got worse"
EQUAL = "equal enough"
FIVE = "which of five"


@dataclass(frozen=True)
class Question:
    """One question.

    Args:
        kind: what is asked.
        setting: the data, in words.
        truth: the right answer.
        can_be_answered: whether the right answer is one that the question's form can give ("they
        are equal" is none to "which?").
        make: simulated scores of all models, by task.
        ask: the package's verdict.
        method: the best valid method in words.
        decide: its answer.
    """

    kind: str
    setting: str
    truth: str
    can_be_answered: bool
    make: Make
    ask: Ask
    method: str
    decide: Decide


# -- data ------------------------------------------------------------------------------


def right_or_wrong(
    rng: Random, items: int, shares: Sequence[float], correlation: float, draws: int = 1
) -> list[F64]:
    """Scores (items, draws) of models that know these shares, with latent ability correlated over
    items.
    """
    difficulty = rng.normal(size=(items, 1))
    scores = []
    for share in shares:
        noise = rng.normal(size=(items, draws))
        latent = np.sqrt(correlation) * difficulty + np.sqrt(1 - correlation) * noise
        scores.append((latent < stats.norm.ppf(share)).astype(np.float64))
    return scores


def graded(
    rng: Random, items: int, differences: Sequence[float], spread: float
) -> list[F64]:
    """Scores (items,) around a common level of each item, with a model's own noise; kept within 0
    and 1.
    """
    level = rng.uniform(0.3, 0.6, items)
    return [
        np.clip(level + difference + rng.normal(0, spread, items), 0.0, 1.0)
        for difference in differences
    ]


def mostly_equal(
    rng: Random, items: int, equal_share: float, mean: float, spread: float
) -> list[F64]:
    """Scores (items,) of two models that differ on some of the items only."""
    level = rng.uniform(0.4, 0.6, items)
    differ = rng.random(items) >= equal_share
    shift = np.where(differ, rng.normal(mean, spread, items), 0.0)
    return [np.clip(level + shift, 0.0, 1.0), level]


def marks_of_five(rng: Random, items: int, shifts: Sequence[float]) -> list[F64]:
    """A judge's marks 1 to 5 as 0, 0.25, ..., 1."""
    level = rng.normal(3.2, 0.8, items)
    return [
        (np.clip(np.round(level + shift + rng.normal(0, 0.7, items)), 1, 5) - 1) / 4
        for shift in shifts
    ]


def plain(scores: Sequence[F64], clusters: I64 | None = None) -> list[Tasks]:
    """Models of one task, all of whose answers are there and sure."""
    return [{TASK: task_scores(readings, clusters=clusters)} for readings in scores]


def at_random(rng: Random, scores: Sequence[F64], share: float) -> list[Tasks]:
    """Each answer is missing with this probability, each model by itself."""
    return [
        {TASK: task_scores(readings, missing=rng.random(readings.shape) < share)}
        for readings in scores
    ]


def where_wrong(rng: Random, scores: Sequence[F64], share: float) -> list[Tasks]:
    """The first model misses this share of what it would get wrong."""
    first, *others = scores
    missing = (first == 0) & (rng.random(first.shape) < share)
    return [{TASK: task_scores(first, missing=missing)}, *plain(others)]


def in_an_outage(scores: Sequence[F64], share: float) -> list[Tasks]:
    """The second model lacks the last items."""
    first, second = scores
    missing = np.zeros(second.shape, dtype=bool)
    missing[round(len(second) * (1 - share)) :] = True
    return [*plain([first]), {TASK: task_scores(second, missing=missing)}]


def misread(
    rng: Random,
    truth: F64,
    unsure_share: float,
    right_share: float,
    missing_share: float = 0.0,
) -> TaskScores:
    """Answers of which some are unsure, and their readings right with this probability."""
    unsure = rng.random(truth.shape) < unsure_share
    wrong_reading = unsure & (rng.random(truth.shape) >= right_share)
    readings = np.where(wrong_reading, 1 - truth, truth)
    return task_scores(
        readings, unsure=unsure, missing=rng.random(truth.shape) < missing_share
    )


def vague_where_wrong(
    rng: Random, truth: F64, unsure_if_wrong: float, unsure_if_right: float
) -> TaskScores:
    """Answers unsure mostly where they are wrong; nine in ten of the unsure readings are right."""
    share = np.where(truth == 0, unsure_if_wrong, unsure_if_right)
    unsure = rng.random(truth.shape) < share
    wrong_reading = unsure & (rng.random(truth.shape) >= 0.9)
    return task_scores(np.where(wrong_reading, 1 - truth, truth), unsure=unsure)


def passages(rng: Random, sizes: Sequence[int], shares: Sequence[float]) -> list[Tasks]:
    """Questions on passages: what a passage is worth is shared by its questions, in part by each
    model alone.
    """
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    items = len(clusters)
    common = rng.normal(size=len(sizes))[clusters]
    scores = []
    for share in shares:
        of_passage = rng.normal(size=len(sizes))[clusters]
        latent = (
            np.sqrt(0.3) * common
            + np.sqrt(0.15) * of_passage
            + np.sqrt(0.55) * rng.normal(size=items)
        )
        scores.append((latent < stats.norm.ppf(share)).astype(np.float64))
    return plain(scores, clusters)


# -- what is asked ---------------------------------------------------------------------


def scored(models: Sequence[Tasks]) -> list[F64]:
    """Item scores of the models on the one task, nan where missing."""
    return [tasks[TASK].scored for tasks in models]


def _which(
    kind: str,
    setting: str,
    make: Make,
    truth: str = "A",
    method: str = "mid-p McNemar",
    decide: Decide | None = None,
) -> Question:
    def by_test(models: Sequence[Tasks]) -> str | None:
        p_value = (
            methods.mid_p_mcnemar if method == "mid-p McNemar" else methods.paired_t
        )
        a, b = scored(models)
        return methods.which(a, b, p_value)

    def ask(models: Sequence[Tasks]) -> Verdict:
        return product.which(models)

    can_be_answered = truth in ("A", "B")
    return Question(
        kind, setting, truth, can_be_answered, make, ask, method, decide or by_test
    )


def _two(items: int, first: float, second: float, correlation: float = 0.5) -> Make:
    def make(rng: Random) -> list[Tasks]:
        return plain(right_or_wrong(rng, items, [first, second], correlation))

    return make


def _which_questions() -> list[Question]:
    return [
        _which(WHICH, "12 items, 97% against 45%", _two(12, 0.97, 0.45)),
        _which(WHICH, "40 items, 85% against 60%", _two(40, 0.85, 0.60)),
        _which(WHICH, "200 items, 70% against 61%", _two(200, 0.70, 0.61)),
        _which(
            WHICH,
            "200 items, 92% against 86%, nearly alike",
            _two(200, 0.92, 0.86, 0.9),
        ),
        _which(WHICH, "1,000 items, 71% against 65%", _two(1000, 0.71, 0.65)),
        _which(WHICH, "300 items, equal", _two(300, 0.70, 0.70), truth="equal"),
    ]


def _missing(
    items: int, first: float, second: float, share: float, truth: str = "A"
) -> Question:
    def make(rng: Random) -> list[Tasks]:
        return at_random(rng, right_or_wrong(rng, items, [first, second], 0.5), share)

    gap = f"{100 * (first - second):.0f} points" if first != second else "equal"
    return _which(
        MISSING,
        f"{items:,} items, {gap}, {share:.0%} missing at random in each",
        make,
        truth,
    )


def _missing_where_wrong(items: int) -> Question:
    def make(rng: Random) -> list[Tasks]:
        return where_wrong(rng, right_or_wrong(rng, items, [0.7, 0.7], 0.5), 0.5)

    def decide(models: Sequence[Tasks]) -> str | None:
        return methods.which_in_the_worst_case(*scored(models))

    setting = f"{items:,} items, equal, A missing on half of what it would get wrong"
    return _which(
        MISSING, setting, make, "equal", method="McNemar, worst case", decide=decide
    )


def _missing_questions() -> list[Question]:
    def large_gap(rng: Random) -> list[Tasks]:
        first, second = right_or_wrong(rng, 200, [0.8, 0.55], 0.5)
        return [
            {TASK: task_scores(first, missing=rng.random(first.shape) < 0.03)},
            *plain([second]),
        ]

    def outage(rng: Random) -> list[Tasks]:
        return in_an_outage(right_or_wrong(rng, 300, [0.75, 0.65], 0.5), 0.15)

    return [
        _missing(1000, 0.71, 0.65, 0.05),
        _missing(300, 0.75, 0.65, 0.05),
        _missing(300, 0.75, 0.65, 0.02),
        _missing(300, 0.75, 0.65, 0.12),
        _which(MISSING, "200 items, 25 points, 3% of A missing at random", large_gap),
        _which(
            MISSING, "300 items, 10 points, B's server down for the last 15%", outage
        ),
        _missing(1000, 0.7, 0.7, 0.05, "equal"),
        _missing_where_wrong(200),
        _missing_where_wrong(1000),
    ]


def _unsure_questions() -> list[Question]:
    def both_unsure(
        items: int,
        shares: Sequence[float],
        unsure_share: float,
        missing_share: float = 0.0,
    ) -> Make:
        def make(rng: Random) -> list[Tasks]:
            truths = right_or_wrong(rng, items, shares, 0.5)
            return [
                {TASK: misread(rng, truth, unsure_share, 0.8, missing_share)}
                for truth in truths
            ]

        return make

    def weaker_is_vague(rng: Random) -> list[Tasks]:
        first, second = right_or_wrong(rng, 300, [0.75, 0.62], 0.5)
        stronger = vague_where_wrong(rng, first, 0.15, 0.02)
        weaker = vague_where_wrong(rng, second, 0.6, 0.05)
        return [{TASK: stronger}, {TASK: weaker}]

    mixed = both_unsure(60, [0.8, 0.55], 0.1, 0.03)
    return [
        _which(
            UNSURE,
            "300 items, 12 points, 15% of each unsure",
            both_unsure(300, [0.75, 0.63], 0.15),
        ),
        _which(
            UNSURE,
            "300 items, 13 points, the weaker unsure on most of its wrong answers",
            weaker_is_vague,
        ),
        _which(UNSURE, "60 items, 25 points, 10% of each unsure, 3% missing", mixed),
        _which(
            UNSURE,
            "300 items, equal, 20% of each unsure",
            both_unsure(300, [0.7, 0.7], 0.2),
            "equal",
        ),
    ]


def _graded_questions() -> list[Question]:
    def noisy(rng: Random) -> list[Tasks]:
        return plain(graded(rng, 60, [0.07, 0.0], 0.12))

    def some_differ(items: int, equal_share: float, mean: float, spread: float) -> Make:
        return lambda rng: plain(mostly_equal(rng, items, equal_share, mean, spread))

    def marks(rng: Random) -> list[Tasks]:
        return plain(marks_of_five(rng, 50, [0.5, 0.0]))

    return [
        _which(GRADED, "60 items, all differ, 7 points", noisy, method="paired t"),
        _which(
            GRADED,
            "100 items, 90% equal, the others differ by 10 points",
            some_differ(100, 0.9, 0.1, 0.08),
            method="paired t",
        ),
        _which(
            GRADED,
            "50 items, a judge's marks from 1 to 5, half a mark",
            marks,
            method="paired t",
        ),
        _which(
            GRADED,
            "200 items, 80% equal, no difference",
            some_differ(200, 0.8, 0.0, 0.1),
            "equal",
            method="paired t",
        ),
    ]


def _prompt_questions() -> list[Question]:
    def five_draws(rng: Random) -> list[Tasks]:
        return plain(right_or_wrong(rng, 60, [0.72, 0.62], 0.6, draws=5))

    def many_passages(rng: Random) -> list[Tasks]:
        sizes = rng.integers(2, 9, 40).tolist()
        return passages(rng, sizes, [0.75, 0.60])

    def few_passages(rng: Random) -> list[Tasks]:
        return passages(rng, [2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30], [0.6, 0.6])

    def two_tasks(rng: Random) -> list[Tasks]:
        large = right_or_wrong(rng, 200, [0.75, 0.65], 0.7)
        small = right_or_wrong(rng, 50, [0.70, 0.55], 0.7)
        return [
            {"large": task_scores(of_large), "small": task_scores(of_small)}
            for of_large, of_small in zip(large, small, strict=True)
        ]

    def by_clusters(models: Sequence[Tasks]) -> str | None:
        a, b = scored(models)
        clusters = models[0][TASK].clusters
        assert clusters is not None
        return methods.which(
            a, b, lambda first, second: methods.clustered_t(first, second, clusters)
        )

    def by_tasks(models: Sequence[Tasks]) -> str | None:
        first, second = models
        return methods.which_over_tasks(
            [(first[task].scored, second[task].scored) for task in first]
        )

    return [
        _which(
            PROMPT,
            "150 items, 72% against 62%, nearly alike",
            _two(150, 0.72, 0.62, 0.85),
        ),
        _which(
            PROMPT,
            "60 items of 5 draws, 72% against 62%",
            five_draws,
            method="paired t",
        ),
        _which(
            PROMPT,
            "40 passages of 2 to 8 questions, 75% against 60%",
            many_passages,
            method="t with CR2",
            decide=by_clusters,
        ),
        _which(
            PROMPT,
            "12 very unequal passages, equal",
            few_passages,
            "equal",
            method="t with CR2",
            decide=by_clusters,
        ),
        _which(
            PROMPT,
            "two tasks of 200 and 50 items, 10 and 15 points",
            two_tasks,
            method="t over tasks",
            decide=by_tasks,
        ),
    ]


def _gate(
    setting: str,
    make: Make,
    truth: str,
    points: float,
    *,
    ruled_out: bool,
) -> Question:
    form = product.drop_ruled_out if ruled_out else product.dropped
    test = methods.drop_ruled_out if ruled_out else methods.dropped

    def ask(models: Sequence[Tasks]) -> Verdict:
        return form(models, points)

    def decide(models: Sequence[Tasks]) -> str | None:
        reference, new = scored(models)
        return test(reference, new, points / 100)

    can_be_answered = (truth == "no drop") == ruled_out
    mode = (
        f"is a drop of more than {points:g} points"
        f" {'ruled out' if ruled_out else 'shown'}"
    )
    return Question(
        WORSE,
        f"{mode}: {setting}",
        truth,
        can_be_answered,
        make,
        ask,
        "Tango, one-sided",
        decide,
    )


def _gate_questions() -> list[Question]:
    def some_missing(rng: Random) -> list[Tasks]:
        return at_random(rng, right_or_wrong(rng, 1000, [0.8, 0.8], 0.7), 0.02)

    return [
        _gate(
            "400 items, 75% before, 65% now",
            _two(400, 0.75, 0.65, 0.7),
            "dropped",
            2,
            ruled_out=False,
        ),
        _gate(
            "400 items, 75% before and now",
            _two(400, 0.75, 0.75, 0.7),
            "no drop",
            0,
            ruled_out=False,
        ),
        _gate(
            "600 items, 80% before and now",
            _two(600, 0.8, 0.8, 0.7),
            "no drop",
            5,
            ruled_out=True,
        ),
        _gate(
            "1,000 items, 80% before and now, 2% missing at random in each",
            some_missing,
            "no drop",
            5,
            ruled_out=True,
        ),
        _gate(
            "600 items, 80% before, 75% now",
            _two(600, 0.8, 0.75, 0.7),
            "dropped",
            5,
            ruled_out=True,
        ),
    ]


def _equivalence(setting: str, make: Make, truth: str, method: str) -> Question:
    margin = 0.05

    def ask(models: Sequence[Tasks]) -> Verdict:
        return product.equivalent(models, margin)

    def decide(models: Sequence[Tasks]) -> str | None:
        a, b = scored(models)
        return methods.equivalent(a, b, margin)

    can_be_answered = truth == "equal enough"
    return Question(
        EQUAL,
        f"within 5 points: {setting}",
        truth,
        can_be_answered,
        make,
        ask,
        method,
        decide,
    )


def _equivalence_questions() -> list[Question]:
    def close_scores(rng: Random) -> list[Tasks]:
        return plain(graded(rng, 80, [0.0, 0.0], 0.1))

    yes = "equal enough"
    no = "not equal"
    by_tango = "TOST, Tango"
    return [
        _equivalence("800 items, 75% each", _two(800, 0.75, 0.75, 0.7), yes, by_tango),
        _equivalence(
            "80 graded items, no difference", close_scores, yes, "TOST, paired t"
        ),
        _equivalence(
            "300 items, 75% and 70%", _two(300, 0.75, 0.70, 0.7), no, by_tango
        ),
    ]


def _five(setting: str, make: Make, truth: str, *, binary: bool = True) -> Question:
    def ask(models: Sequence[Tasks]) -> Verdict:
        return product.best_of_several(models)

    def decide(models: Sequence[Tasks]) -> str | None:
        p_value = methods.mid_p_mcnemar if binary else methods.paired_t
        return methods.best_of_several(scored(models), p_value)

    method = f"Holm, {'mid-p McNemar' if binary else 'paired t'}"
    return Question(FIVE, setting, truth, truth != "none", make, ask, method, decide)


def _five_questions() -> list[Question]:
    def five(items: int, shares: Sequence[float]) -> Make:
        return lambda rng: plain(right_or_wrong(rng, items, shares, 0.5))

    def some_missing(rng: Random) -> list[Tasks]:
        scores = right_or_wrong(rng, 300, [0.62, 0.64, 0.78, 0.60, 0.58], 0.5)
        return at_random(rng, scores, 0.03)

    def five_graded(rng: Random) -> list[Tasks]:
        return plain(graded(rng, 100, [0.0, 0.02, 0.04, 0.13, 0.03], 0.15))

    return [
        _five(
            "400 items, the second ahead by 12 points or more",
            five(400, [0.6, 0.75, 0.63, 0.58, 0.62]),
            "2",
        ),
        _five(
            "300 items, the third ahead by 14 points or more, 3% missing at random in"
            " each",
            some_missing,
            "3",
        ),
        _five(
            "100 graded items, the fourth ahead by 9 points or more",
            five_graded,
            "4",
            binary=False,
        ),
        _five("200 items, all equal", five(200, [0.7] * 5), "none"),
    ]


def all_questions() -> list[Question]:
    """The forty questions."""
    return [
        *_which_questions(),
        *_missing_questions(),
        *_unsure_questions(),
        *_graded_questions(),
        *_prompt_questions(),
        *_gate_questions(),
        *_equivalence_questions(),
        *_five_questions(),
    ]
