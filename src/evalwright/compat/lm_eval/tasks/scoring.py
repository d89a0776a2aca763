"""Scores a row's filtered answers with the published metrics, or with the task's own Python.

A score is a number, or a pair that only makes sense over all rows: (gold, predicted),
(log-likelihood, words), (reference, text).
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.config import Definition, MetricEntry
from evalwright.compat.lm_eval.tasks.filters import remove_matches
from evalwright.compat.lm_eval.tasks.options import Options, trust_advice
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields
from evalwright.extend import MissingExtra, ScoringError, TaskError, check_known

if TYPE_CHECKING:
    import numpy as np

NOT_A_CHOICE = -100
"""lm_eval's index of a gold answer that is not among the choices."""

PUBLISHED_METRICS = frozenset(TABLES["aggregations"])
PAIR_METRICS = PUBLISHED_METRICS - {"exact_match", "bypass", "acc_all"}
"""Metrics that pass pairs on to an aggregation."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores the rows of one task.

    multiple_target: rows have several right answers, as the first one has.
    """

    definition: Definition
    fields: Fields
    multiple_input: bool
    multiple_target: bool
    published: bool

    def __call__(self, doc: Doc, results: Sequence[Any]) -> dict[str, Any]:
        """Score a row by metric. results: the filtered answers to its requests."""
        config = self.definition.config
        if config.process_results is not None:
            return dict(config.process_results(doc, list(results)))
        metric_names = {metric.name for metric in self.definition.metrics}
        if config.output_type == "multiple_choice":
            scores = self._choice(doc, results, metric_names)
        elif config.output_type == "loglikelihood":
            likelihood, greedy = results[0]
            scores = {"perplexity": likelihood, "acc": int(greedy)}
        elif config.output_type == "loglikelihood_rolling":
            scores = self._rolling(doc, results)
        else:
            return self._generated(doc, results[0])
        return {name: value for name, value in scores.items() if name in metric_names}

    def _rolling(self, doc: Doc, results: Sequence[Any]) -> dict[str, Any]:
        (likelihood,) = results
        text = self.fields.target(doc)
        words = len(re.split(r"\s+", text))
        size = len(text.encode("utf-8"))
        return {
            "word_perplexity": (likelihood, words),
            "byte_perplexity": (likelihood, size),
            "bits_per_byte": (likelihood, size),
        }

    def _choice(
        self, doc: Doc, results: Sequence[Any], metric_names: set[str]
    ) -> dict[str, Any]:
        import numpy as np

        likelihoods, greedy = zip(*results, strict=True)
        choices = self.fields.choices(doc)
        unconditional: Sequence[float] = ()
        if "acc_mutual_info" in metric_names and len(likelihoods) == 2 * len(choices):
            likelihoods, unconditional = (
                likelihoods[: len(choices)],
                likelihoods[len(choices) :],
            )
        values = np.array(likelihoods, dtype=float)
        gold = self._gold(doc, choices)
        with np.errstate(divide="ignore", invalid="ignore"):
            predicted = int(np.argmax(values))
            by_length = int(
                np.argmax(values / np.array([float(len(choice)) for choice in choices]))
            )
            by_bytes = int(
                np.argmax(
                    values / np.array([float(len(c.encode("utf-8"))) for c in choices])
                )
            )
        # In the order in which the published runner names them.
        scores: dict[str, Any] = {
            "acc": self._hit(predicted, gold),
            "f1": (gold, predicted),
            "mcc": (gold, predicted),
            "acc_norm": self._hit(by_length, gold),
            "acc_bytes": self._hit(by_bytes, gold),
            "exact_match": self._greedy(greedy, gold),
            "brier_score": (gold, _softmax(values)),
            "likelihood": (gold, tuple(likelihoods)),
        }
        if "acc_mutual_info" in metric_names:
            scores["acc_mutual_info"] = self._hit(
                int(np.argmax(values - np.array(unconditional, dtype=float))), gold
            )
        return scores

    def _gold(self, doc: Doc, choices: Sequence[Any]) -> Any:
        """The index of the right choice, or several; NOT_A_CHOICE if it is none of them."""
        gold = self.fields.text(doc) if self.multiple_input else self.fields.target(doc)
        if isinstance(gold, list):
            if not self.published:
                named = [
                    target
                    for target in gold
                    if isinstance(target, str) and target in choices
                ]
                gold = [
                    choices.index(target) if target in named else target
                    for target in gold
                ]
            return [index if index < len(choices) else NOT_A_CHOICE for index in gold]
        if isinstance(gold, int):
            gold = gold if gold < len(choices) else NOT_A_CHOICE
        elif isinstance(gold, str):
            gold = choices.index(gold) if gold in choices else NOT_A_CHOICE
        if gold == NOT_A_CHOICE and not self.published:
            raise ScoringError(
                "The right answer of this row is not one of its choices."
            )
        return gold

    def _hit(self, predicted: int, gold: Any) -> float:
        multiple_golds = isinstance(gold, list) and self.multiple_target
        return float(predicted in gold if multiple_golds else predicted == gold)

    def _greedy(self, greedy: Sequence[Any], gold: Any) -> int:
        if isinstance(gold, list):
            return int(any(greedy[index] for index in gold if index != NOT_A_CHOICE))
        return int(greedy[gold]) if gold != NOT_A_CHOICE else 0

    # -- generated text

    def _generated(self, doc: Doc, result: Any) -> dict[str, Any]:
        gold = self.fields.target(doc)
        names = [metric.name for metric in self.definition.metrics]
        if self.fields.has_choices:
            choices = self.fields.choices(doc)
            gold = (
                gold if not self.published and isinstance(gold, str) else choices[gold]
            )
        elif self.multiple_target:
            gold = list(gold) if self.published or not isinstance(gold, str) else [gold]
        elif (
            type(gold) is not type(result)
            and "bypass" not in names
            and not isinstance(result, list)
        ):
            gold = type(result)(gold)
        scores: dict[str, Any] = {}
        for metric in self.definition.metrics:
            if self.multiple_target:
                golds = gold if isinstance(gold, list) else [gold]
                worth, result = self._best_of(metric, golds, result)
            else:
                worth = apply_metric(metric, gold, result)
            scores |= worth if isinstance(worth, dict) else {metric.name: worth}
        return scores

    def _best_of(
        self, metric: MetricEntry, golds: list[Any], result: Any
    ) -> tuple[Any, Any]:
        """Score against several right answers; also return the result for the next metric.

        Published: exact match is 1 if any answer matches, other metrics are 1 if any value is not
        0. Corrected: the greatest value; a metric over all rows gets all right answers at once.
        """
        if (
            metric.name == "exact_match"
            and metric.function is None
            and not metric.from_evaluate
        ):
            repeated = [result] * len(golds)
            value = exact_match(
                predictions=repeated, references=golds, **metric.options
            )["exact_match"]
            return 1.0 if value > 0.0 else 0.0, repeated if self.published else result
        if (
            not self.published
            and metric.function is None
            and metric.name in PAIR_METRICS
        ):
            return [golds, result], result
        worths = [apply_metric(metric, gold, result) for gold in golds]
        values = [
            worth[metric.name] if isinstance(worth, dict) else worth for worth in worths
        ]
        if self.published:
            return 1.0 if any(values) else 0.0, result
        return max(values), result


def _softmax(values: np.ndarray[Any, Any]) -> list[float]:
    import numpy as np

    weights = np.exp(values - np.max(values))
    return [float(weight) for weight in weights / weights.sum()]


def apply_metric(metric: MetricEntry, gold: Any, result: Any) -> Any:
    """Apply one metric to one row's text.

    A function of the task is called with `references` and `predictions`, or, if that fails, with
    the pair.
    """
    if metric.function is None and not metric.from_evaluate:
        if metric.name == "exact_match":
            return exact_match(
                predictions=[result], references=[gold], **metric.options
            )
        if metric.name == "bypass":
            return None
        if metric.name in PAIR_METRICS:
            return [gold, result]
    function = metric.function or _from_evaluate(metric.name)
    try:
        return function(references=[gold], predictions=[result], **metric.options)
    except TypeError:
        return function([gold, result])


def require_trust(definition: Definition, options: Options) -> None:
    """Raise TaskError if a metric would download and run a program in an untrusted folder."""
    config = definition.config
    folder = definition.folder
    if config.output_type != "generate_until" or config.process_results is not None:
        return
    for metric in definition.metrics:
        loads = metric.function is None and (
            metric.from_evaluate or metric.name not in PUBLISHED_METRICS
        )
        if loads and not (folder is not None and options.trusts(folder)):
            allow = (
                f"Allow it with {trust_advice(folder)}."
                if folder
                else "Name its folder with --task-root and --trust."
            )
            raise TaskError(
                f"The task '{definition.name}' uses the metric '{metric.name}' of the"
                f" library `evaluate`, a program that is downloaded and run. {allow}"
            )


def _from_evaluate(name: str) -> Callable[..., Any]:
    try:
        import evaluate
    except ImportError:
        if name in PUBLISHED_METRICS:
            raise MissingExtra(f"The metric '{name}'", "lm-eval", "evaluate") from None
        check_known("metric", [name], sorted(PUBLISHED_METRICS))
        raise
    compute: Callable[..., Any] = evaluate.load(name).compute
    return compute


def exact_match(
    *,
    predictions: Sequence[Any],
    references: Sequence[Any],
    regexes_to_ignore: Sequence[str] | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> Mapping[str, float]:
    """The share of predictions that equal their references, after normalising both.

    A prediction that is a list of texts is compared text by text.
    """
    removed = (string.punctuation if ignore_punctuation else "") + (
        string.digits if ignore_numbers else ""
    )
    table = str.maketrans("", "", removed)

    def plain(text: Any) -> Any:
        if isinstance(text, list | tuple):
            return [plain(element) for element in text]
        if not isinstance(text, str):
            return text
        text = remove_matches(regexes_to_ignore, text)
        if ignore_case:
            text = text.lower()
        # Published comparisons are of fixed-width arrays, which know no trailing NUL.
        return text.translate(table).rstrip("\0")

    pairs = _paired(
        [plain(text) for text in predictions], [plain(text) for text in references]
    )
    hits = [
        type(prediction) is type(reference) and bool(prediction == reference)
        for prediction, reference in pairs
    ]
    return {"exact_match": sum(hits) / len(hits) if hits else 0.0}


def _paired(predictions: list[Any], references: list[Any]) -> list[tuple[Any, Any]]:
    """Pair predictions with references; a single one is paired with all on the other side."""
    if len(predictions) == 1 and isinstance(predictions[0], list):
        listed_predictions = predictions[0]
        golds = (
            references[0]
            if len(references) == 1 and isinstance(references[0], list)
            else references
        )
        if len(golds) == 1:
            return [(prediction, golds[0]) for prediction in listed_predictions]
        if len(listed_predictions) == 1:
            return [(listed_predictions[0], gold) for gold in golds]
        return list(zip(listed_predictions, golds, strict=True))
    if len(references) == 1 and isinstance(references[0], list):
        return [
            (prediction, gold) for prediction in predictions for gold in references[0]
        ]
    return list(zip(predictions, references, strict=True))
