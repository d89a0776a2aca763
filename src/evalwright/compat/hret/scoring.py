"""The scorers and metrics of HRET's evaluation methods: published, by its own arithmetic (`published.py`), or corrected (`corrected.py`)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalwright.compat.hret import published as arithmetic
from evalwright.compat.hret import settings
from evalwright.compat.hret.corrected import CORRECTED, KIND, Call, Made, asking, penalised, penalty_of
from evalwright.compat.hret.judging import Judging, as_prompt, from_huggingface
from evalwright.compat.hret.plugins import RowGenerate
from evalwright.compat.hret.published import JUDGE_SCORE, PENALTY, Likelihood, Matching, Mathematics, Method
from evalwright.compat.hret.rows import ROW, row_of
from evalwright.compat.hret.settings import Given, check_parameters
from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.scorers.penalty import OPTION as PENALTY_OPTION
from evalwright.scorers.registry import JUDGE

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

HUGGINGFACE_JUDGE = "huggingface_judge"
ALIASES = {"log_prob": "log_likelihood", "logit_based": "log_likelihood"}
"""Names that HRET's documents use for an evaluation method of another name."""


def scoring_of(
    method: str,
    params: Given,
    *,
    published: bool,
    language: str | None,
    samples: Sequence[Sample] = (),
    judge: str = "",
) -> Made:
    """The scorers and metrics of one evaluation method, its main metric first.

    params: HRET's. language: what the penalty asks for, None for no penalty. samples: those that are scored; their rows say what a judge is
    asked. judge: the registry name of the judge that the call has, "" for none. Raises UnknownName and ConfigurationError.
    """
    if method not in CORRECTED:
        raise UnknownName("evaluation method", method, sorted(CORRECTED), f"Known: {', '.join(CORRECTED)}.")
    made = method_of(method, params)
    if PENALTY_OPTION in params and (published or isinstance(made, Judging)):
        raise ConfigurationError(
            f"The parameter '{PENALTY_OPTION}' is of corrected scoring, and of methods whose answers are right or wrong."
        )
    if published:
        return _published(method, made, language, samples, judge)
    scorers, specs = CORRECTED[method](Call(method, made, params, samples, judge))
    if PENALTY_OPTION in params:
        scorers[0] = penalised(scorers[0], {"expected": language or "ko", **params[PENALTY_OPTION]})
    if language is not None:
        scorers.append(penalty_of(language))
        specs.append(MetricSpec(f"{PENALTY}_average", "accuracy", PENALTY))
    return scorers, specs


METHODS: Mapping[str, Callable[..., Method]] = {
    "string_match": partial(Matching, True),
    "partial_match": partial(Matching, False),
    "log_likelihood": Likelihood,
    "math_match": Mathematics,
    "llm_judge": Judging,
}
"""The methods by HRET's names."""


def method_of(name: str, params: Given) -> Method:
    """A method with its parameters. Raises Unknown for one that it does not take; HRET's judge takes any, published."""
    known = list(inspect.signature(METHODS[name]).parameters)
    if name != "llm_judge" or not settings.is_published():
        check_parameters(f"the evaluation method '{name}'", params, [*known, PENALTY_OPTION])
    return METHODS[name](**{key: value for key, value in params.items() if key in known})


# -- published ----------------------------------------------------------------------------------------------------------


def _published(
    name: str, method: Method, language: str | None, samples: Sequence[Sample], judge: str
) -> Made:
    """One scorer for all that HRET writes into a sample, in its order: the parsed prediction, the verdict, the penalty of what was parsed."""
    asks = isinstance(method, Judging) or bool(judge)

    def begun(sample: Sample, answer: Answer) -> dict[str, Any]:
        row = row_of(sample, answer)
        row["prediction"] = method.parse(row["prediction"])
        if answer.log_likelihoods:
            row.setdefault("logits", {"option_log_probs": list(answer.log_likelihoods)})
        return row

    def ended(sample: Sample, answer: Answer, row: dict[str, Any], found: Score | None = None) -> Score:
        score = method.written(row, found or method.score(row))
        if language is not None:
            row[PENALTY] = arithmetic.detected(row.get("prediction"), language)
            score = replace(score, parts={**score.parts, PENALTY: row[PENALTY]})
        before = row_of(sample, answer)
        changed = {key: one for key, one in row.items() if key not in before or before[key] != one}
        return replace(score, item={ROW: changed})

    def score(sample: Sample, answer: Answer) -> Score:
        return ended(sample, answer, begun(sample, answer))

    async def asked(sample: Sample, answer: Answer, ask: Ask) -> Score:
        row = begun(sample, answer)
        if not isinstance(method, Judging):
            # The judge is sent the question, and its reply takes the place of the answer.
            row.update(await _reply(str(row.get("input", "")), row, sample.id, judge, ask))
            return ended(sample, answer, row)
        prompt = method.prompt(row)
        if prompt is None:
            return ended(sample, answer, row, method.lost())
        reply = await _reply(prompt, {}, sample.id, judge, ask)
        return ended(sample, answer, row, method.read(row, reply["prediction"], reply.get(JUDGE_SCORE)))

    metrics = [(label, part, False) for label, part in method.means.items()]
    metrics += [(label, part, True) for label, part in method.shares_of(map(row_of, samples)).items()]
    if language is not None:
        metrics.append((f"{PENALTY}_average", PENALTY, True))
    specs = []
    for label, part, of_all in metrics:
        lower, number = label.endswith("failure_rate"), partial(_metric, part, of_all)
        specs.append(MetricSpec(label, "mean", name, lower_is_better=lower, function=number))
    options = {"scoring": "published", "language": language}
    return [Scorer(name, KIND, options, asked if asks else score, **asking(asks))], specs


async def _reply(prompt: str, row: Given, key: str, judge: str, ask: Ask) -> dict[str, Any]:
    """What a judge writes into a sample: its `prediction`, which may be None, and what else it has."""
    prompt += arithmetic.texts()[HUGGINGFACE_JUDGE]["suffix"] if judge == HUGGINGFACE_JUDGE else ""
    found: dict[str, Any] = {}
    row = {**row, "input": prompt}
    request = RowGenerate(as_prompt(prompt, ask), temperature=None, row=row, found=found, key=key)
    response = await ask(JUDGE, request)
    if judge == HUGGINGFACE_JUDGE:
        return from_huggingface(prompt, response.text)
    if len(response.values) == 1:
        found.setdefault(JUDGE_SCORE, response.values[0])
    if response.finish_reason:
        found.setdefault("finish_reason", response.finish_reason)
    return {"prediction": response.text, **found}


def _metric(part: str, of_all: bool, column: Column) -> Estimate:
    """A mean over all samples that were asked, where those that failed and those without the part count 0; or over those that have it."""
    from evalwright.statistics import Estimate

    values = [float(one) for one in column.parts.get(part, ()) if one == one]
    lost = len(column.values) - len(values) + column.n_failed if of_all else 0
    value = arithmetic.share(values, lost) if values or of_all else math.nan
    method = "no interval (as published)" if value == value else "no number: HRET has none here"
    return Estimate(value, math.nan, math.nan, 0.95, len(column.values), column.n_failed, None, None, method)
