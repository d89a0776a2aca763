"""Converts a document's lines of a samples file to a SampleRecord, and results to metrics.

Every filter is a scorer, every metric a part of its score. What a record cannot hold (the row,
arguments beyond the prompt, filtered responses, items that are not numbers) is kept in the sample's
metadata, so that nothing is lost when the run is exported again. Metrics are computed again where
the samples reproduce the published number; otherwise the published number is kept.
"""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from evalwright import (
    Answer,
    Failure,
    Response,
    Sample,
    SampleRecord,
    Score,
)
from evalwright.compat.lm_eval.runs.names import (
    COUNT_UNITS,
    NO_FILTER,
    our_kind,
)
from evalwright.compat.lm_eval.runs.sample_lines import (
    first_responses,
    responses_by_request,
)
from evalwright.compat.lm_eval.tasks.aggregation import BRIER_RANGE, by_error
from evalwright.compat.lm_eval.tasks.row_requests import stringify
from evalwright.compat.recording import number as finite
from evalwright.extend import BOUNDED_METRICS, LOWER_IS_BETTER_METRICS, MetricResult
from evalwright.statistics import Estimate

_NUMPY = re.compile(r"(?:np|numpy)\.\w+\((.*)\)")
_QUESTIONS = (
    "input",
    "question",
    "query",
    "problem",
    "prompt",
    "text",
    "sentence",
    "ctx",
)

Lines = Mapping[str, Mapping[str, Any]]
"""Lines of one document, by filter."""


def number(value: Any) -> float | None:
    """Parse a finite number, also from text; None if it is not one."""
    if isinstance(value, str):
        match = _NUMPY.fullmatch(value)
        try:
            value = float(match[1] if match else value)
        except ValueError:
            return None
    return finite(float(value) if isinstance(value, bool) else value)


def pair(metric: str, value: Any) -> tuple[float, float] | None:
    """The log-likelihood and count in an item of a per-word or per-byte metric, else None."""
    if metric not in COUNT_UNITS or not isinstance(value, list) or len(value) != 2:
        return None
    total = number(value[0])
    count = number(value[1])
    return (
        (total, count)
        if total is not None and count is not None and count > 0
        else None
    )


def build_record(
    task: str,
    doc: int,
    lines: Lines,
    metrics: Mapping[str, Sequence[str]],
    *,
    less: frozenset[str] = frozenset(),
    ours: bool = False,
) -> SampleRecord:
    """Build the record of one document from its lines.

    Args:
        doc: the document's number.
        metrics: metric names by filter.
        less: metrics for which lower is better; their scores are negated, as higher scores are
            better.
        ours: whether the rows come from our own export.
    """
    first = next(iter(lines.values()))
    arguments = _arguments(first.get("arguments"))
    rolling = bool(arguments) and all(len(request) == 1 for request in arguments)
    prompt = (
        ""
        if rolling or not arguments
        else _text(arguments[0][0] if arguments[0] else "")
    )
    responses, repeats = _responses(first.get("resps"), rolling)
    choices = _choices(arguments, responses)
    sample = _sample(doc, first, prompt, choices, ours)
    answer = _answer(lines, prompt, arguments, responses, choices)
    scores, failures = _scores(lines, metrics, less)
    extras: dict[str, Any] = {"target": _text(first.get("target", ""))}
    extras["arguments"] = [
        [None if argument == prompt else argument for argument in request]
        for request in arguments
    ]
    if repeats > 1:
        extras["repeats"] = repeats
    sample = replace(sample, metadata={**sample.metadata, "lm_eval": extras})
    record = SampleRecord(task, doc, 0, sample, answer, scores, None, failures)
    raw = stringify(first.get("resps") or [])
    if responses_by_request(record) != raw:
        extras["resps"] = raw
    filtered = {
        name: stringify(line.get("filtered_resps") or [])
        for name, line in lines.items()
    }
    if differing := {
        name: texts for name, texts in filtered.items() if texts != first_responses(raw)
    }:
        extras["filtered_resps"] = differing
    non_numeric = {
        name: {
            metric: line[metric]
            for metric in metrics.get(name, ())
            if isinstance(line.get(metric), list | dict)
        }
        for name, line in lines.items()
    }
    if non_numeric := {
        name: by_metric for name, by_metric in non_numeric.items() if by_metric
    }:
        extras["items"] = non_numeric
    return record


def failed_record(
    task: str, row: Mapping[str, Any], doc: int, ours: bool
) -> SampleRecord:
    """Build the record of a line of a failures file, which only our export writes."""
    sample = _sample(doc, row, "", (), ours)
    failure = Failure("not scored", "task", "The file does not say why.")
    if isinstance(details := row.get("failure"), dict):
        with suppress(TypeError):
            failure = Failure(**details)
    extras = {"lm_eval": {"target": _text(row.get("target", ""))}}
    sample = replace(sample, metadata={**sample.metadata, **extras})
    return SampleRecord(task, doc, 0, sample, None, {}, failure)


def _sample(
    doc: int, row: Mapping[str, Any], prompt: str, choices: tuple[str, ...], ours: bool
) -> Sample:
    content = row.get("doc")
    columns: Mapping[str, Any] = content if isinstance(content, dict) else {}
    question = next(
        (columns[key] for key in _QUESTIONS if isinstance(columns.get(key), str)),
        prompt,
    )
    target = _text(row.get("target", ""))
    gold = _gold(target, choices)
    targets = tuple(choices[index] for index in gold) or ((target,) if target else ())
    cluster = columns.get("cluster")
    name = columns.get("id")
    return Sample(
        id=name if ours and isinstance(name, str) else str(doc),
        input=question,
        targets=targets,
        choices=choices,
        gold=gold,
        metadata={"doc": content},
        cluster=cluster if ours and isinstance(cluster, str) else "",
    )


def _gold(target: str, choices: tuple[str, ...]) -> tuple[int, ...]:
    if not choices:
        return ()
    if target in choices:
        return (choices.index(target),)
    try:
        parsed = json.loads(target)
    except (ValueError, RecursionError):
        return ()
    listed = parsed if isinstance(parsed, list) else [parsed]
    return tuple(
        index
        for index in listed
        if isinstance(index, int) and 0 <= index < len(choices)
    )


def _arguments(arguments: Any) -> list[list[Any]]:
    """Arguments of each request, from lists (old files) or `{"gen_args_0": {"arg_0": ...}}`."""

    def as_list(request: Any, default: list[Any]) -> list[Any]:
        if isinstance(request, dict):
            return list(request.values())
        return request if isinstance(request, list) else default

    return [as_list(request, [request]) for request in as_list(arguments, [])]


def _responses(resps: Any, rolling: bool) -> tuple[tuple[Response, ...], int]:
    """All responses in order, and the number of responses to each request."""
    if not isinstance(resps, list) or not resps:
        return (), 1
    by_request = [
        responses if isinstance(responses, list) else [responses] for responses in resps
    ]
    return tuple(
        _response(response, rolling)
        for responses in by_request
        for response in responses
    ), max(1, len(by_request[0]))


def _response(response: Any, rolling: bool) -> Response:
    is_pair = (
        isinstance(response, list)
        and len(response) == 2
        and str(response[1]) in ("True", "False")
    )
    likelihood = (
        _likelihood(response[0] if is_pair else response)
        if is_pair or rolling
        else None
    )
    if likelihood is None:
        return Response(text=_text(response))
    return Response(
        log_likelihood=likelihood,
        is_greedy=str(response[1]) == "True" if is_pair else None,
    )


def _likelihood(value: Any) -> float | None:
    try:
        likelihood = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(likelihood) else likelihood


def _choices(
    arguments: Sequence[Sequence[Any]], responses: Sequence[Response]
) -> tuple[str, ...]:
    """The options of multiple choice: several continuations, or several contexts."""
    pairs = len(arguments) > 1 and all(len(request) == 2 for request in arguments)
    if not pairs or any(response.log_likelihood is None for response in responses):
        return ()
    continuations = [
        _text(request[1]) for request in arguments if request[0] == arguments[0][0]
    ]
    if len(continuations) > 1:
        return tuple(text.strip() for text in continuations)
    return tuple(_text(request[0]) for request in arguments)


def _answer(
    lines: Lines,
    prompt: str,
    arguments: Sequence[Sequence[Any]],
    responses: tuple[Response, ...],
    choices: tuple[str, ...],
) -> Answer:
    likelihoods = tuple(
        response.log_likelihood
        for response in responses
        if response.log_likelihood is not None
    )
    if choices and len(likelihoods) >= len(choices):
        values = likelihoods[: len(choices)]
        best = max(range(len(values)), key=values.__getitem__)
        return Answer(
            choices[best],
            choice=best,
            log_likelihoods=values,
            prompt=prompt,
            responses=responses,
        )
    if likelihoods and arguments and arguments[0]:
        text = _text(arguments[0][-1])
        return Answer(
            text, log_likelihoods=likelihoods[:1], prompt=prompt, responses=responses
        )
    filtered = next(iter(lines.values())).get("filtered_resps")
    while isinstance(filtered, list) and filtered:
        filtered = filtered[0]
    text = responses[0].text if responses else ""
    if isinstance(filtered, str):
        text = filtered
    return Answer(text, prompt=prompt, responses=responses)


def _scores(
    lines: Lines, metrics: Mapping[str, Sequence[str]], less: frozenset[str]
) -> tuple[dict[str, Score], dict[str, Failure]]:
    scores: dict[str, Score] = {}
    failures: dict[str, Failure] = {}
    for name, names in metrics.items():
        line = lines.get(name, {})
        parts = dict[str, float]()
        for metric in names:
            if (counted := pair(metric, line.get(metric))) is not None:
                parts["log_likelihood"], parts[COUNT_UNITS[metric]] = counted
            elif (value := number(line.get(metric))) is not None:
                parts[metric] = value
        worth = _item_score(names[0], line.get(names[0])) if names else None
        if worth is None:
            message = (
                f"The samples have no value of '{names[0]}' here."
                if names
                else "There is no metric."
            )
            failures[name] = Failure("no score", "scorer", message)
        elif names[0] in less and names[0] not in COUNT_UNITS and names[0] in parts:
            scores[name] = Score(
                -worth, explanation="negated: less is better", parts=parts
            )
        else:
            scores[name] = Score(worth, parts=parts)
    return scores, failures


def _item_score(metric: str, value: Any) -> float | None:
    """Reduce an item to one number: of a pair, the log-likelihood, or whether both are equal."""
    if (counted := pair(metric, value)) is not None:
        return counted[0]
    if not isinstance(value, list):
        return number(value)
    loss = _loss(metric, value)
    if loss is not None:
        return -loss
    return float(len(value) == 2 and value[0] == value[1])


BRIER = "brier_score"


def _loss(metric: str, value: Any) -> float | None:
    """An item's number; for a Brier score (gold choice, probabilities), the squared distance."""
    if metric != BRIER or not (
        isinstance(value, list) and len(value) == 2 and isinstance(value[1], list)
    ):
        return number(value)
    probabilities = [number(probability) or 0.0 for probability in value[1]]
    return math.fsum(
        (probability - float(index == value[0])) ** 2.0
        for index, probability in enumerate(probabilities)
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_RELATIVE_TOLERANCE = 1e-6
"""How far a recomputed number may be from the published one, which may be rounded."""

_NOT_METRICS = {"alias", "name", "sample_len", "sample_count", "samples"}


def list_metrics(task_results: Mapping[str, Any]) -> dict[str, list[str]]:
    """Metric names by filter, from old keys of the results (`acc`) or new ones (`acc,none`)."""
    names_by_filter: dict[str, list[str]] = {}
    for key, value in task_results.items():
        name, _, pipeline = key.partition(",")
        if (
            key in _NOT_METRICS
            or name.endswith("_stderr")
            or (number(value) is None and value != "N/A")
        ):
            continue
        names_by_filter.setdefault(pipeline or NO_FILTER, []).append(name)
    return names_by_filter


def published(
    task_results: Mapping[str, Any], metric: str, pipeline: str
) -> tuple[float | None, float | None]:
    """The published value and standard error of a metric; None where missing."""
    value = task_results.get(f"{metric},{pipeline}", task_results.get(metric))
    error = task_results.get(
        f"{metric}_stderr,{pipeline}", task_results.get(f"{metric}_stderr")
    )
    return number(value), number(error)


class Items:
    """One metric's items over a task's documents, as numbers or pairs (log-likelihood, count)."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.values = array("d")
        self.counts = array("d")
        self.clusters = array("q")
        self.missing = 0
        self.usable = True

    def add(self, item: Any, cluster: int) -> None:
        """Add one document's item; None counts as missing."""
        value, count = pair(self.metric, item) or (_loss(self.metric, item), 1.0)
        if value is not None:
            self.values.append(value)
            self.counts.append(count)
            self.clusters.append(cluster)
        elif item is None:
            self.missing += 1
        else:
            self.usable = False


def metric_result(
    metric: str,
    pipeline: str,
    task_results: Mapping[str, Any],
    n: int,
    items: Items | None,
    n_missing: int,
    clustered: bool,
) -> MetricResult:
    """Build a task's metric, recomputed if that gives the published number.

    n: number of samples according to the results. n_missing: samples without a score.
    """
    value, error = published(task_results, metric, pipeline)
    kind = our_kind(metric)
    estimate = None
    if items is not None and items.usable and len(items.values):
        kind, estimate = _recompute(
            metric, kind, items, n_missing + items.missing, clustered
        )
    tolerance = {"rel_tol": _RELATIVE_TOLERANCE, "abs_tol": _RELATIVE_TOLERANCE}
    if estimate is None or (
        value is not None and not math.isclose(estimate.value, value, **tolerance)
    ):
        kind = our_kind(metric)
        estimate = _as_published(
            kind, value, error, n or (len(items.values) if items else 0), n_missing
        )
    label = metric if pipeline == NO_FILTER else f"{metric},{pipeline}"
    return MetricResult(label, kind, pipeline, estimate)


def _recompute(
    metric: str, kind: str, items: Items, n_missing: int, clustered: bool
) -> tuple[str, Estimate | None]:
    """Compute the metric with our statistics; None if we have no such metric."""
    import numpy as np

    from evalwright import statistics

    values = np.frombuffer(items.values)
    counts = np.frombuffer(items.counts)
    clusters = np.frombuffer(items.clusters, np.int64) if clustered else None
    if metric == "perplexity":
        try:
            return kind, statistics.perplexity(
                values, counts, clusters=clusters, n_missing=n_missing
            )
        except ValueError:
            return kind, None
    if metric == BRIER:
        return kind, statistics.mean_interval(
            values, clusters=clusters, n_missing=n_missing, value_range=BRIER_RANGE
        )
    is_share = kind in ("accuracy", "exact-match")
    recomputed_kind = kind if is_share or metric in COUNT_UNITS else "mean"
    try:
        if metric in COUNT_UNITS:
            of_sums = (
                statistics.bits_per_byte
                if metric == "bits_per_byte"
                else statistics.perplexity
            )
            estimate = of_sums(values, counts, clusters=clusters, n_missing=n_missing)
        else:
            estimate = statistics.mean_interval(
                values,
                clusters=clusters,
                n_missing=n_missing,
                value_range=(0.0, 1.0) if is_share else None,
            )
    except ValueError:
        return kind, None
    # The kind says which way is better, so a mean of which less is better keeps its name.
    return kind if kind in LOWER_IS_BETTER_METRICS else recomputed_kind, estimate


def _as_published(
    kind: str, value: float | None, error: float | None, n: int, n_missing: int
) -> Estimate:
    if value is None:
        return by_error(
            math.nan, None, n, n_missing, "no number: the results have none"
        )
    if error is None or error <= 0:
        why = "imported from lm_eval, whose results have no standard error: no interval"
        return by_error(value, None, n, n_missing, why)
    method = "imported from lm_eval: normal interval from its standard error"
    return by_error(
        value,
        error,
        n,
        n_missing,
        method,
        (0.0, 1.0) if kind in BOUNDED_METRICS else None,
    )


def size(
    task_results: Mapping[str, Any], counted: Mapping[str, Any], names: Sequence[str]
) -> int:
    """The number of samples behind a task's results; 0 if unknown.

    Results before 0.4.3 do not have it. For a proportion p it follows from the standard error,
    whose square is p (1 - p) / (n - 1).
    """
    for count in (
        counted.get("effective"),
        task_results.get("sample_len"),
        task_results.get("samples"),
    ):
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 2**53:
            return count
    for name in names:
        if our_kind(name) in ("accuracy", "exact-match"):
            for pipeline in list_metrics(task_results):
                share, error = published(task_results, name, pipeline)
                if share is not None and error and 0 < share < 1:
                    n = share * (1 - share) / error**2 + 1
                    if abs(n - round(n)) < 1e-3 * max(1.0, n / 1000):
                        return round(n)
    return 0
