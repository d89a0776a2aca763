"""What right and wrong answers of a run have in common.

Compares subsets, frequent errors, words and lengths, and picks examples. Nothing is downloaded.
Words are those of `scorers/text/tokens`; Korean words of three syllables or more lose a case
particle. Everything here is descriptive: only the means have intervals, and no word is tested
for significance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby, pairwise
from typing import Any

from evalwright.core.plain import Plain
from evalwright.core.samples import SampleRecord
from evalwright.runs.reader import Run
from evalwright.runs.recorded_answers import expected_calls, whole_answer
from evalwright.scorers.text.tokens import Words
from evalwright.statistics import Estimate, mean_interval
from evalwright.statistics.units import named_clusters

PARTICLES = (
    *"은는이가을를의에와과",
    "에서",
    "에게",
    "으로",
    "부터",
    "까지",
    "처럼",
    "보다",
    "이라고",
    "라고",
    "에서는",
    "으로는",
)
"""Korean case particles, which are removed from a word if at least two syllables remain."""
SUBSETS = ("subset", "subject", "category", "domain")
"""Metadata keys by which items are grouped, besides the task's own slices."""
LONGEST = 20_000
"""Number of characters of an answer in which words are counted."""


@dataclass(frozen=True, slots=True)
class AnsweredItem(Plain):
    """One item with its answer.

    Args:
        id: the sample's id.
        question: its input.
        target: its canonical right answer.
        answer: the first of its repeats.
        score: the mean of its repeats; None if there is none.
        label: the scorer's label, or what failed.
        subset: the value of its subset key in the metadata.
        cluster: its cluster, "" if it has none.
        choice: index of the chosen option.
        gold: indices of the right options.
    """

    id: str
    question: str
    target: str
    answer: str
    score: float | None
    label: str = ""
    subset: str = ""
    cluster: str = ""
    choice: int | None = None
    gold: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemGroup(Plain):
    """A group of items with their mean score."""

    name: str
    score: Estimate


@dataclass(frozen=True, slots=True)
class Vocabulary(Plain):
    """The vocabulary of the right or the wrong answers.

    Args:
        answers: number of answers.
        words: number of words in them.
        distinct: number of different words.
        type_token_ratio: distinct words over all words; it falls as texts get longer.
        same_size: the same ratio over the first words, as many as the smaller side has.
    """

    answers: int
    words: int
    distinct: int
    type_token_ratio: float
    same_size: float


@dataclass(frozen=True, slots=True)
class WordUse(Plain):
    """How many wrong and right answers contain a word.

    Args:
        word: the word.
        wrong: number of wrong answers with it.
        right: number of right answers with it.
        weight: the log-likelihood ratio of the two shares (Dunning 1993).
    """

    word: str
    wrong: int
    right: int
    weight: float


@dataclass(frozen=True, slots=True)
class AnswerAnalysis(Plain):
    """The analysed answers to one task.

    Args:
        name: the task's name.
        score: the mean score.
        threshold: scores from here on count as right.
        n_right: number of right answers.
        n_wrong: number of wrong answers.
        labels: the most frequent labels, with their counts.
        subsets: mean scores by subset, worst first.
        wrong_answers: repeated wrong answers, with the right one and their count.
        choices: for each option, how often it was chosen and how often it is right.
        words: words that are more frequent in wrong answers.
        vocabulary: that of the right and of the wrong answers.
        lengths: mean scores by quarter of answer length.
        examples_right: examples of right answers.
        examples_wrong: examples of wrong answers.
    """

    name: str
    score: Estimate
    threshold: float
    n_right: int
    n_wrong: int
    labels: tuple[tuple[str, int], ...]
    subsets: tuple[ItemGroup, ...]
    wrong_answers: tuple[tuple[str, str, int], ...]
    choices: tuple[tuple[str, int, int], ...]
    words: tuple[WordUse, ...]
    vocabulary: tuple[Vocabulary, Vocabulary]
    lengths: tuple[ItemGroup, ...]
    examples_right: tuple[AnsweredItem, ...]
    examples_wrong: tuple[AnsweredItem, ...]


def analyse(
    items: Iterable[AnsweredItem], name: str = "", *, top: int = 10, examples: int = 2
) -> AnswerAnalysis:
    """Compare right with wrong answers.

    An answer counts as right from a score of 0.5 on if all scores are between 0 and 1, else from
    the median on.

    Args:
        items: the answers with their scores.
        name: the task's name.
        top: how many words and wrong answers to list.
        examples: how many examples to show of each side.

    Returns:
        What distinguishes wrong from right answers: labels, subsets, options, words and lengths.
    """
    all_items = list(items)
    scores = sorted(item.score for item in all_items if item.score is not None)
    bounded = all(0 <= score <= 1 for score in scores)
    threshold = 0.5 if bounded or not scores else scores[len(scores) // 2]
    right = [
        item for item in all_items if item.score is not None and item.score >= threshold
    ]
    wrong = [
        item for item in all_items if item.score is not None and item.score < threshold
    ]
    words = [[split_words(item.answer) for item in side] for side in (right, wrong)]
    return AnswerAnalysis(
        name=name,
        score=_mean_score(all_items, bounded),
        threshold=threshold,
        n_right=len(right),
        n_wrong=len(wrong),
        labels=tuple(
            Counter(item.label for item in all_items if item.label).most_common(top)
        ),
        subsets=_group_by_subset(all_items, bounded),
        wrong_answers=_count_wrong_answers(wrong, top),
        choices=_count_choices(all_items),
        words=_find_error_words(words[0], words[1], top),
        vocabulary=_compare_vocabularies(words[0], words[1]),
        lengths=_group_by_length(all_items, bounded),
        examples_right=_pick_examples(right, examples),
        examples_wrong=_pick_examples(wrong, examples),
    )


def analyse_run(run: Run) -> list[AnswerAnalysis]:
    """Analyse each task of a run, by the scorer of its main metric.

    Raises:
        RunError: the samples cannot be read.
    """
    mains = {task.name: task.main for task in run.tasks}
    keys = {
        task.name: (*run.record(task.name).get("slice_keys", ()), *SUBSETS)
        for task in run.tasks
    }
    analyses = []
    for name, records in groupby(run.samples(), key=lambda record: record.task):
        main = mains.get(name)
        if main is not None:
            analyses.append(
                analyse(_read_items(records, main.scorer, keys[name]), name)
            )
    return analyses


def _read_items(
    records: Iterable[SampleRecord], scorer: str, keys: Sequence[str]
) -> Iterator[AnsweredItem]:
    for _, draws in groupby(records, key=lambda record: record.index):
        repeats = list(draws)
        first = repeats[0]
        sample = repeats[0].sample
        values = [
            record.scores[scorer].value for record in repeats if scorer in record.scores
        ]
        key = next((key for key in keys if key in sample.metadata), "")
        yield AnsweredItem(
            id=sample.id,
            question=sample.input,
            target=_right_answer(first),
            answer=_whole_answer(first),
            score=sum(values) / len(values) if values else None,
            label=_label_of(first, scorer),
            subset=str(sample.metadata[key]) if key else "",
            cluster=sample.cluster,
            choice=first.answer.choice if first.answer is not None else None,
            gold=sample.gold,
        )


def _right_answer(record: SampleRecord) -> str:
    sample = record.sample
    options = [sample.choices[i] for i in sample.gold if i < len(sample.choices)]
    row = {
        "metadata": sample.metadata,
        "scores": record.scores,
        "score_failures": record.score_failures,
    }
    return sample.target or " | ".join(options) or expected_calls(row) or ""


def _whole_answer(record: SampleRecord) -> str:
    if record.answer is None:
        return ""
    calls = [call.as_dict() for call in record.answer.tool_calls]
    return whole_answer(
        {"answer": record.answer.text, "responses": [{"tool_calls": calls}]}
    )


def _label_of(record: SampleRecord, scorer: str) -> str:
    if record.failure is not None:
        return record.failure.label
    if scorer in record.score_failures:
        return record.score_failures[scorer].label
    return record.scores[scorer].label if scorer in record.scores else ""


def _mean_score(items: Sequence[AnsweredItem], bounded: bool) -> Estimate:
    if not any(item.score is not None for item in items):
        return Estimate.none("no interval: nothing was scored", len(items))
    values = [math.nan if item.score is None else item.score for item in items]
    clusters = named_clusters(item.cluster for item in items)
    return mean_interval(
        values, clusters=clusters, value_range=(0.0, 1.0) if bounded else None
    )


def _group_by_subset(
    items: Sequence[AnsweredItem], bounded: bool
) -> tuple[ItemGroup, ...]:
    """Compute mean scores by subset, worst first; empty if all items are in one subset."""
    by_name: dict[str, list[AnsweredItem]] = {}
    for item in items:
        by_name.setdefault(item.subset, []).append(item)
    groups = [
        ItemGroup(name, _mean_score(members, bounded))
        for name, members in by_name.items()
    ]
    return (
        tuple(
            sorted(groups, key=lambda group: (_sort_key(group.score.value), group.name))
        )
        if len(groups) > 1
        else ()
    )


def _sort_key(score: float) -> float:
    return math.inf if math.isnan(score) else score


def _group_by_length(
    items: Sequence[AnsweredItem], bounded: bool
) -> tuple[ItemGroup, ...]:
    """Compute mean scores by quarter of answer length.

    Empty with fewer than eight answers, or if all have the same length.
    """
    scored = sorted(
        (item for item in items if item.score is not None),
        key=lambda item: len(item.answer),
    )
    if len(scored) < 8 or len(scored[0].answer) == len(scored[-1].answer):
        return ()
    cuts = [round(len(scored) * quarter / 4) for quarter in range(5)]
    quarters = [scored[start:end] for start, end in pairwise(cuts)]
    return tuple(
        ItemGroup(
            _describe_lengths(len(quarter[0].answer), len(quarter[-1].answer)),
            _mean_score(quarter, bounded),
        )
        for quarter in quarters
    )


def _describe_lengths(least: int, most: int) -> str:
    return f"{least:,} letters" if least == most else f"{least:,} to {most:,} letters"


def _count_wrong_answers(
    wrong: Sequence[AnsweredItem], top: int
) -> tuple[tuple[str, str, int], ...]:
    """List wrong answers given at least twice, with the right answer and their count.

    Long answers are left out: they are too varied to repeat.
    """
    pairs = Counter(
        (" ".join(item.answer.split()), item.target)
        for item in wrong
        if item.answer.strip() and len(item.answer) <= 80
    )
    return tuple(
        (answer, target, count)
        for (answer, target), count in pairs.most_common(top)
        if count > 1
    )


def _count_choices(items: Sequence[AnsweredItem]) -> tuple[tuple[str, int, int], ...]:
    """Count for each option letter how often it was chosen, and how often it is right."""
    chosen = Counter(item.choice for item in items if item.choice is not None)
    gold = Counter(
        option for item in items if item.choice is not None for option in item.gold
    )
    places = sorted({*chosen, *gold})
    return tuple(
        (chr(65 + i) if i < 26 else str(i + 1), chosen[i], gold[i])
        for i in places
        if i >= 0
    )


# -- words -----------------------------------------------------------------------------


def split_words(text: str) -> list[str]:
    """Split a text into words for comparison.

    Case, punctuation and possessive 's are dropped, and Korean words lose their case particle.

    Args:
        text: the text, of which the first 20,000 characters are read.

    Returns:
        The words in order.
    """
    return [_strip_particle(word) for word in Words(text[:LONGEST]).tokens]


def _strip_particle(word: str) -> str:
    if len(word) < 3 or not "가" <= word[-1] <= "힣":
        return word
    ends = [
        particle
        for particle in PARTICLES
        if word.endswith(particle) and len(word) - len(particle) >= 2
    ]
    return word[: -len(max(ends, key=len))] if ends else word


def _compare_vocabularies(
    right: Sequence[list[str]], wrong: Sequence[list[str]]
) -> tuple[Vocabulary, Vocabulary]:
    size = min(sum(map(len, side)) for side in (right, wrong))

    def describe_side(side: Sequence[list[str]]) -> Vocabulary:
        words = [word for answer_words in side for word in answer_words]
        distinct = len(set(words))
        ratio = distinct / len(words) if words else math.nan
        same = len(set(words[:size])) / size if size else math.nan
        return Vocabulary(len(side), len(words), distinct, ratio, same)

    return describe_side(right), describe_side(wrong)


def _find_error_words(
    right: Sequence[list[str]], wrong: Sequence[list[str]], top: int
) -> tuple[WordUse, ...]:
    """Find the words that are more frequent in wrong than in right answers.

    They are sorted by the log-likelihood ratio.

    A word must occur in at least two wrong answers.
    """
    if not right or not wrong:
        return ()
    inside = [
        Counter(word for answer_words in side for word in set(answer_words))
        for side in (right, wrong)
    ]
    telling = []
    for word, count in inside[1].items():
        right_count = inside[0][word]
        if count > 1 and count / len(wrong) > right_count / len(right):
            weight = _log_likelihood_ratio(count, len(wrong), right_count, len(right))
            telling.append(WordUse(word, count, right_count, weight))
    return tuple(sorted(telling, key=lambda use: (-use.weight, use.word))[:top])


def _log_likelihood_ratio(k1: int, n1: int, k2: int, n2: int) -> float:
    """Compute twice the log-likelihood ratio of two separate shares against a common share."""

    def log_likelihood(k: int, n: int, p: float) -> float:
        return (k * math.log(p) if k else 0.0) + (
            (n - k) * math.log(1 - p) if n > k else 0.0
        )

    pooled = (k1 + k2) / (n1 + n2)
    apart = log_likelihood(k1, n1, k1 / n1) + log_likelihood(k2, n2, k2 / n2)
    return max(
        0.0,
        2 * (apart - log_likelihood(k1, n1, pooled) - log_likelihood(k2, n2, pooled)),
    )


def _pick_examples(
    items: Sequence[AnsweredItem], count: int
) -> tuple[AnsweredItem, ...]:
    """Pick example items by a hash of their id, so the pick does not depend on the other items."""

    def stable_order(item: AnsweredItem) -> Any:
        return (
            blake2b(item.id.encode("utf-8", "surrogatepass"), digest_size=8).digest(),
            item.id,
        )

    return tuple(
        replace(item, answer=item.answer[:LONGEST])
        for item in sorted(items, key=stable_order)[:count]
    )
