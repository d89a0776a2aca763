"""Forecasts what judges and other models in roles take: from what earlier answers took of them.

Without earlier answers, a judge of unsure answers takes no request to one for every answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalwright.analysis.power.forecasts import (
    Amount,
    JudgeForecast,
    ModelForecast,
    TaskForecast,
)
from evalwright.analysis.power.opening import MeasuredRun, PlannedModel
from evalwright.analysis.power.spending import (
    SPENT_FIELDS,
    find_price,
    mean_amount,
    sum_amounts,
    sum_by_field,
)
from evalwright.analysis.words import count, counted
from evalwright.core.private import home_folder
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.opening import open_roles
from evalwright.evaluation.settings import Settings
from evalwright.models.model_interface import LocalModel
from evalwright.models.remote.prices import Price
from evalwright.runs.measurements import RoleRequests
from evalwright.scorers.consistency.evidence import PARTS_OF_A_STEP, SEARCH_STEPS
from evalwright.statistics import mean_interval
from evalwright.strategies.sampling import TARGET

RUBRIC_TOKENS = 400
"""Tokens of a judge's instruction, besides the question and the answer: a guess."""

VERDICT_TOKENS = 150
"""Tokens of a judge's verdict with its reason: a guess."""


EVIDENCE_TOKENS = 400
"""Tokens of a verdict that also names the evidence of every sentence: a guess."""

SUMMARY_SENTENCES = 5
"""Sentences of an answer that is judged sentence by sentence: a guess."""


class RoleModel(NamedTuple):
    """The model in a role, by name, and what it costs; the name is "" where none is named.

    `classifies` says whether it judges pairs of texts; other judges write verdicts.
    """

    role: str
    name: str
    is_local: bool
    price: Price | None
    classifies: bool = False


def find_role_models(
    settings: Settings,
    planned: Sequence[PlannedModel],
    sources: Sequence[MeasuredRun],
    prices: Mapping[str, Price],
) -> list[RoleModel]:
    """Find the models of all roles that the tasks need besides the models under test.

    Args:
        settings: of the plan; they name the models of the roles.
        planned: the models under test with their tasks.
        sources: earlier runs, whose models have the roles that the settings do not name.
        prices: by model name, "" for all others.
    """
    needed = {role for task in planned[0].tasks for role in task.roles} - {TARGET}
    configuration = settings.configuration
    if configuration.no_judge:
        return []
    home = home_folder(configuration.home)
    role_models = []
    for role in sorted(needed):
        spec = configuration.roles.get(role)
        if spec is None:
            role_models.append(_recorded_model(role, sources, prices))
            continue
        model = open_roles({role: spec}, settings.models, home=home)[role]
        priced_names = [*role_price_names(spec), model.name, ""]
        price = next((prices[name] for name in priced_names if name in prices), None)
        is_local = isinstance(model, LocalModel)
        role_models.append(
            RoleModel(
                role,
                model.name,
                is_local,
                price or find_price(model),
                "classify" in model.abilities,
            )
        )
    return role_models


def role_price_names(spec: ModelSpec) -> list[str]:
    """List the names that a price may use for the model of a role."""
    names = (spec.label, spec.model, spec.model.partition("/")[2])
    return [name for name in names if name]


def _recorded_model(
    role: str, sources: Sequence[MeasuredRun], prices: Mapping[str, Price]
) -> RoleModel:
    """Find the model of a role in the records of earlier runs."""
    for source in sources:
        recorded = (source.run.data.get("roles") or {}).get(role)
        if not recorded:
            continue
        name = str(recorded.get("name", ""))
        price = prices.get(name) or prices.get("")
        recorded_price = recorded.get("price")
        if price is None and recorded_price:
            price = Price(recorded_price["input"], recorded_price["output"])
        return RoleModel(role, name, "provider" not in recorded, price)
    return RoleModel(role, "", False, None)


def forecast_judges(
    number: int,
    forecast: TaskForecast,
    role_models: Sequence[RoleModel],
    planned: Sequence[PlannedModel],
    sources: Sequence[MeasuredRun],
    level: float,
    own_shares: Mapping[str, float],
) -> Iterator[JudgeForecast]:
    """Forecast what each role takes on one task, for all models under test together.

    Args:
        number: which of the tasks.
        forecast: its forecast.
        role_models: the models of all roles.
        planned: the models under test with their tasks.
        sources: earlier runs, whose requests to the role are used, or their share of unsure scores.
        level: confidence level of intervals.
        own_shares: by planned model, the share of its requests that no other has.
    """
    task = planned[0].tasks[number]
    for role_model in role_models:
        if role_model.role not in task.roles:
            continue
        forecasts = []
        for model in planned:
            draws = model.tasks[number].draws
            n_answers = forecast.n_used * draws * own_shares[model.name]
            forecasts.append(
                _forecast_role(
                    role_model, model, task, forecast, n_answers, sources, level
                )
            )
        yield sum_judges(forecasts)


def _forecast_role(
    role_model: RoleModel,
    model: PlannedModel,
    task: Task,
    forecast: TaskForecast,
    n_answers: float,
    sources: Sequence[MeasuredRun],
    level: float,
) -> JudgeForecast:
    """Forecast what a role takes for one model's answers: as measured, else by the scorers."""
    role = role_model.role
    measured = _measured_requests(role, forecast.task, model, sources)
    if measured is not None:
        return _forecast_measured(role_model, *measured, n_answers, level)
    usage = forecast.models[model.name]
    if role in _second_reader_roles(task):
        requests = _forecast_requests(forecast.task, model, n_answers, sources, level)
        return _forecast_unsure(role_model, usage, requests, n_answers)
    scorer = _consistency_scorer(task, role)
    if scorer is not None and role_model.name:
        return _forecast_consistency(role_model, scorer, usage, n_answers)
    return _unknown_forecast(role_model)


def sum_judges(forecasts: Sequence[JudgeForecast]) -> JudgeForecast:
    """Add up what a role takes for several models or tasks."""
    return JudgeForecast(
        role=forecasts[0].role,
        model=forecasts[0].model,
        unsure_only=all(forecast.unsure_only for forecast in forecasts),
        **sum_by_field(forecasts, SPENT_FIELDS),
    )


def sum_by_role(judges: Iterable[JudgeForecast]) -> tuple[JudgeForecast, ...]:
    """Add up what roles take over several tasks, one forecast a role."""
    by_role: dict[str, list[JudgeForecast]] = {}
    for judge in judges:
        by_role.setdefault(judge.role, []).append(judge)
    return tuple(sum_judges(forecasts) for forecasts in by_role.values())


def _measured_requests(
    role: str, task: str, model: PlannedModel, sources: Sequence[MeasuredRun]
) -> tuple[RoleRequests, str] | None:
    """Find what scoring earlier answers took of a role, best those of the same model and prompt."""
    task_sources = [source for source in sources if task in source.tasks]
    task_sources.sort(key=lambda source: not model.is_run_by(source.run))
    for source in task_sources:
        requests = source.tasks[task].roles.get(role)
        if requests is not None and requests.counts_tokens:
            n_answers = counted(len(requests.requests), "answer")
            return requests, f"measured on {n_answers} of {source.run.label}"
    return None


def _forecast_measured(
    role_model: RoleModel,
    measured: RoleRequests,
    basis: str,
    n_answers: float,
    level: float,
) -> JudgeForecast:
    requests, input_tokens, output_tokens = (
        mean_amount(amounts, basis, level).times(n_answers)
        for amounts in (
            measured.requests,
            measured.input_tokens,
            measured.output_tokens,
        )
    )
    price = role_model.price
    if price is not None:
        price_text = (
            f"${price.input:g} in and ${price.output:g} out for a million tokens"
        )
        money = _cost_of_tokens(price, requests, input_tokens, output_tokens).because(
            price_text
        )
    elif role_model.is_local:
        money = Amount(0.0, basis="runs on this machine")
    elif bool((measured.cost == measured.cost).all()):
        money = mean_amount(
            measured.cost, f"as reported by its replies, {basis}", level
        ).times(n_answers)
    else:
        money = _no_price(role_model.name)
    return JudgeForecast(
        role_model.role,
        role_model.name,
        requests,
        money,
        input_tokens,
        output_tokens,
    )


def _cost_of_tokens(
    price: Price, requests: Amount, input_tokens: Amount, output_tokens: Amount
) -> Amount:
    """Forecast US dollars for requests whose tokens are known."""
    return sum_amounts(
        [
            input_tokens.times(price.input / 1e6),
            output_tokens.times(price.output / 1e6),
            requests.times(price.request),
        ]
    )


def _forecast_unsure(
    role_model: RoleModel, usage: ModelForecast, requests: Amount, n_answers: float
) -> JudgeForecast:
    """Forecast a judge that only reads answers of which rules are unsure, without earlier ones."""
    per_answer = _tokens_per_answer(usage.input_tokens, usage.output_tokens, n_answers)
    input_tokens = requests.times(per_answer + RUBRIC_TOKENS)
    output_tokens = requests.times(VERDICT_TOKENS)
    if not role_model.name:
        basis = f"no model is named for the role '{role_model.role}'"
        money = Amount(None, basis=basis)
    elif role_model.is_local:
        money = Amount(0.0, basis="runs on this machine")
    else:
        money = _forecast_money(
            role_model.name, role_model.price, requests, input_tokens
        )
    return JudgeForecast(
        role_model.role,
        role_model.name,
        requests,
        money,
        input_tokens,
        output_tokens,
        unsure_only=True,
    )


def _consistency_scorer(task: Task, role: str) -> Scorer | None:
    """Return the scorer of consistency that asks a role; None if another scorer does too."""
    asking = [scorer for scorer in task.scorers if role in scorer.roles]
    if len(asking) != 1 or asking[0].kind != "consistency":
        return None
    return None if asking[0].options.get("chunk_words") else asking[0]


def _forecast_consistency(
    role_model: RoleModel, scorer: Scorer, usage: ModelForecast, n_answers: float
) -> JudgeForecast:
    """Forecast a judge of consistency by what its scorer asks, without earlier answers."""
    requests = _requests_of_consistency(role_model, scorer).times(n_answers)
    per_answer = _tokens_per_answer(usage.input_tokens, usage.output_tokens, n_answers)
    has_evidence = bool(scorer.options.get("evidence"))
    verdict_tokens = EVIDENCE_TOKENS if has_evidence else VERDICT_TOKENS
    if role_model.classifies:
        input_tokens = requests.times(per_answer)
        output_tokens = requests.times(0)
    else:
        input_tokens = requests.times(per_answer + RUBRIC_TOKENS)
        output_tokens = requests.times(verdict_tokens)
    if role_model.is_local:
        money = Amount(0.0, basis="runs on this machine")
    elif role_model.price is None:
        money = _no_price(role_model.name)
    else:
        money = _cost_of_tokens(
            role_model.price, requests, input_tokens, output_tokens
        ).because(requests.basis)
    return JudgeForecast(
        role_model.role,
        role_model.name,
        requests,
        money,
        input_tokens,
        output_tokens,
    )


def _requests_of_consistency(role_model: RoleModel, scorer: Scorer) -> Amount:
    """Return the requests that judging one answer takes.

    Answers that are no summaries take none, so it is an upper bound.
    """
    if not role_model.classifies:
        return Amount(1.0, 0.0, 1.0, "a verdict for each answer")
    has_evidence = bool(scorer.options.get("evidence"))
    by_sentence = scorer.options.get("hypothesis") == "sentences"
    by_sentence = by_sentence or has_evidence or bool(scorer.options.get("sentences"))
    if not by_sentence:
        return Amount(1.0, 0.0, 1.0, "a pair for each answer")
    windows = PARTS_OF_A_STEP * SEARCH_STEPS if has_evidence else 0
    most = 1.0 + SUMMARY_SENTENCES * (1 + windows)
    basis = f"answers of about {SUMMARY_SENTENCES} sentences, a pair for each"
    if has_evidence:
        basis += f" and at most {windows} to find its evidence"
    return Amount(None, 1.0, most, basis)


def _unknown_forecast(role_model: RoleModel) -> JudgeForecast:
    unknown = Amount(
        None, basis="not measured yet: use --pilot, or --from a run with this role"
    )
    return JudgeForecast(
        role_model.role, role_model.name, unknown, unknown, unknown, unknown
    )


def _no_price(name: str) -> Amount:
    return Amount(None, basis=f"no price is known for {name}: give --price IN/OUT")


def _second_reader_roles(task: Task) -> tuple[str, ...]:
    """List the roles of judges that re-score answers of which rules are unsure."""
    second: list[Scorer] = [
        scorer for scorer in task.scorers if "unsure" in scorer.options
    ]
    return tuple(dict.fromkeys(role for scorer in second for role in scorer.roles))


def _forecast_requests(
    task: str,
    model: PlannedModel,
    n_answers: float,
    sources: Sequence[MeasuredRun],
    level: float,
) -> Amount:
    """Forecast the requests to the judge for one model's answers to one task."""
    task_sources = [source for source in sources if task in source.tasks]
    model_sources = [source for source in task_sources if model.is_run_by(source.run)]
    for source in model_sources or task_sources:
        task_result = source.run.task(task)
        if not task_result.n_samples:
            continue
        if source.run.data.get("roles"):
            share = Amount(
                min(1.0, source.judges),
                basis=f"as in {source.run.id}, which had a judge",
            )
        else:
            unsure = [1.0] * task_result.n_unsure + [0.0] * (
                task_result.n_samples - task_result.n_unsure
            )
            interval = mean_interval(unsure, level=level)
            basis = (
                f"{count(task_result.n_unsure)} of {counted(task_result.n_samples, 'reading')} of"
                f" {source.run.id} are unsure"
            )
            share = Amount(interval.value, interval.low, interval.high, basis)
        return share.times(n_answers)
    return Amount(
        None,
        0.0,
        float(n_answers),
        "only unsure answers are sent, from none of them to all",
    )


def _tokens_per_answer(
    input_tokens: Amount, output_tokens: Amount, n_answers: float
) -> float:
    """The upper bound of the tokens in a question with its answer."""
    return ((input_tokens.most or 0.0) + (output_tokens.most or 0.0)) / max(
        1, n_answers
    )


def _forecast_money(
    name: str, price: Price | None, requests: Amount, tokens: Amount
) -> Amount:
    if price is None:
        return _no_price(name)
    costs = [
        tokens.times(price.input / 1e6),
        requests.times(VERDICT_TOKENS * price.output / 1e6),
        requests.times(price.request),
    ]
    basis = (
        f"at most question, answer and about {RUBRIC_TOKENS} tokens of instruction in,"
        f" about {VERDICT_TOKENS} out"
    )
    if requests.value is None:
        return Amount(None, 0.0, sum(cost.most or 0.0 for cost in costs), basis)
    return sum_amounts(costs).because(basis)
