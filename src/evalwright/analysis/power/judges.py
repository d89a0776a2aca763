"""Forecasts the cost of a judge of unsure answers, from a pilot's share of them if there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalwright.analysis.power.forecasts import Amount, JudgeForecast, TaskForecast
from evalwright.analysis.power.opening import MeasuredRun, PlannedModel
from evalwright.analysis.power.spending import find_price, sum_amounts
from evalwright.analysis.words import count, counted
from evalwright.core.private import home_folder
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.opening import open_roles
from evalwright.evaluation.settings import Settings
from evalwright.models.model_interface import LocalModel
from evalwright.models.remote.prices import Price
from evalwright.statistics import mean_interval

RUBRIC_TOKENS = 400
"""Tokens of a judge's instruction, besides the question and the answer: a guess."""

VERDICT_TOKENS = 150
"""Tokens of a judge's verdict with its reason: a guess."""


def forecast_judges(
    settings: Settings,
    planned: Sequence[PlannedModel],
    tasks: Sequence[TaskForecast],
    sources: Sequence[MeasuredRun],
    prices: Mapping[str, Price],
    level: float,
    own_shares: Sequence[Mapping[str, float]],
) -> Iterator[JudgeForecast]:
    """Forecast the cost of each role that re-scores answers of which rules are unsure.

    Args:
        settings: of the plan; they name the models of the roles.
        planned: the models under test with their tasks.
        tasks: the forecasts of these tasks, in the same order.
        sources: earlier runs, whose share of unsure scores is used.
        prices: by model name, "" for all others.
        level: confidence level of the interval of that share.
        own_shares: by task and planned model, the share of its requests that no other has.
    """
    requests: dict[str, list[Amount]] = {}
    tokens: dict[str, list[Amount]] = {}
    for number, forecast in enumerate(tasks):
        for role in _second_reader_roles(planned[0].tasks[number]):
            for model in planned:
                usage = forecast.models[model.name]
                own_share = own_shares[number][model.name]
                n_answers = forecast.n_used * model.tasks[number].draws * own_share
                judge_requests = _forecast_requests(
                    forecast.task, model, n_answers, sources, level
                )
                requests.setdefault(role, []).append(judge_requests)
                per_answer = _tokens_per_answer(
                    usage.input_tokens, usage.output_tokens, n_answers
                )
                tokens.setdefault(role, []).append(
                    judge_requests.times(per_answer + RUBRIC_TOKENS)
                )
    for role, role_requests in requests.items():
        spec = settings.configuration.roles.get(role)
        all_requests = sum_amounts(role_requests)
        if spec is None:
            yield JudgeForecast(
                role,
                "",
                all_requests,
                Amount(None, basis=f"no model is named for the role '{role}'"),
            )
            continue
        home = home_folder(settings.configuration.home)
        judge = open_roles({role: spec}, settings.models, home=home)[role]
        if isinstance(judge, LocalModel):
            yield JudgeForecast(
                role,
                judge.name,
                all_requests,
                Amount(0.0, basis="runs on this machine"),
            )
            continue
        price = prices.get(judge.name, prices.get("")) or find_price(judge)
        yield JudgeForecast(
            role,
            judge.name,
            all_requests,
            _forecast_money(judge.name, price, all_requests, sum_amounts(tokens[role])),
        )


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
        return Amount(None, basis=f"no price is known for {name}: give --price IN/OUT")
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
