"""SEA-HELM's judged tasks: its prompts as they stand in the files, asked of a judge that the person
names, read and added up.

Each metric class says what a reply says (`read_verdict`) and what the verdicts on a row come to
(`worth`). Published: its readers and sums with their faults, an unread verdict counting 0 and being
counted; of several judges only the first is asked, as there. Corrected: verdicts go by the identity
of what was asked, one that cannot be read is a failure of the judge, and all judges are asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from math import prod
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

from evalwright import (
    Answer,
    Ask,
    Failure,
    Generate,
    Message,
    RequestFailed,
    Sample,
    Score,
)
from evalwright.compat.sea_helm.config import Row, SeaTask, drawing, log
from evalwright.compat.sea_helm.scoring import Numbers, Scoring, SeaHelmRaised
from evalwright.core.ask import refusal_of
from evalwright.core.requests import OPTIONS
from evalwright.extend import (
    Ability,
    MetricSpec,
    ScoringError,
    TaskError,
    check_known,
    options_of,
    separate_reasoning,
)
from evalwright.scorers.judge.criteria import SEVERITY
from evalwright.scorers.judge.forms import json_objects
from evalwright.scorers.judge.material import Exchange
from evalwright.scorers.judge.opinions import (
    Opinion,
    Scale,
    pass_or_fail,
    score_opinions,
)
from evalwright.scorers.judge.pair import FIRST, LABELS, SAME, SECOND
from evalwright.strategies.several import gather_all

if TYPE_CHECKING:
    from evalwright import Column

_PROVIDERS = {
    "local_openai": "openai",
    "online_sglang": "sglang",
    "online_vllm": "vllm",
    "vertexai": "vertex",
}
_GENERATION = (
    "max_tokens",
    "min_p",
    "reasoning_effort",
    "seed",
    "temperature",
    "top_k",
    "top_p",
)
_NAME = re.compile(r"[\w.:@/+-]{1,300}")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")
_CLASS = re.compile(r"<classification>\s*(\w+)\s*</classification>")
_FLAT = re.compile(r"\{[^{}]*\}")
_MOST_WORTH = 1_000_000
_BROKEN = (KeyError, IndexError, TypeError, ValueError, AttributeError)

Asked = Mapping[str, tuple[Any, str]]
"""What a judge is asked, by name: the system message, None for none, and the user's."""
Verdicts = Mapping[str, Any]
"""Verdicts by what was asked; None for one that could not be read."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge as a task's file proposes it. role: by which the person says which model it is; name:
    what to write in their flag.
    """

    role: str
    name: str
    generation: Mapping[str, Any]


def judges_of(task: SeaTask) -> tuple[Judge, ...]:
    """The judges that a task's file names, in the roles "judge", "judge-2" and so on.

    Raises TaskError, UnknownName.
    """
    judge_config = task.config.get("judge")
    where = f"The task '{task.name}'"
    if not isinstance(judge_config, Mapping) or not judge_config.get(
        "judge_model_name"
    ):
        raise TaskError(f"{where} has no judge (`judge.judge_model_name`).")
    names, *others = (
        (
            list(value)
            if isinstance(value := judge_config.get(f"judge_{key}") or {}, list | tuple)
            else [value]
        )
        for key in ("model_name", "model_type", "generation_kwargs")
    )
    kinds, generations = (
        column * len(names) if len(column) == 1 else column for column in others
    )
    if not len(kinds) == len(generations) == len(names):
        raise TaskError(
            f"{where} has {len(names)} judges, and a list of another length beside"
            " them."
        )
    judges: list[Judge] = []
    for name, kind, generation in zip(names, kinds, generations, strict=True):
        if not isinstance(generation := generation or {}, Mapping):
            raise TaskError(f"{where} has no mapping for the arguments of its judge.")
        if not _NAME.fullmatch(
            f"{kind or ''}{name}"
        ):  # it is shown for the person to write
            raise TaskError(
                f"{where} has a judge whose name is none of a model:"
                f" {str(name)[:80]!r}."
            )
        check_known(f"argument of the judge in '{task.name}'", generation, _GENERATION)
        provider = _PROVIDERS.get(kind := str(kind or "").lower(), kind)
        how = drawing(generation, f"The judge of the task '{task.name}'")
        judges.append(
            Judge(
                f"judge-{len(judges) + 1}" if judges else "judge",
                f"{provider}/{name}",
                how,
            )
        )
    return tuple(judges)


def filled(template: Any, values: Mapping[str, Any], published: bool = False) -> str:
    """A template with its placeholders filled once; other braces stay, in templates and in what is
    filled in.

    published: raises SeaHelmRaised where Python's own formatting would.
    """

    def put(match: re.Match[str]) -> str:
        if match[1] in values:
            return str(values[match[1]])
        if len(match[0]) == 2 and match[1] is None:
            return match[0][0]
        if published:
            raise SeaHelmRaised(
                f"KeyError: '{match[1]}'" if match[1] else "ValueError: a single brace"
            )
        return match[0]

    return _BRACES.sub(put, str(template or ""))


@cache
def tell_left_out(task: str, argument: str, why: str) -> None:
    """Say once that a judge is asked without an argument that the task's file proposes."""
    log.warning(
        "The judge of the task '%s' is asked without %s, which the task's file"
        " proposes: %s",
        task,
        argument,
        why,
    )


class Judged(Scoring):
    """A metric class whose numbers are verdicts. of_groups (in the table): the factor of the
    numbers by category; scale: of labels.

    read_verdict: what a reply says; None where it says nothing that can be read. worth: what the
    verdicts on a row come to, from 0 to 1.
    """

    asks = True
    able: frozenset[Ability] = frozenset({"generate"})
    scale: Scale = pass_or_fail(0.5)
    read_verdict: Callable[[str], Any]
    worth: Callable[[Row, Verdicts], Opinion]

    def prepare(self) -> None:
        task = self.task
        judges = judges_of(task)[: 1 if task.published else None]
        self.judges = {judge.role: judge for judge in judges}
        self.roles = tuple(self.judges)
        self.prompts = task.config["judge"].get("judge_prompts")
        if not isinstance(self.prompts, Mapping):
            raise TaskError(
                f"The task '{task.name}' has no prompts for its judge"
                " (`judge.judge_prompts`)."
            )
        self.filled = partial(filled, published=task.published)
        proposed = {role: judge.name for role, judge in self.judges.items()}
        self.options |= {"class": task.scored_by[1], "proposed": proposed}
        self.means = {task.metric: (100.0, task.metric)}
        self.sums = {"unread_verdicts": "unread"}
        self.names += tuple(
            f"categories.{category}"
            for names in self.by.values()
            for category in sorted(names)
        )

    def questions(self, row: Row, replies: Sequence[str]) -> Asked:
        """What a judge is asked of a row, by name: each criterion by itself, of a conversation
        those of each turn.
        """
        question_by_name = {}
        template = self.prompts["criteria_prompt"]
        of_turns = isinstance(template, Mapping)
        for number, criterion in enumerate(row["criteria"]):
            turn = int(criterion["turn"]) if of_turns else 0
            if turn and len(replies) < 2 and not self.task.published:
                raise ScoringError(
                    "The conversation ended before the turn that is judged."
                )
            values = self.values(row, replies, criterion, turn)
            user = self.filled(
                template[f"turn_{turn + 1}"] if of_turns else template, values
            )
            name = f"turn{turn}_criteria{number}" if of_turns else f"criteria{number}"
            question_by_name[name] = (self.prompts["system_prompt"], user)
        return question_by_name

    def values(
        self, row: Row, replies: Sequence[str], criterion: Row, turn: int
    ) -> Mapping[str, str]:
        """The placeholders of a criterion's prompt."""
        template = self.task.template.get("task_template")
        user_turns = [
            self.filled(template, prompt) for prompt in row["prompts"][: turn + 1]
        ]
        before = f"[User]\n{user_turns[0]}"
        if turn:
            before += (
                f"\n\n[Assistant (fixed)]\n{replies[0]}\n\n[User]\n{user_turns[1]}"
            )
        reference = ""
        if criterion.get("include_reference"):
            template = self.prompts["reference_prompt"]
            reference = f"\n{self.filled(template, {'reference': row['label']})}\n"
        return {
            "prompt": user_turns[0],
            "transcript": before,
            "response": replies[min(turn, 1)],
            "keyPointText": self.filled(criterion["criterion"], row["prompts"][0]),
            "reference_text_block": reference,
        }

    def in_order(self, row: Row, verdicts: Verdicts) -> list[Any]:
        """The verdicts of a row's criteria.

        Published: in the order of their names as texts ("criteria10" before "criteria2"), which
        gives verdicts to other criteria where there are more than ten, and raises for an id that
        has the mark by which names are split.
        """
        if not self.task.published:
            return list(verdicts.values())
        if "_" in str(row["id"]):
            raise SeaHelmRaised(
                f"ValueError: the id '{row['id']}' has an underscore, which splits"
                " names"
            )
        return [verdicts[name] for name in sorted(verdicts)]

    def opinion(self, value: float, verdicts: Verdicts, **parts: float) -> Opinion:
        """What verdicts come to."""
        listing = ", ".join(
            f"{name}: {'unread' if verdict is None else float(verdict)}"
            for name, verdict in verdicts.items()
        )
        return Opinion(value, self.scale.label_of(value), listing, parts)  # type: ignore[misc]

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer.

        Raises RequestFailed where a judge failed, SeaHelmRaised where SEA-HELM's own code raises.
        """
        row = self.row_of(sample)
        published = self.task.published
        replies = [
            response.text if published else separate_reasoning(response).answer
            for response in answer.responses
        ]
        replies = replies if published and replies else [*replies[:-1], answer.text]
        try:
            questions = self.questions(row, replies)

            async def opinion(role: str, _: Exchange) -> Opinion:
                verdicts = await gather_all(
                    [
                        self._verdict(role, ask, *question)
                        for question in questions.values()
                    ]
                )
                opinion_of_row = self.worth(
                    row, dict(zip(questions, verdicts, strict=True))
                )
                unread = (
                    {"unread": float(verdicts.count(None)), **self.codes(row)}
                    if published
                    else {}
                )
                return replace(opinion_of_row, parts={**opinion_of_row.parts, **unread})

            score = await score_opinions(
                self.roles, [Exchange((), "", "")], opinion, self.scale
            )
        except (SeaHelmRaised, *_BROKEN) as error:
            reason = (
                error.why
                if isinstance(error, SeaHelmRaised)
                else f"{type(error).__name__}: {error}"
            )
            if not published:
                where = f"The row of the sample '{sample.id}' cannot be judged"
                raise ScoringError(f"{where}: {reason}.") from None
            raise SeaHelmRaised(reason) from None
        return replace(score, parts={self.task.metric: score.value, **score.parts})

    async def _verdict(self, role: str, ask: Ask, system: Any, user: str) -> Any:
        messages = () if system is None else (Message("system", str(system)),)
        request = self._request(role, ask, (*messages, Message("user", user)))
        response = await ask(role, request)
        text = separate_reasoning(response).answer
        verdict = self.read_verdict(text)
        if verdict is None and not self.task.published:
            end = json.dumps(text[-200:], ensure_ascii=False)
            message = f"The verdict of '{role}' cannot be read: {end}."
            raise RequestFailed(Failure("bad verdict", "judge", message))
        return verdict

    def _request(self, role: str, ask: Ask, prompt: tuple[Message, ...]) -> Generate:
        """The request with the file's arguments of generation; those that this judge does not take
        are left out, and said once.
        """
        carried = options_of(ask, role)
        arguments: dict[str, Any] = {"temperature": None}
        for name, setting in self.judges[role].generation.items():
            if name not in OPTIONS:
                arguments[name] = setting
                continue
            alone = Generate(prompt, temperature=None, **{name: setting})
            why = refusal_of(ask, role, alone)
            if why is None and name in carried:
                arguments[name] = setting
            elif why is not None:
                tell_left_out(self.task.name, f"{name}={setting}", why)
        return Generate(prompt, **arguments)

    def more(self, column: Column) -> Numbers:
        """The categories' means."""
        factor = float(self.entry.get("of_groups", 1.0))
        pooled = self.pooled(column)
        return {
            f"categories.{name}": (
                factor * mean([value for place in positions for value in pooled[place]])
            )
            for key in self.by
            for name, positions in self.groups(column, key).items()
        }

    def pooled(self, column: Column) -> list[list[float]]:
        """The numbers of each item that are pooled."""
        return [[value] for value in self.part_values(column, self.task.metric)]


class Criteria(Judged):
    """Classes are worth what the file says. last (in the table): the last class in a reply counts,
    else the first, published.
    """

    def prepare(self) -> None:
        super().prepare()
        task = self.task
        self.classes = task.config["judge"].get("classifications")
        values = self.classes.values() if isinstance(self.classes, Mapping) else ()
        numbers = [
            class_worth
            for class_worth in values
            if isinstance(class_worth, int | float)
            and not isinstance(class_worth, bool)
        ]
        if not values or sum(
            abs(class_worth) <= _MOST_WORTH for class_worth in numbers
        ) < len(values):
            raise TaskError(
                f"The task '{task.name}' does not say what its judge's classes are"
                " worth."
            )

    def read_verdict(self, text: str) -> float | None:
        classes_named = _CLASS.findall(text)
        last = self.entry.get("last") or not self.task.published
        return (
            self.classes.get(classes_named[-1 if last else 0])
            if classes_named
            else None
        )

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        return self.opinion(
            mean([verdict or 0.0 for verdict in self.in_order(row, verdicts)]), verdicts
        )


class TwoTurns(Criteria):
    """MT-Bench's criteria: each belongs to a turn, whose mean counts as much as the other's."""

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        self.in_order(row, verdicts)
        turns = {
            f"turn {turn + 1}": [
                verdicts[name] or 0.0
                for name in verdicts
                if name.startswith(f"turn{turn}_")
            ]
            for turn in (0, 1)
        }
        # A turn without criteria counts 0 there.
        means = {
            turn: mean(turn_verdicts or [0.0])
            for turn, turn_verdicts in turns.items()
            if turn_verdicts or self.task.published
        }
        return self.opinion(mean(means.values()), verdicts, **means)


class Lindsea(Criteria):
    """Criteria weighed by severity, times those that any sentence must meet ("generic")."""

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        kinds = [str(criterion["severity"]).lower() for criterion in row["criteria"]]
        values = self.in_order(row, verdicts)
        parts = {}
        for name, generic in (("generic_score", True), ("criteria_score", False)):
            positions = [
                place
                for place, kind in enumerate(kinds)
                if (kind == "generic") == generic
            ]
            weights = [SEVERITY.get(kinds[place], 1.0) for place in positions]
            # What a row has no criteria for is 0 there, and not asked of it here.
            none = 0.0 if self.task.published else 1.0
            parts[name] = (
                mean([values[place] or 0.0 for place in positions], weights)
                if positions
                else none
            )
        return self.opinion(prod(parts.values()), verdicts, **parts)


class Points(Judged):
    """HealthBench's rubric: the points of what is met, over all points above 0."""

    def group_of(self, row: Row, key: str) -> str:
        tags = (row.get("metadata") or {}).get(key)
        return str(tags[0]) if tags else ""

    def values(
        self, row: Row, replies: Sequence[str], criterion: Row, turn: int
    ) -> Mapping[str, str]:
        lines = [
            f"{message['role']}: {message['content']}"
            for message in row["conversations"]
        ]
        item = f"[{criterion['points']}] {criterion['criterion']}"
        return {
            "conversation": "\n\n".join([*lines, f"Assistant: {replies[0].strip()}"]),
            "rubric_item": item,
        }

    def read_verdict(self, text: str) -> Any:
        if not self.task.published:
            verdicts = [verdict.get("criteria_met") for verdict in json_objects(text)]
            return next(
                (
                    verdict
                    for verdict in reversed(verdicts)
                    if isinstance(verdict, bool)
                ),
                None,
            )
        # The last pair of braces without others in it, also one within the explanation.
        for written in _FLAT.findall(text)[-1:]:
            for json_text in (
                written,
                written.replace('\\"criteria_met\\"', '"criteria_met"'),
            ):
                with suppress(ValueError):
                    return json.loads(json_text).get("criteria_met")
        return None

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        points = [int(criterion["points"]) for criterion in row["criteria"]]
        values = self.in_order(row, verdicts)
        if any(not isinstance(verdict, int | float | None) for verdict in values):
            raise TypeError("a verdict is not a number")
        reached = sum(
            (verdict or 0) * worth
            for verdict, worth in zip(values, points, strict=True)
        )
        value = max(0.0, reached) / sum(
            max(criterion_points, 0) for criterion_points in points
        )
        return self.opinion(value if self.task.published else min(value, 1.0), verdicts)


class Correct(Judged):
    """Does the answer say what the reference says? words (in the table): right and wrong; boxed:
    what is in the last box is judged, if any.
    """

    scale = Scale(
        ("incorrect", "correct"),
        lambda value: "correct" if value > 0.5 else "incorrect",
    )

    def questions(self, row: Row, replies: Sequence[str]) -> Asked:
        question = row["prompts"][0]["question"]
        right = row["label"]
        answer = _boxed(replies[0]) if self.entry.get("boxed") else replies[0]
        values = {
            "question": question,
            "official_answer": right,
            "candidate_answer": answer,
        }
        values |= {"groundtruth": right, "modeloutput": answer}
        return {"verdict": (None, self.filled(self.prompts["criteria_prompt"], values))}

    def read_verdict(self, text: str) -> float | None:
        words = self.entry.get("words", ("CORRECT", "INCORRECT"))
        right, wrong = (re.search(rf"\b{word}\b", text) is not None for word in words)
        return float(right) if right != wrong else None

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        return self.opinion(verdicts["verdict"] or 0.0, verdicts)


def _boxed(text: str) -> str:
    r"""What is in the last `\boxed{}` that is closed, else the whole text."""
    content = text
    starts = []
    for mark in re.finditer(r"(?i)\\boxed\{|[{}]", text):
        if mark[0] != "}":
            starts.append(mark.end() if len(mark[0]) > 1 else 0)
        elif starts and (start := starts.pop()):
            content = text[start : mark.start()].strip()
    return content


_ORDERS = {"baseline-after": "A_wins", "baseline-before": "B_wins"}
"""By where the other answer stands: the label of a win."""


class Pairs(Judged):
    """Each turn's reply against the baseline's, in both orders; the mean over categories counts."""

    scale = Scale(
        LABELS, lambda value: "win" if value > 0.5 else "loss" if value < 0.5 else "tie"
    )

    def prepare(self) -> None:
        super().prepare()
        task = self.task
        self.ties = bool(task.config.get("ties_allowed", True))
        self.labels: Mapping[str, str] = task.config.get("judgement_labels") or {}
        self.known = ("A_wins", "B_wins", "Tie") if self.ties else ("A_wins", "B_wins")
        if missing := [name for name in self.known if name not in self.labels]:
            raise TaskError(
                f"The task '{task.name}' has no '{missing[0]}' among its"
                " `judgement_labels`."
            )
        self.means = {}

    def questions(self, row: Row, replies: Sequence[str]) -> Asked:
        baseline = row["baselines"][self.task.config["baseline_model"]]
        referenced = row["metadata"]["category"] in (
            self.task.config.get("categories_with_reference") or ()
        )
        prompts = self.prompts["with-reference" if referenced else "without-reference"]
        question_by_name = {}
        shared_columns = {
            "question": [prompt["text"] for prompt in row["prompts"][: len(replies)]]
        }
        shared_columns |= {"ref_answer": row["references"]} if referenced else {}
        for turn in range(len(replies)):
            system = self.filled(prompts[turn]["system_prompt"], self.labels)
            for order in _ORDERS:
                first, second = (
                    (replies, baseline)
                    if order == "baseline-after"
                    else (baseline, replies)
                )
                columns = {**shared_columns, "answer_a": first, "answer_b": second}
                places = [
                    (name, place) for name in columns for place in range(turn + 1)
                ]
                values = {
                    f"{name}_{place + 1}": columns[name][place]
                    for name, place in places
                }
                user = self.filled(prompts[turn]["prompt_template"], values)
                question_by_name[f"{turn + 1} {order}"] = (system, user)
        return question_by_name

    def read_verdict(self, text: str) -> str | None:
        labels_named = [name for name in self.known if self.labels[name] in text]
        return labels_named[0] if len(labels_named) == 1 else None

    def worth(self, row: Row, verdicts: Verdicts) -> Opinion:
        neither = {"Tie": 0.5, None: None}
        won = {
            name: neither.get(
                verdict, float(verdict == _ORDERS[name.partition(" ")[2]])
            )
            for name, verdict in verdicts.items()
        }
        # Of each turn both orders, which stand one after the other.
        order_pairs = list(zip(*[iter(won.values())] * 2, strict=True))
        turns = {
            f"turn {turn}": self._final(*pair)
            for turn, pair in enumerate(order_pairs, 1)
        }
        parts = {
            SAME: mean(
                [
                    float(first_order == second_order)
                    for first_order, second_order in order_pairs
                ]
            ),
            **turns,
        }
        for name, outcomes in zip(
            (FIRST, SECOND), zip(*order_pairs, strict=True), strict=True
        ):
            decided = [outcome for outcome in outcomes if outcome is not None]
            parts |= {name: mean(decided)} if decided else {}
        return self.opinion(mean(turns.values()), won, **parts)

    def _final(self, first: float | None, second: float | None) -> float:
        """Of a turn: what both orders say, else a tie.

        Published, where neither can be read it is lost, and without ties where they differ.
        """
        if first == second:
            return first or 0.0
        return 0.5 if self.ties or not self.task.published else 0.0

    def corrected_metrics(self) -> list[MetricSpec]:
        first, *others = super().corrected_metrics()
        by_category = self.metric(self.task.metric, "macro", over="category")
        return [by_category, replace(first, label="win_rate"), *others]

    def pooled(self, column: Column) -> list[list[float]]:
        turns = [
            turn_scores
            for name, turn_scores in column.parts.items()
            if name.startswith("turn ")
        ]
        return [
            [float(turn_score) for turn_score in values if turn_score == turn_score]
            for values in zip(*turns, strict=True)
        ]

    def more(self, column: Column) -> Numbers:
        rates = super().more(column)
        every = chain.from_iterable(self.pooled(column))
        return {
            self.task.metric: 100 * mean(rates.values()),
            "win_rate": mean(every),
            **rates,
        }
