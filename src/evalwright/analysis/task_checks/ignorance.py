"""Checks that answers which ignore the question score no better than chance.

Empty answers, "I don't know", the question itself and constant answers are scored over all
tasks that are run together, because one of them may rightly expect a constant ("no answer" to
questions that have none). Chance is the mean share of right options, 0 without options; its
range for this number of samples is Wilson's interval at `LEVEL`. Also checks whether the right
option's position and length give it away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from evalwright.analysis.task_checks.expected_calls import (
    expected_turns,
    expects_calls,
    gold_reply,
    wants_text,
)
from evalwright.analysis.task_checks.findings import Check, Finding, points, quoted
from evalwright.analysis.task_checks.material import Material
from evalwright.analysis.task_checks.scripted_replies import (
    find_judging_scorer,
    reply_with,
    score_preferences,
    score_replies,
)
from evalwright.analysis.words import counted
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Scorer
from evalwright.statistics import wilson

LEVEL = 0.999
"""Level of the interval of chance.

High, because a task is tried with many answers, and many tasks are checked.
"""

LEAST_EXCESS = 0.05
"""Least excess over chance that is a fault, however many samples show it."""

MOST_FOR_NOTHING = 0.5
"""Score from which on an answer that ignores the question is a fault.

It applies however few samples there are.
"""

ONE_LABEL = 0.9
"""Share from which on one right option is a fault where all samples have the same options.

Below it, one of the options may be right more often than others.
"""

LEAST_SAMPLES = 10
"""Fewest samples from which the positions of right options can be judged."""

REFUSING = frozenset({"stress"})
"""Scorers for which declining is right.

"I don't know" is then tried only on the other tasks that are run together with theirs.
"""

_CHECK = Check("answers that ignore the question")
_LABELS = Check("labels")
_FEW_LABELS = 5
"""Free answers count as labels if there are at least so many samples per distinct answer."""


class JudgedTask(NamedTuple):
    """A task with its main scorer and the samples whose requests could be built."""

    material: Material
    scorer: Scorer
    samples: Sequence[Sample]


@dataclass(frozen=True, slots=True)
class ChanceComparison:
    """The mean score of an answer beside the expected score by chance, with its interval."""

    mean: float
    chance: float
    low: float
    high: float

    @property
    def above(self) -> bool:
        """Whether the mean is significantly, and by a relevant amount, above chance."""
        return self.mean > self.high and self.mean > self.chance + LEAST_EXCESS

    def __str__(self) -> str:
        if self.chance == 0:
            return f"{points(self.mean)}% (by chance: up to {points(self.high)}%)"
        return (
            f"{points(self.mean)}% (by chance: {points(self.low)} to"
            f" {points(self.high)}%)"
        )


def compare_with_chance(
    values: Sequence[float], samples: Sequence[Sample], chances: Sequence[float]
) -> ChanceComparison:
    """Compare the mean of scores with that of chances; samples of a cluster count as one."""
    chance = sum(chances) / len(chances)
    units = len({(sample.cluster or sample.id) for sample in samples})
    low, high = wilson(chance * units, units, LEVEL)
    return ChanceComparison(sum(values) / len(values), chance, low, high)


def chance_of(sample: Sample) -> float:
    """The share of options that are right; 0 for a question without options."""
    return len(sample.gold) / len(sample.choices) if sample.choices else 0.0


def check_ignorance(materials: Sequence[Material]) -> Iterator[Finding]:
    """Check tasks that are run together."""
    judged_tasks = []
    for material in materials:
        scorer, reason = find_judging_scorer(material)
        if scorer is None:
            yield _CHECK.skipped(f"{material.task.name}: {reason}")
        elif material.continues and not material.chooses:
            yield _CHECK.skipped(
                f"{material.task.name}: one continuation is scored: nothing to choose"
            )
        else:
            judged_tasks.append(JudgedTask(material, scorer, material.askable))
    choosing = [task for task in judged_tasks if task.material.chooses]
    saying_so = [
        task
        for task in judged_tasks
        if not task.material.chooses and task.material.generates
    ]
    try:
        yield from _check_constant_options(choosing, _choose_by_likelihood)
        yield from _check_constant_options(
            [
                task
                for task in saying_so
                if all(sample.choices for sample in task.samples)
            ],
            _choose_by_letter,
        )
        yield from _check_constant_texts(saying_so)
    except ScoringError as error:
        yield _CHECK.fault(f"an answer that ignores the question: {error}")


# -- always the same option ------------------------------------------------------------


def _choose_by_likelihood(
    task: JudgedTask, option: int
) -> tuple[list[Sample], list[float]]:
    """Return the samples with an option at that position, and the scores of preferring it."""
    chosen = [
        preference
        for preference in score_preferences(task.material, task.scorer)
        if preference[1] == option
    ]
    return [sample for sample, _, _ in chosen], [score for _, _, score in chosen]


def _choose_by_letter(
    task: JudgedTask, option: int
) -> tuple[list[Sample], list[float]]:
    """Return the samples with an option at that position, and the scores of its letter."""
    having = [sample for sample in task.samples if option < len(sample.choices)]
    reply = reply_with(ascii_uppercase[option])
    return having, score_replies(
        task.material, task.scorer, ((sample, reply) for sample in having)
    )


def _check_constant_options(
    tasks: Sequence[JudgedTask],
    worths_of: Callable[[JudgedTask, int], tuple[list[Sample], list[float]]],
) -> Iterator[Finding]:
    n = sum(len(task.samples) for task in tasks)
    if 0 < n < LEAST_SAMPLES:
        yield _CHECK.skipped(
            f"{counted(n, 'sample')} with options: too few to judge one always chosen"
        )
        return
    scores_by_option: dict[int, ChanceComparison] = {}
    most = max(
        (len(sample.choices) for task in tasks for sample in task.samples), default=0
    )
    for option in range(min(most, len(ascii_uppercase))):
        values: list[float] = []
        samples: list[Sample] = []
        for task in tasks:
            having, got_there = worths_of(task, option)
            samples += having
            values += got_there
        scores_by_option[option] = compare_with_chance(
            values, samples, [chance_of(sample) for sample in samples]
        )
    if not scores_by_option:
        return
    # Where all samples have the same options in one order, the options are labels, and positions
    # mean nothing.
    option_lists = {sample.choices for task in tasks for sample in task.samples}
    fixed = (
        [quoted(label) for label in option_lists.pop()]
        if len(option_lists) == 1
        else []
    )
    bad = {
        option: comparison
        for option, comparison in scores_by_option.items()
        if comparison.above
    }
    for option, comparison in bad.items():
        name = (
            f"always {ascii_uppercase[option]}{f' ({fixed[option]})' if fixed else ''}"
        )
        if fixed and comparison.mean < ONE_LABEL:
            yield _CHECK.note(
                f"{name}: {comparison}: the labels are not balanced, so read scores beside"
                " this one"
            )
        else:
            yield _CHECK.fault(
                f"{name}: {comparison}: the labels are skewed towards {ascii_uppercase[option]}"
            )
    if not bad:
        best = max(scores_by_option, key=lambda option: scores_by_option[option].mean)
        yield _CHECK.ok(
            f"always the same option: at most {scores_by_option[best]}, for"
            f" {ascii_uppercase[best]}"
        )


# -- always the same text ---------------------------------------------------------------


def _check_constant_texts(tasks: Sequence[JudgedTask]) -> Iterator[Finding]:
    n = sum(len(task.samples) for task in tasks)
    if n < 2:
        if n:
            yield _CHECK.skipped(
                "one sample is too few for answers that ignore the question"
            )
        return
    wanting_text = {
        id(sample)
        for task in tasks
        for sample in task.samples
        if wants_text(task.scorer, sample)
    }

    def chance_of_words(sample: Sample) -> float:
        return 1.0 if id(sample) in wanting_text else chance_of(sample)

    def chance_of_abstaining(sample: Sample) -> float:
        return 1.0 if id(sample) in wanting_text else _chance_of_abstaining(sample)

    yield _check_text("empty answers", tasks, lambda sample: "")
    answerable = [task for task in tasks if task.scorer.kind not in REFUSING]
    if answerable:
        yield _check_text(
            "'I don't know'",
            answerable,
            lambda sample: "I don't know.",
            chance_of_abstaining,
        )
    yield _check_text(
        "the question itself", tasks, lambda sample: sample.input, chance_of_words
    )
    yield from _check_commonest_calls(tasks)
    if len(answerable) < len(tasks):
        n = sum(len(task.samples) for task in tasks if task.scorer.kind in REFUSING)
        text = (
            f"declining is right on {counted(n, 'sample')}: use them together with"
            " questions that have answers"
        )
        yield _CHECK.note(text)
    free = [
        task
        for task in answerable
        if not all(sample.choices for sample in task.samples)
    ]
    counts = [
        Counter(sample.target for sample in task.samples if sample.target)
        for task in free
    ]
    for text in dict.fromkeys(
        target_counts.most_common(1)[0][0] for target_counts in counts if target_counts
    ):
        yield _check_commonest_answer(text, answerable)


def _check_commonest_calls(tasks: Sequence[JudgedTask]) -> Iterator[Finding]:
    """Check the calls that are expected most often, made for every sample."""
    calling = [task for task in tasks if expects_calls(task.scorer)]
    keys = [
        _turns_as_key(task.scorer, sample)
        for task in calling
        for sample in task.samples
    ]
    key_counts = Counter(key for key in keys if any(key))
    if not key_counts:
        return
    commonest = key_counts.most_common(1)[0][0]
    turns = next(
        expected_turns(task.scorer, sample)
        for task in calling
        for sample in task.samples
        if _turns_as_key(task.scorer, sample) == commonest
    )
    values: list[float] = []
    for task in calling:
        values += score_replies(
            task.material,
            task.scorer,
            ((sample, gold_reply(turns)) for sample in task.samples),
        )
    name = "always " + ", ".join(call.name for turn in turns for call in turn)
    mean = sum(values) / len(values)
    samples = [sample for task in calling for sample in task.samples]
    if mean >= MOST_FOR_NOTHING:
        yield _CHECK.fault(f"{name}: {points(mean)}%", _rewarded_ids(values, samples))
        return
    yield _CHECK.ok(f"{name}: {points(mean)}%")


def _turns_as_key(scorer: Scorer, sample: Sample) -> tuple[str, ...]:
    """Write the calls of each turn as a text, to count samples that expect the same."""
    return tuple(
        ", ".join(f"{call.name} {call.gold_arguments()}" for call in turn)
        for turn in expected_turns(scorer, sample)
    )


def _chance_of_abstaining(sample: Sample) -> float:
    """The chance that abstaining is right: 1 for unanswerable samples."""
    return 1.0 if sample.metadata.get("answerable") is False else chance_of(sample)


def _check_text(
    name: str,
    tasks: Sequence[JudgedTask],
    text: Callable[[Sample], str],
    chance: Callable[[Sample], float] = chance_of,
) -> Finding:
    """Check that an answer unrelated to the gold answers scores within chance."""
    values, samples = _score_same_reply(tasks, text)
    comparison = compare_with_chance(
        values, samples, [chance(sample) for sample in samples]
    )
    if comparison.above:
        return _CHECK.fault(f"{name}: {comparison}", _rewarded_ids(values, samples))
    if comparison.chance >= ONE_LABEL and any(
        expects_calls(task.scorer) for task in tasks
    ):
        return _CHECK.note(
            f"{name}: {comparison}: almost any text is right, so read scores beside those of"
            " questions that want more"
        )
    if _is_generous(comparison):
        return _CHECK.fault(
            f"{name}: {points(comparison.mean)}%", _rewarded_ids(values, samples)
        )
    return _CHECK.ok(f"{name}: {comparison}")


def _check_commonest_answer(text: str, tasks: Sequence[JudgedTask]) -> Finding:
    """Check the most common gold answer, which is right as often as it occurs.

    For labels ("yes", "no") chance is one over their number.
    """
    name = f"always {quoted(text)}"
    values, samples = _score_same_reply(tasks, lambda sample: text)
    chances = [
        chance_of(sample) or _label_chance(task)
        for task in tasks
        for sample in task.samples
    ]
    comparison = compare_with_chance(values, samples, chances)
    if _is_generous(comparison):
        return _CHECK.fault(
            f"{name}: {points(comparison.mean)}%", _rewarded_ids(values, samples)
        )
    if comparison.chance and comparison.above:
        return _CHECK.note(
            f"{name}: {comparison}: the labels are not balanced, so read scores beside"
            " this one"
        )
    return _CHECK.ok(f"{name}: {points(comparison.mean)}%")


def _score_same_reply(
    tasks: Sequence[JudgedTask], text: Callable[[Sample], str]
) -> tuple[list[float], list[Sample]]:
    values: list[float] = []
    for task in tasks:
        values += score_replies(
            task.material,
            task.scorer,
            ((sample, reply_with(text(sample))) for sample in task.samples),
        )
    return values, [sample for task in tasks for sample in task.samples]


def _is_generous(comparison: ChanceComparison) -> bool:
    return comparison.mean >= (
        ONE_LABEL if comparison.chance >= MOST_FOR_NOTHING / 2 else MOST_FOR_NOTHING
    )


def _rewarded_ids(values: Sequence[float], samples: Sequence[Sample]) -> list[str]:
    return [
        sample.id
        for sample, score in zip(samples, values, strict=True)
        if score >= MOST_FOR_NOTHING
    ]


def _label_chance(task: JudgedTask) -> float:
    """The expected score of guessing if free answers are a few labels; else 0."""
    counts = Counter(sample.target for sample in task.samples)
    return (
        1 / len(counts)
        if len(counts) > 1 and len(task.samples) >= _FEW_LABELS * len(counts)
        else 0.0
    )


RARE = 0.001
"""P-value below which positions are skewed: one in so many tasks is by chance."""

LEAST_SKEW = 0.1
"""Least excess of a position's share over the expected one that counts as a skew."""

LEAST_LENGTH = 0.15
_DRAWS = 9_999


def check_labels(material: Material) -> Iterator[Finding]:
    """Check the positions of gold options, and whether the longest option is too often gold."""
    samples = [
        sample
        for sample in material.samples
        if len(sample.choices) > 1 and len(sample.gold) == 1
    ]
    if not samples:
        return
    if len(samples) < LEAST_SAMPLES:
        n = counted(len(samples), "sample")
        yield _LABELS.skipped(f"{n} with one right option: too few to judge its place")
        return
    yield _check_places(samples)
    if len({frozenset(sample.choices) for sample in samples}) > 1:
        yield _check_longest(samples)


def _check_places(samples: Sequence[Sample]) -> Finding:
    p, seen, expected = measure_place_skew(samples)
    n = len(samples)
    excess = {
        option: (seen[option] - expected[option]) / n for option in range(len(seen))
    }
    worst = max(excess, key=excess.__getitem__)
    names = [*ascii_uppercase, *map(str, range(26, len(seen)))]
    shares = ", ".join(
        f"{name} {points(count / n)}%"
        for name, count in list(zip(names, seen, strict=False))[:10]
    )
    summary = f"gold options are in places {shares} (p = {p:.2g} if places were even)"
    if p >= RARE or excess[worst] < LEAST_SKEW:
        return _LABELS.ok(summary)
    letter = names[worst]
    ids = [sample.id for sample in samples if sample.gold[0] == worst]
    if len({sample.choices for sample in samples}) == 1:
        return _LABELS.note(f"{summary}: {letter} is the more frequent label", ids)
    return _LABELS.fault(f"{summary}: the labels are skewed towards {letter}", ids)


def measure_place_skew(
    samples: Sequence[Sample],
) -> tuple[float, list[float], list[float]]:
    """Test whether gold options are evenly spread over positions (chi-square, simulated p-value).

    It is exact even if samples differ in their number of options, or are few: each of the 9,999
    draws puts every sample's gold option at a random one of its own positions (Hope 1968).

    Returns:
        The p-value, and how often each position was seen and expected.
    """
    sizes = Counter(len(sample.choices) for sample in samples)
    most = max(sizes)
    seen = np.bincount([sample.gold[0] for sample in samples], minlength=most).astype(
        np.float64
    )
    expected = np.zeros(most)
    drawn = np.zeros((_DRAWS, most))
    chance = np.random.default_rng(0)
    for size, count in sorted(sizes.items()):
        expected[:size] += count / size
        drawn[:, :size] += chance.multinomial(
            count, np.full(size, 1 / size), size=_DRAWS
        )
    distance = ((drawn - expected) ** 2 / expected).sum(axis=1)
    observed = float(((seen - expected) ** 2 / expected).sum())
    p = (1 + int((distance >= observed - 1e-9).sum())) / (1 + _DRAWS)
    return p, seen.tolist(), expected.tolist()


def _check_longest(samples: Sequence[Sample]) -> Finding:
    """Check how often the one longest option is the gold one, compared with chance."""
    chosen = list[Sample]()
    right = list[float]()
    for sample in samples:
        lengths = [len(choice.strip()) for choice in sample.choices]
        if lengths.count(max(lengths)) == 1:
            chosen.append(sample)
            right.append(float(lengths.index(max(lengths)) == sample.gold[0]))
    if len(chosen) < LEAST_SAMPLES:
        return _LABELS.skipped(
            f"one option is the longest in {len(chosen)} samples, too few to judge by"
        )
    comparison = compare_with_chance(
        right, chosen, [chance_of(sample) for sample in chosen]
    )
    text = (
        f"the longest option is the gold one in {comparison} of"
        f" {counted(len(chosen), 'sample')}"
    )
    if comparison.above and comparison.mean > comparison.chance + LEAST_LENGTH:
        ids = [
            sample.id for sample, is_gold in zip(chosen, right, strict=True) if is_gold
        ]
        return _LABELS.fault(f"{text}: its length gives it away", ids)
    return _LABELS.ok(text)
