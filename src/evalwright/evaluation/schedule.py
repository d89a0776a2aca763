"""A run in rounds: which samples come next, what the rules say, and when nothing is left to do.

Every round extends each model and task whose question is open to the next look, both models of a
pair to the same one. Looks are valid whenever they come, so their places only affect cost: every
twentieth of the units, at least 50; further and further apart if models have to take turns in
memory. A rule sees whole units in the order of the plan, whatever order answers arrive in, so a run
that is started again from stored answers decides the same.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.engine.budget import Budget
from evalwright.evaluation.planning import PlannedRun
from evalwright.evaluation.rules import (
    ModelRule,
    ScoreKind,
    UnitOrder,
    in_full,
    score_kind,
)
from evalwright.evaluation.run_names import model_label
from evalwright.models.model_interface import LocalModel, Model
from evalwright.runs.writer import write_plan
from evalwright.statistics.tipping import MAX_MISSING_SHARE

if TYPE_CHECKING:
    from evalwright.statistics import Decision
    from evalwright.statistics.stopping_pairs import PairFamily, PairMonitor

FIRST_LOOK = 50
"""Units before the first look, and the least between two."""

LOOKS = 20
"""About as many looks as a whole run has."""

GROWTH = 1.5
"""Factor by which each look is further than the last if every round has to load models."""


@dataclass(frozen=True, slots=True)
class SampleSlice:
    """What a round evaluates of one model on one task: units from `start` to before `end`."""

    task: int
    start: int
    end: int


def look_places(n_units: int, *, rare: bool = False) -> list[int]:
    """Return after how many units to look; the last is `n_units`.

    `rare` is for models that must be loaded anew each time.
    """
    step = max(FIRST_LOOK, -(-n_units // LOOKS))
    places = [min(step, n_units)]
    while places[-1] < n_units:
        following = (
            max(int(places[-1] * GROWTH), places[-1] + step)
            if rare
            else places[-1] + step
        )
        places.append(min(following, n_units))
    return places


class ScoreTable:
    """One model's scores on one task by sample: means over draws, and what is complete."""

    def __init__(self, score_kind: ScoreKind, task: Task) -> None:
        self._kind = score_kind
        self._draws = task.draws
        self._seen = array("i", [0]) * len(task.samples)
        self._scored = array("i", [0]) * len(task.samples)
        self._sums = array("d", [0.0]) * len(task.samples)

    def add(self, record: SampleRecord) -> None:
        """Count one record."""
        self._seen[record.index] += 1
        score = record.scores.get(self._kind.scorer)
        if score is not None:
            number = (
                score.parts.get(self._kind.part, score.value)
                if self._kind.part
                else score.value
            )
            self._scored[record.index] += 1
            self._sums[record.index] += number

    def scores(self, indices: Sequence[int]) -> list[float | None] | None:
        """Return the scores of the items of one unit, None for a missing one.

        It is None as a whole if an item is not evaluated yet. Unsure scores count with their value.
        """
        if any(self._seen[index] < self._draws for index in indices):
            return None
        return [
            self._sums[index] / self._scored[index] if self._scored[index] else None
            for index in indices
        ]

    def count_missing(self, indices: Sequence[int]) -> int:
        """Return how many of the items are fully evaluated but have no score."""
        return sum(
            self._seen[index] >= self._draws and not self._scored[index]
            for index in indices
        )


TableKey = tuple[int, int, ScoreKind]
"""Which scores a table has: those of a run, by number, on a task, by number."""


class InterimAnalysis:
    """One rule on one task, for one model or a pair.

    Analyses of the same scores share a table in `tables`.
    """

    def __init__(
        self,
        model_rule: ModelRule,
        models: tuple[int, ...],
        number: int,
        task: Task,
        order: UnitOrder,
        n_tasks: int,
        tables: dict[TableKey, ScoreTable] | None = None,
    ) -> None:
        from evalwright.statistics import Monitor
        from evalwright.statistics.stopping_pairs import PairMonitor

        rule_scores = score_kind(model_rule.rule, task)
        assert rule_scores is not None
        self.rule = model_rule.rule
        self.models = models
        self.number = number
        self.task = task
        self.kind = rule_scores
        shared_tables = {} if tables is None else tables
        self.tables: dict[int, ScoreTable] = {}
        for model in models:
            key = model, number, rule_scores
            if key not in shared_tables:
                shared_tables[key] = ScoreTable(rule_scores, task)
            self.tables[model] = shared_tables[key]
        self.trouble = ""
        self._order = order
        self._fed = 0
        scores: dict[str, Any] = {
            "binary": rule_scores.binary,
            "value_range": rule_scores.value_range,
            "clustered": order.clustered,
            "n_items": len(order.items),
            "tasks": n_tasks,
        }
        self.n_pairs = model_rule.n_pairs
        self.pair_monitor: PairMonitor | None = None
        if self.n_pairs > 1:
            self.pair_monitor = PairMonitor(
                model_rule.rule, order.n_units, n_pairs=self.n_pairs, **scores
            )
        self._monitor = self.pair_monitor or Monitor(
            model_rule.rule, order.n_units, **scores
        )
        self.decision: Decision = self._monitor.decision()
        """What is known by the latest look."""

    @property
    def unit(self) -> str:
        """The name of its units."""
        return "clusters" if self._order.clustered else "items"

    @property
    def open(self) -> bool:
        """Whether more answers may still decide the rule."""
        return not self.decision.decided

    @property
    def may_look(self) -> bool:
        """Whether there are enough units; a budget may end before the first look."""
        return self._fed >= min(FIRST_LOOK, self._order.n_units)

    def feed(self) -> None:
        """Take the complete units, in their order."""
        while not self.trouble and self._fed < self._order.n_units:
            members = self._order.members(self._fed)
            scores = [table.scores(members) for table in self.tables.values()]
            if any(unit_scores is None for unit_scores in scores):
                break
            try:
                self._monitor.submit(self._fed, *scores)
            except ValueError as error:
                # The metric does not allow this score: the run continues without the rule.
                self.trouble = f"{error}."
                if self.pair_monitor is not None:
                    self.pair_monitor.withdrawn = True
                break
            self._fed += 1

    def look(self) -> None:
        """Look once at the complete units; one of several pairs is decided by its family."""
        self.feed()
        if self.may_look:
            self.decision = self._monitor.decision()

    @property
    def provisional(self) -> str:
        """Return why the decision is provisional; "" if it is not.

        It is if too many answers are missing from the units seen.
        """
        indices = [
            index for unit in range(self._fed) for index in self._order.members(unit)
        ]
        if not indices:
            return ""
        sentences = []
        names = [self.rule.a, self.rule.b] if len(self.models) > 1 else [""]
        for name, table in zip(names, self.tables.values(), strict=True):
            n_missing = table.count_missing(indices)
            share = n_missing / len(indices)
            if share > MAX_MISSING_SHARE:
                of_model = f" of {name}" if name else ""
                sentences.append(
                    f"{n_missing:,} of {len(indices):,} answers{of_model} are missing"
                    f" ({100 * share:.1f}%, more than 5%)"
                )
        return f"{' and '.join(sentences)}." if sentences else ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON: the rule, its task, and the decision."""
        decision = self.decision.as_dict()
        trouble = self.trouble
        if (
            decision["value"] is None and decision["decided"]
        ):  # a decision needs some scores
            trouble = "no item has the scores that it needs."
        if trouble:
            decision |= {"decided": False, "verdict": "undecided", "trouble": trouble}
        if decision["decided"] and self.provisional:
            decision["provisional"] = self.provisional
        return {
            "task": self.task.name,
            "rule": in_full(self.rule),
            "metric": self.rule.metric,
            "a": self.rule.a,
            "b": self.rule.b,
            "unit": self.unit,
            "bounded": self.kind.value_range == (0.0, 1.0),
            **({"pairs": self.n_pairs} if self.n_pairs > 1 else {}),
            **decision,
        }


def group_models(plans: Sequence[PlannedRun], budget: Budget | None) -> list[list[int]]:
    """Return which runs have to be evaluated in step.

    They are those that a rule compares, those of pairs that are corrected for each other, and all
    if they share a budget.
    """
    group_of = list(range(len(plans)))
    pairs = [
        model_rule.pair for model_rule in plans[0].rules if model_rule.pair is not None
    ]
    corrected = [
        number
        for model_rule in plans[0].rules
        if model_rule.pair is not None and model_rule.n_pairs > 1
        for number in model_rule.pair
    ]
    pairs += [(corrected[0], number) for number in corrected]
    if budget is not None:
        pairs = [(0, number) for number in range(len(plans))]
    for a, b in pairs:
        old = group_of[b]
        new = group_of[a]
        group_of = [new if group == old else group for group in group_of]
    return [
        [i for i, own_group in enumerate(group_of) if own_group == group]
        for group in dict.fromkeys(group_of)
    ]


class Schedule:
    """The schedule of models that are evaluated in step. Add every record; look after every round.

    `members` are the numbers of these models among `plans`. Without rules there is one open
    question, the whole run, which a budget may end.
    """

    def __init__(self, plans: Sequence[PlannedRun], members: Sequence[int]) -> None:
        self.plans = plans
        self.members = members
        self._tables: dict[TableKey, ScoreTable] = {}
        self.analyses = [
            analysis
            for model_rule in plans[0].rules
            for analysis in _analyses(
                model_rule,
                plans,
                [model for model in members if model_rule.concerns(model)],
                self._tables,
            )
        ]
        self._families = _families(self.analyses)
        model_by_id = {
            id(model): model for number in members for model in _models(plans[number])
        }
        heavy = [
            model
            for model in model_by_id.values()
            if isinstance(model, LocalModel) and model.heavy
        ]
        self._places = [
            look_places(order.n_units, rare=len(heavy) > 1) for order in plans[0].orders
        ]
        self._asked = [[0] * len(plan.tasks) for plan in plans]
        self._analysed = {
            (model, analysis.number)
            for analysis in self.analyses
            for model in analysis.models
        }

    def add(self, model: int, task: int, record: SampleRecord) -> None:
        """Add a sample that is scored, or missing."""
        for (table_model, table_task, _), table in self._tables.items():
            if (table_model, table_task) == (model, task):
                table.add(record)

    def look(self) -> None:
        """Let every open rule look at what is new, after a round."""
        still_open = [analysis for analysis in self.analyses if analysis.open]
        for analysis in still_open:
            analysis.feed()
        if any(analysis.may_look for analysis in still_open):
            for family in self._families:
                family.look()
        for analysis in still_open:
            analysis.look()

    def rounds(
        self, budget: Budget | None = None
    ) -> Iterator[dict[int, list[SampleSlice]]]:
        """Yield what to evaluate next of each model, until nothing is open.

        First comes what rules look at, then the rest. What a budget cannot pay for in full is
        shared evenly, so that it ends with all models at the same place. Once it is spent, the rest
        follows nevertheless, because stored responses cost nothing.
        """
        for analysed in (True, False):
            while work := {
                model: slices
                for model in self.members
                if (slices := self._next(model, analysed, budget))
            }:
                if budget is not None and not budget.reached:
                    work = self._affordable(work, budget)
                for model, slices in work.items():
                    for sample_slice in slices:
                        self._asked[model][sample_slice.task] = sample_slice.end
                yield work

    def _next(
        self, model: int, analysed: bool, budget: Budget | None
    ) -> list[SampleSlice]:
        slices = []
        for task, order in enumerate(self.plans[model].orders):
            start = self._asked[model][task]
            if start == order.n_units or ((model, task) in self._analysed) != analysed:
                continue
            if analysed and not self._is_open(model, task):
                continue
            in_steps = analysed or (budget is not None and not budget.reached)
            places = self._places[task] if in_steps else [order.n_units]
            slices.append(SampleSlice(task, start, places[bisect_right(places, start)]))
        return slices

    def _affordable(
        self, work: dict[int, list[SampleSlice]], budget: Budget
    ) -> dict[int, list[SampleSlice]]:
        n_answers = sum(
            self._answers(model, sample_slice)
            for model, slices in work.items()
            for sample_slice in slices
        )
        share = budget.next_round(sum(map(len, work.values()))) / n_answers
        if share >= 1:
            return work
        return {
            model: [
                replace(
                    sample_slice,
                    end=sample_slice.start
                    + max(1, int(share * (sample_slice.end - sample_slice.start))),
                )
                for sample_slice in slices
            ]
            for model, slices in work.items()
        }

    def _answers(self, model: int, sample_slice: SampleSlice) -> int:
        plan = self.plans[model]
        starts = plan.orders[sample_slice.task].starts
        return (starts[sample_slice.end] - starts[sample_slice.start]) * plan.tasks[
            sample_slice.task
        ].draws

    def _is_open(self, model: int, task: int) -> bool:
        return any(
            analysis.open
            for analysis in self.analyses
            if analysis.number == task and model in analysis.models
        )

    def state(self, model: int) -> str:
        """Return the state of a model's rules in a few words; "" without any."""
        shown_ones = [
            analysis for analysis in self.analyses if model in analysis.models
        ]
        still = [analysis for analysis in shown_ones if analysis.open]
        names_tasks = len(self.plans[model].tasks) > 1
        words = [
            _state(analysis, names_tasks) for analysis in (still or shown_ones)[:1]
        ]
        if len(still) > 1:
            words.append(f"{len(still) - 1} more open")
        return "; ".join(words)

    def record(
        self, model: int, done: Sequence[int], per_answer: float
    ) -> dict[str, Any]:
        """Return the part "stopping" of a model's `run.json`.

        Args:
            done: number of answers by task.
            per_answer: requests that one answer took, with which the cost of answers that were not
                needed is estimated.
        """
        plan = self.plans[model]
        analyses = [analysis for analysis in self.analyses if model in analysis.models]
        n_answers = [
            len(order.items) * task.draws
            for task, order in zip(plan.tasks, plan.orders, strict=True)
        ]
        settled = [
            count == most
            or ((model, number) in self._analysed and not self._is_open(model, number))
            for number, (count, most) in enumerate(zip(done, n_answers, strict=True))
        ]
        not_needed = sum(
            most - count
            for count, most, is_settled in zip(done, n_answers, settled, strict=True)
            if is_settled
        )
        return {
            "rules": [
                model_rule.rule.as_dict()
                for model_rule in plan.rules
                if model_rule.concerns(model)
            ],
            "decisions": [analysis.as_dict() for analysis in analyses],
            "tasks": [
                {"task": task.name, "asked": count, "of": most}
                for task, count, most in zip(plan.tasks, done, n_answers, strict=True)
            ],
            "settled": all(settled),
            "saved_requests": round(not_needed * per_answer),
        }


def _models(plan: PlannedRun) -> list[Model]:
    """Return the models that a plan uses, in all roles."""
    return [plan.model, *plan.roles.values()]


def _analyses(
    model_rule: ModelRule,
    plans: Sequence[PlannedRun],
    models: Sequence[int],
    tables: dict[TableKey, ScoreTable],
) -> Iterator[InterimAnalysis]:
    """Yield the rule on every task that has its metric, for each of the models or for its pair.

    `tables` are shared with the other rules.
    """
    if not models:
        return
    first = plans[models[0]]
    numbers = [
        number
        for number, task in enumerate(first.tasks)
        if score_kind(model_rule.rule, task) is not None
    ]
    sides: list[tuple[int, ...]] = (
        [(model,) for model in models] if model_rule.pair is None else [model_rule.pair]
    )
    for number in numbers:
        for side in sides:
            plan = plans[side[0]]
            yield InterimAnalysis(
                model_rule,
                side,
                number,
                plan.tasks[number],
                plan.orders[number],
                len(numbers),
                tables,
            )


def _families(analyses: Sequence[InterimAnalysis]) -> list[PairFamily]:
    """The pairs on each task that are corrected for each other."""
    from evalwright.statistics.stopping_pairs import PairFamily

    monitors: dict[int, list[PairMonitor]] = {}
    for analysis in analyses:
        if analysis.pair_monitor is not None:
            monitors.setdefault(analysis.number, []).append(analysis.pair_monitor)
    return [PairFamily(task_monitors) for task_monitors in monitors.values()]


def _state(analysis: InterimAnalysis, names_task: bool) -> str:
    decision = analysis.decision
    where = f" on {analysis.task.name}" if names_task else ""
    words = [decision.verdict]
    if decision.value == decision.value:
        sign = "+" if analysis.rule.kind != "precision" else ""
        bounded = analysis.kind.value_range == (0.0, 1.0)
        words.append(
            f"{100 * decision.value:{sign}.1f} points"
            if bounded
            else f"{decision.value:{sign}.3g}"
        )
    if decision.decided and analysis.provisional:
        words[0] = f"{words[0]} (provisional)"
    return (
        f"{analysis.rule.text}{where}: {', '.join(words)}, {decision.units:,} of"
        f" {decision.n_total:,}"
    )


def write_plans(plans: Sequence[PlannedRun]) -> None:
    """Write the rules of each run into its folder, before the first request.

    Raises:
        RunError: a folder cannot be written.
    """
    written = datetime.now(UTC).isoformat(timespec="seconds")
    for number, plan in enumerate(plans):
        if own_rules := [
            model_rule for model_rule in plan.rules if model_rule.concerns(number)
        ]:
            write_plan(plan.folder, _plan_record(plan, own_rules, written))


def _plan_record(
    plan: PlannedRun, rules: Sequence[ModelRule], written: str
) -> Mapping[str, Any]:
    tasks = [
        {
            "task": task.name,
            "content_hash": task.samples.content_hash,
            "samples": len(order.items),
            "units": order.n_units,
            "clustered": order.clustered,
        }
        for task, order in zip(plan.tasks, plan.orders, strict=True)
    ]
    return {
        "schema": 1,
        "id": plan.id,
        "identity": plan.identity,
        "full_run": plan.full_run,
        "written": written,
        "model": model_label(plan.spec),
        "seed": plan.configuration["seed"],
        "limit": plan.configuration["limit"],
        "rules": [model_rule.rule.as_dict() for model_rule in rules],
        "tasks": tasks,
    }
