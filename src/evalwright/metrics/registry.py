"""The table of metrics: functions `(column, *, options) -> Estimate` over one scorer's column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.registry import Registry, positional_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.core.tasks import MetricSpec
    from evalwright.statistics import Estimate


LOWER_IS_BETTER = frozenset({
    "bits-per-byte", "brier-score", "byte-perplexity", "hallucination-rate", "perplexity", "ter", "token-perplexity",
    "word-perplexity",
})  # fmt: skip
"""Metrics of which lower is better; their scores (log-likelihoods, consistency) are still better when higher."""

BOUNDED = frozenset({
    "accuracy", "accuracy-given-attempted", "answer-class-share", "answer-rate", "auroc", "balanced-accuracy", "chance-normalised", "citation-f1",
    "citation-precision", "citation-recall", "exact-match", "f-score", "hallucination-rate", "handled", "label-share",
    "macro", "macro-f1", "maj@k", "null-weighted-f1", "outcome-share", "part-mean", "pass@k", "pass^k", "stress-share",
})  # fmt: skip
"""Metrics between 0 and 1 (worse than guessing: below 0), shown in points of 100, which may be averaged over tasks."""

OF_BOUNDED = BOUNDED - {"pass@k", "pass^k"}
"""Those whose scores are between 0 and 1 too: a threshold makes any score right or wrong."""

_USUAL = {
    "bleu": "bleu", "chrf": "chrf", "chrf++": "chrf++", "perplexity": "word-perplexity", "reward": "mean", "ter": "ter",
    "words": "mean",
}  # fmt: skip
"""By scorers whose scores need not be between 0 and 1: their metric, where a task names none."""

_MADE_OF = {
    "auroc": ("classification",), "bits-per-byte": ("likelihood", "perplexity"), "bleu": ("bleu",),
    "byte-perplexity": ("likelihood", "perplexity"), "chrf": ("chrf", "chrf++"), "chrf++": ("chrf++",), "handled": ("stress",),
    "stress-share": ("stress",), "ter": ("ter",), "token-perplexity": ("likelihood", "perplexity"), "word-perplexity": ("perplexity",),
}  # fmt: skip
"""Metrics that read parts which, of the scorers of this package, only these give."""


MEANS = frozenset({"accuracy", "exact-match", "hallucination-rate", "mean"})
"""Metrics that are the mean of the items' scores, or 1 less it."""


@dataclass(frozen=True, slots=True)
class Column:
    """One scorer's scores over the samples that have one.

    values: shape (n,), a sample's mean over its draws. parts: further numbers of the scores by name, shape (n,), nan where
    a score has none. clusters: shape (n,) integers, or None where every sample is its own. n_failed: samples without a
    score because something failed or rules could not decide; n_undecided: how many of them are undecided. draws: shape (n, draws) where there are several (nan = missing), else None; part_draws:
    the same for parts, needed by metrics over classes, whose mean over draws means nothing. items: the scores' items, in the
    order of values (of the first draw), empty where no score has one. labels: the scores' labels as codes into label_names,
    shape (n, draws), -1 where a score has none, or None where no score has one. missing_clusters: shape (n_failed,), of the samples
    without a score, where there are clusters. slices: of the metadata keys that a metric goes by, the items' values as codes (n,), -1
    for none, into names.
    """

    values: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    clusters: NDArray[np.int64] | None = None
    n_failed: int = 0
    draws: NDArray[np.float64] | None = None
    part_draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    items: Sequence[Any] = ()
    labels: NDArray[np.int32] | None = None
    label_names: Sequence[str] = ()
    n_undecided: int = 0
    missing_clusters: NDArray[np.int64] | None = None
    slices: Mapping[str, tuple[NDArray[np.int32], Sequence[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Groups:
    """Into which of `count` groups each item of a column falls: codes (n,)."""

    codes: NDArray[np.int64]
    count: int

    def sums(self, *parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of some parts (n,) over each group, (count, parts); an item that lacks one is in none."""
        import numpy as np

        lacking = np.isnan(parts).any(axis=0)
        return np.stack(
            [np.bincount(self.codes, np.where(lacking, 0.0, part), self.count) for part in parts], axis=1
        )


MetricFunction = Callable[..., "Estimate"]
GroupSums = tuple["NDArray[np.float64]", Callable[["NDArray[np.float64]"], "NDArray[np.float64]"]]
"""Sums over groups, (groups, parts), and the metric of such sums, (..., parts) -> (...)."""
Function = TypeVar("Function", bound=MetricFunction)


def _check(name: str, function: MetricFunction) -> None:
    if positional_count(function) != 1:
        raise ConfigurationError(
            f"The metric '{name}' must have the form `def f(column, *, options) -> Estimate`."
        )


registry: Registry[MetricFunction] = Registry(
    "metric",
    {
        "accuracy": "evalwright.metrics.means:accuracy",
        "accuracy-given-attempted": "evalwright.metrics.attempts:accuracy_given_attempted",
        "answer-class-share": "evalwright.metrics.grounding:answer_class_share",
        "answer-rate": "evalwright.metrics.rates:answer_rate",
        "auroc": "evalwright.metrics.ranking:auroc",
        "balanced-accuracy": "evalwright.metrics.labels:balanced_accuracy",
        "bits-per-byte": "evalwright.metrics.perplexities:bits_per_byte",
        "bleu": "evalwright.metrics.corpus:bleu",
        "byte-perplexity": "evalwright.metrics.perplexities:byte_perplexity",
        "chance-normalised": "evalwright.metrics.derived:chance_normalised",
        "chrf": "evalwright.metrics.corpus:chrf",
        "chrf++": "evalwright.metrics.corpus:chrf_plus",
        "citation-f1": "evalwright.metrics.grounding:citation_f1",
        "citation-precision": "evalwright.metrics.grounding:citation_precision",
        "citation-recall": "evalwright.metrics.grounding:citation_recall",
        "exact-match": "evalwright.metrics.means:exact_match",
        "f-score": "evalwright.metrics.attempts:f_score",
        "hallucination-rate": "evalwright.metrics.rates:hallucination_rate",
        "handled": "evalwright.metrics.stress:handled",
        "label-share": "evalwright.metrics.attempts:label_share",
        "macro": "evalwright.metrics.derived:macro",
        "macro-f1": "evalwright.metrics.labels:macro_f1",
        "maj@k": "evalwright.metrics.repeats:maj_at_k",
        "macro-score": "evalwright.metrics.derived:macro_score",
        "mean": "evalwright.metrics.means:mean",
        "null-weighted-f1": "evalwright.metrics.labels:null_weighted_f1",
        "outcome-share": "evalwright.metrics.rates:outcome_share",
        "part-mean": "evalwright.metrics.means:part_mean",
        "pass@k": "evalwright.metrics.repeats:pass_at_k",
        "pass^k": "evalwright.metrics.repeats:pass_all_k",
        "rater-agreement": "evalwright.metrics.stress:rater_agreement",
        "stress-share": "evalwright.metrics.stress:stress_share",
        "ter": "evalwright.metrics.corpus:ter",
        "token-perplexity": "evalwright.metrics.perplexities:token_perplexity",
        "word-perplexity": "evalwright.metrics.perplexities:word_perplexity",
    },
    _check,
)


def metric(name: str) -> Callable[[Function], Function]:
    """Register a metric `def f(column, *, option=default) -> Estimate` under `name`."""

    def register(function: Function) -> Function:
        registry.register(name, function)
        return function

    return register


# How a metric that is no mean of its scores is made of its items, where that is known: as the mean of other values of them, or as a
# function of sums over them. Any other is made again from a part of the items.
_OF_ITEMS = {
    "answer-class-share": "evalwright.metrics.rates:part_values",
    "answer-rate": "evalwright.metrics.rates:score_values",
    "handled": "evalwright.metrics.stress:handled_values",
    "label-share": "evalwright.metrics.attempts:label_values",
    "maj@k": "evalwright.metrics.repeats:maj_at_k_values",
    "outcome-share": "evalwright.metrics.rates:part_values",
    "pass@k": "evalwright.metrics.repeats:pass_at_k_values",
    "pass^k": "evalwright.metrics.repeats:pass_all_k_values",
    "stress-share": "evalwright.metrics.stress:share_values",
}
FAILED_IS_ZERO = frozenset({"answer-rate", "outcome-share"})
"""Metrics over all that was asked: an item that failed has the value 0."""

_CITED, _SUPPORTED = ("supporting", "cited"), ("supported", "claims")
_OF_SUMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "accuracy-given-attempted": ("attempts:attempted_sums", {}),
    "balanced-accuracy": ("labels:label_sums", {"kind": "balanced-accuracy"}),
    "bits-per-byte": ("perplexities:bits_sums", {}),
    "bleu": ("corpus:corpus_sums", {"kind": "bleu"}),
    "byte-perplexity": ("perplexities:perplexity_sums", {"unit": "bytes"}),
    "chance-normalised": ("derived:chance_sums", {}),
    "chrf": ("corpus:corpus_sums", {"kind": "chrf"}),
    "chrf++": ("corpus:corpus_sums", {"kind": "chrf++"}),
    "citation-f1": ("grounding:citation_sums", {"parts": _CITED + _SUPPORTED}),
    "citation-precision": ("grounding:citation_sums", {"parts": _CITED}),
    "citation-recall": ("grounding:citation_sums", {"parts": _SUPPORTED}),
    "f-score": ("attempts:f_sums", {}),
    "macro": ("derived:macro_sums", {}),
    "macro-f1": ("labels:label_sums", {"kind": "macro-f1"}),
    "macro-score": ("derived:macro_sums", {"of": "mean"}),
    "null-weighted-f1": ("labels:label_sums", {"kind": "null-weighted-f1"}),
    "ter": ("corpus:corpus_sums", {"kind": "ter"}),
    "token-perplexity": ("perplexities:perplexity_sums", {"unit": "tokens"}),
    "word-perplexity": ("perplexities:perplexity_sums", {"unit": "words"}),
}


def item_values(kind: str, column: Column, options: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """The values of the items, (n,) or (n, draws), whose mean the metric is; None where it is no such mean."""
    if kind not in _OF_ITEMS:
        return None
    given = {name: value for name, value in options.items() if name != "level"}
    found: NDArray[np.float64] = resolve_name(_OF_ITEMS[kind])(column, **given)
    return found


def is_of_sums(kind: str) -> bool:
    """Whether `group_sums` knows the kind."""
    return kind in _OF_SUMS


def group_sums(kind: str, column: Column, groups: Groups, options: Mapping[str, Any]) -> GroupSums | None:
    """The sums of groups of items that the metric is a function of, and that function; None where it is not known."""
    if kind not in _OF_SUMS:
        return None
    name, own = _OF_SUMS[kind]
    given = {name: value for name, value in options.items() if name != "level"}
    found: GroupSums = resolve_name(f"evalwright.metrics.{name}")(column, groups, **{**own, **given})
    return found


_DERIVED = frozenset({"chance-normalised", "macro", "macro-score"})
SUMMED = (
    frozenset({*MEANS, *_OF_ITEMS, *_OF_SUMS}) - FAILED_IS_ZERO - _DERIVED - {"maj@k", "pass@k", "pass^k"}
)
"""Metrics that other metrics can be made of."""


def slice_keys(kind: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """The metadata keys that a metric goes by."""
    return (str(options["over"]),) if kind in _DERIVED and options.get("over") else ()


def any_sums(kind: str, column: Column, groups: Groups) -> GroupSums:
    """The sums that a metric of `SUMMED` is a function of, a mean those of its items' values and their number, and that function."""
    import numpy as np

    from evalwright.metrics.perplexities import ratio

    made = group_sums(kind, column, groups, {})
    if made is not None:
        return made
    values = item_values(kind, column, {})
    if values is None:
        values = 1 - column.values if kind == "hallucination-rate" else column.values
    elif values.ndim == 2:
        values = np.nanmean(values, axis=1)
    return groups.sums(values, np.ones(len(values))), ratio


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError where an option is not one of the metric's, or has a value that it cannot have."""
    registry.check_options(kind, options)
    if (check := getattr(registry.get(kind), "check_options", None)) is not None:
        check(options)


def is_known(spec: MetricSpec) -> bool:
    """Whether a metric is one of this table, with options that it takes."""
    try:
        check_options(spec.kind, spec.options)
    except UsageError:
        return False
    return True


def metric_range(kind: str, options: Mapping[str, Any]) -> tuple[float, float]:
    """The least and the greatest value of a metric of `BOUNDED`."""
    if kind != "chance-normalised":
        return 0.0, 1.0
    chance, greatest = float(options["chance"]), float(options.get("greatest", 1.0))
    least = 0.0 if options.get("clip") else -chance / (greatest - chance)
    return least, (1.0 - chance) / (greatest - chance)


def usual_metric(scorer: str, options: Mapping[str, Any]) -> str:
    """The metric of a scorer, where a task names none."""
    return "accuracy" if options.get("range") else _USUAL.get(scorer, "accuracy")


def check_scorer(kind: str, scorer: str) -> None:
    """Raise ConfigurationError where the metric `kind` can be made of no scores of the scorer."""
    from evalwright.scorers.registry import registry as scorers

    of = _MADE_OF.get(kind)
    if of is not None and scorer not in of and scorers.is_built_in(scorer):
        raise ConfigurationError(
            f"The metric '{kind}' needs scores of the scorer {' or '.join(of)}, not of '{scorer}'."
        )
    usual = _USUAL.get(scorer, "accuracy")
    if kind in OF_BOUNDED and usual != "accuracy" and scorer != "reward":
        raise ConfigurationError(
            f"'{kind}' is of scores from 0 to 1, and those of the scorer '{scorer}' are not: use the metric '{usual}'."
        )


def compute(kind: str, column: Column, options: Mapping[str, Any] | None = None) -> Estimate:
    """The metric `kind` over a column."""
    given = dict(options or {})
    check_options(kind, given)
    return registry.get(kind)(column, **given)
