"""SEA-HELM's judged tasks: its prompts as they stand in the files, asked of a judge that the person names, read and added up.

Each metric class says what a reply says (`read_verdict`) and what the verdicts on a row come to (`worth`).
Published: its readers and sums with their faults, an unread verdict counting 0 and being counted; of several judges only the first is asked,
as there. Corrected: verdicts go by the identity of what was asked, one that cannot be read is a failure of the judge, and all judges are asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm.instructing import Instructions
from evalwright.compat.sea_helm.judges import Judge, filled, judges_of
from evalwright.compat.sea_helm.published import (
    DIALECT,
    SCORER,
    Made,
    Numbers,
    Published,
    Rows,
    SeaHelmRaised,
    mean,
    part,
    row_of,
)
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.asking import Ask, options_of
from evalwright.core.errors import Failure, RequestFailed, ScoringError, TaskError, UnknownName
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import OPTIONS, Generate, Message
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.scorers.judge.asking import together
from evalwright.scorers.judge.criteria import SEVERITY
from evalwright.scorers.judge.forms import json_objects
from evalwright.scorers.judge.material import Exchange
from evalwright.scorers.judge.opinions import Opinion, Scale, judged, pass_or_fail
from evalwright.scorers.judge.pair import FIRST, LABELS, SAME, SECOND

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column

_CLASS = re.compile(r"<classification>\s*(\w+)\s*</classification>")
_MOST_WORTH = 1_000_000
_FLAT = re.compile(r"\{[^{}]*\}")
_BROKEN = (KeyError, IndexError, TypeError, ValueError, AttributeError)

Messages = tuple[Message, ...]
Said = Mapping[str, Any]
"""Verdicts by what was asked; None for one that could not be read."""


class Judged(Published):
    """A metric class whose numbers are verdicts. of_categories: the factor of their numbers, None for none; scale: of labels."""

    of_categories: float | None = 1.0
    scale: Scale = pass_or_fail(0.5)
    shown: tuple[str, ...] = ()

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.judges = judges_of(task)
        self.prompts = task.config["judge"].get("judge_prompts")
        if not isinstance(self.prompts, Mapping):
            raise TaskError(f"The task '{task.name}' has no prompts for its judge (`judge.judge_prompts`).")
        self.part = task.metric
        self.means, self.sums = {task.metric: (100.0, task.metric)}, {"unread_verdicts": "unread"}
        if self.of_categories is not None:
            self.names = tuple(f"categories.{one}" for one in sorted({self.category(row) for row in rows}))
        self.roles = tuple(one.role for one in (self.judges[:1] if task.published else self.judges))

    def category(self, row: Row) -> str:
        """What a row's number is also shown by."""
        return str((row.get("metadata") or {}).get("category"))

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        """What a judge is asked of a row, by name: each criterion by itself, of a conversation those of each turn."""
        found, template = {}, self.prompts["criteria_prompt"]
        of_turns = isinstance(template, Mapping)
        for number, one in enumerate(row["criteria"]):
            turn = int(one["turn"]) if of_turns else 0
            if of_turns and turn and len(replies) < 2 and not self.task.published:
                raise ScoringError("The conversation ended before the turn that is judged.")
            values = self.values(row, replies, one, turn)
            user = self.filled(template[f"turn_{turn + 1}"] if of_turns else template, values)
            name = f"turn{turn}_criteria{number}" if of_turns else f"criteria{number}"
            found[name] = _chat(self.prompts["system_prompt"], user)
        return found

    def values(self, row: Row, replies: Sequence[str], criterion: Row, turn: int) -> Mapping[str, str]:
        """The placeholders of a criterion's prompt."""
        said = [
            self.filled(self.task.template.get("task_template"), one) for one in row["prompts"][: turn + 1]
        ]
        before = f"[User]\n{said[0]}"
        if turn:
            before += f"\n\n[Assistant (fixed)]\n{replies[0]}\n\n[User]\n{said[1]}"
        reference = ""
        if criterion.get("include_reference"):
            reference = f"\n{self.filled(self.prompts['reference_prompt'], {'reference': row['label']})}\n"
        asked = self.filled(criterion["criterion"], row["prompts"][0])
        return {
            "prompt": said[0],
            "transcript": before,
            "response": replies[min(turn, 1)],
            "keyPointText": asked,
            "reference_text_block": reference,
        }

    def read_verdict(self, text: str) -> Any:
        """What a reply says; None where it says nothing that can be read."""
        raise NotImplementedError

    def worth(self, row: Row, said: Said) -> Opinion:
        """What the verdicts on a row come to, from 0 to 1; parts: further numbers."""
        raise NotImplementedError

    def filled(self, template: Any, values: Mapping[str, Any]) -> str:
        """A template of the file or the data, as `filled`."""
        return filled(template, values, self.task.published)

    def in_order(self, row: Row, said: Said) -> list[Any]:
        """The verdicts of a row's criteria. Published: in the order of their names as texts ("criteria10" before "criteria2"), which gives
        verdicts to other criteria where there are more than ten, and raises for an id that has the mark by which names are split."""
        if not self.task.published:
            return list(said.values())
        if "_" in str(row["id"]):
            raise SeaHelmRaised(f"ValueError: the id '{row['id']}' has an underscore, which splits names")
        return [said[name] for name in sorted(said)]

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer. Raises RequestFailed where a judge failed, SeaHelmRaised where SEA-HELM's own code raises."""
        row, published = row_of(sample), self.task.published
        replies = [one.text if published else separate_reasoning(one).answer for one in answer.responses]
        replies = replies if published and replies else [*replies[:-1], answer.text]
        try:
            asked = self.questions(row, replies)

            async def opinion(role: str, _: Exchange) -> Opinion:
                judge = next(one for one in self.judges if one.role == role)
                found = await together([self._verdict(judge, messages, ask) for messages in asked.values()])
                made = self.worth(row, dict(zip(asked, found, strict=True)))
                unread = {"unread": float(sum(one is None for one in found))} if published else {}
                return replace(made, parts={**made.parts, **unread})

            score = await judged(self.roles, [Exchange((), "", "")], opinion, self.scale)
        except SeaHelmRaised as error:
            self._raised = str(error)
            raise
        except _BROKEN as error:
            said = f"{type(error).__name__}: {error}"
            if published:
                self._raised = said
                raise SeaHelmRaised(said) from None
            raise ScoringError(f"The row of the sample '{sample.id}' cannot be judged: {said}.") from None
        parts = {self.task.metric: score.value, **score.parts}
        return replace(score, parts=parts, item={"category": self.category(row)})

    async def _verdict(self, judge: Judge, messages: Messages, ask: Ask) -> Any:
        carried = options_of(ask, judge.role)
        given = {key: one for key, one in judge.generation.items() if key not in OPTIONS or key in carried}
        response = await ask(judge.role, Generate(messages, **{"temperature": None, **given}))
        text = separate_reasoning(response).answer
        found = self.read_verdict(text)
        if found is None and not self.task.published:
            end = json.dumps(text[-200:], ensure_ascii=False)
            said = f"The verdict of '{judge.role}' cannot be read: {end}."
            raise RequestFailed(Failure("bad verdict", "judge", said))
        return found

    def made(self) -> Made:
        task, specs = self.task, super().made()[1]
        options = {
            "scoring": "published" if task.published else "corrected",
            "class": task.scored_by[1],
            "proposed": {one.role: one.name for one in self.judges if one.role in self.roles},
        }
        scorer = Scorer(SCORER, DIALECT, options, self.judge, True, self.roles, frozenset({"generate"}))
        parts = [MetricSpec(one, "part-mean", SCORER, {"part": one}) for one in self.shown]
        return [scorer], specs if task.published else [*self.corrected(), *parts]

    def corrected(self) -> list[MetricSpec]:
        """The metrics, that of the task first."""
        return [MetricSpec(self.task.metric, "accuracy", SCORER)]

    def more(self, column: Column) -> Numbers:
        """The categories' means."""
        if self.of_categories is None:
            return {}
        found: dict[str, list[float]] = {}
        for item, values in zip(column.items, self.pooled(column), strict=True):
            found.setdefault(f"categories.{item['category']}", []).extend(values)
        return {name: self.of_categories * mean(values) for name, values in found.items()}

    def pooled(self, column: Column) -> list[list[float]]:
        """The numbers of each item that are pooled."""
        return [[value] for value in part(column, self.task.metric)]


def _chat(system: Any, user: str) -> Messages:
    """Messages as SEA-HELM sends them; system: None for none."""
    return (*([] if system is None else [Message("system", str(system))]), Message("user", user))


def _graded(value: float, said: Said, **parts: float) -> Opinion:
    told = ", ".join(f"{name}: {'unread' if one is None else float(one)}" for name, one in said.items())
    return Opinion(value, "pass" if value >= 0.5 else "fail", told, parts)


def _are_numbers(classes: Any) -> bool:
    values = classes.values() if isinstance(classes, Mapping) else ()
    return bool(values) and all(
        isinstance(one, int | float) and not isinstance(one, bool) and abs(one) <= _MOST_WORTH
        for one in values
    )


class Criteria(Judged):
    """Classes are worth what the file says. last: the last class in a reply counts, else the first."""

    last = False

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.classes: Mapping[str, float] = task.config["judge"].get("classifications") or {}
        if not _are_numbers(self.classes):
            raise TaskError(f"The task '{task.name}' does not say what its judge's classes are worth.")

    def read_verdict(self, text: str) -> float | None:
        found = _CLASS.findall(text)
        return self.classes.get(found[-1 if self.last or not self.task.published else 0]) if found else None

    def worth(self, row: Row, said: Said) -> Opinion:
        return _graded(mean([one or 0.0 for one in self.in_order(row, said)]), said)


class TwoTurns(Criteria):
    """MT-Bench's criteria: each belongs to a turn, whose mean counts as much as the other's."""

    last = True

    def worth(self, row: Row, said: Said) -> Opinion:
        self.in_order(row, said)
        turns = {
            turn: [one or 0.0 for name, one in said.items() if name.startswith(f"turn{turn}_")]
            for turn in (0, 1)
        }
        if self.task.published:  # a turn without criteria counts 0 there
            turns = {turn: own or [0.0] for turn, own in turns.items()}
        means = {f"turn {turn + 1}": mean(own) for turn, own in turns.items() if own}
        return _graded(mean(list(means.values())), said, **means)


class Lindsea(Criteria):
    """Criteria weighed by severity, times those that any sentence must meet ("generic")."""

    last, of_categories, shown = True, 100.0, ("generic_score", "criteria_score")

    def worth(self, row: Row, said: Said) -> Opinion:
        sums = {True: [0.0, 0.0], False: [0.0, 0.0]}
        for criterion, value in zip(row["criteria"], self.in_order(row, said), strict=True):
            severity = str(criterion["severity"]).lower()
            weight = SEVERITY.get(severity, 1.0)
            own = sums[severity == "generic"]
            own[0], own[1] = own[0] + weight * (value or 0.0), own[1] + weight
        # What a row has no criteria for is 0 there, and not asked of it here.
        none = 0.0 if self.task.published else 1.0
        generic, specific = (one / weight if weight else none for one, weight in sums.values())
        return _graded(specific * generic, said, generic_score=generic, criteria_score=specific)


class Points(Judged):
    """HealthBench's rubric: the points of what is met, over all points above 0."""

    of_categories = 100.0

    def category(self, row: Row) -> str:
        tags = (row.get("metadata") or {}).get("example_tags")
        return str(tags[0]) if tags else ""

    def values(self, row: Row, replies: Sequence[str], criterion: Row, turn: int) -> Mapping[str, str]:
        said = [f"{one['role']}: {one['content']}" for one in row["conversations"]]
        item = f"[{criterion['points']}] {criterion['criterion']}"
        return {"conversation": "\n\n".join([*said, f"Assistant: {replies[0].strip()}"]), "rubric_item": item}

    def read_verdict(self, text: str) -> Any:
        if not self.task.published:
            found = [one.get("criteria_met") for one in json_objects(text)]
            return next((one for one in reversed(found) if isinstance(one, bool)), None)
        # The last pair of braces without others in it, also one within the explanation.
        for written in _FLAT.findall(text)[-1:]:
            for one in (written, written.replace('\\"criteria_met\\"', '"criteria_met"')):
                try:
                    return json.loads(one).get("criteria_met")
                except ValueError:
                    continue
        return None

    def worth(self, row: Row, said: Said) -> Opinion:
        points = [int(one["points"]) for one in row["criteria"]]
        values = self.in_order(row, said)
        if any(not isinstance(one, int | float | None) for one in values):
            raise TypeError("a verdict is not a number")
        reached = sum((one or 0) * worth for one, worth in zip(values, points, strict=True))
        value = max(0.0, reached) / sum(max(one, 0) for one in points)
        return _graded(value if self.task.published else min(value, 1.0), said)


class Correct(Judged):
    """Does the answer say what the reference says? words: right and wrong. boxed: what is in the last box is judged, where there is one."""

    words, boxed = ("CORRECT", "INCORRECT"), True
    of_categories: float | None = None
    scale = Scale(("incorrect", "correct"), lambda value: "correct" if value > 0.5 else "incorrect")

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        said = _boxed(replies[0]) if self.boxed else replies[0]
        values = {
            "question": row["prompts"][0]["question"],
            "official_answer": row["label"],
            "candidate_answer": said,
        }
        values |= {"groundtruth": row["label"], "modeloutput": said}
        return {"verdict": _chat(None, self.filled(self.prompts["criteria_prompt"], values))}

    def read_verdict(self, text: str) -> float | None:
        right, wrong = (re.search(rf"\b{word}\b", text) is not None for word in self.words)
        return float(right) if right != wrong else None

    def worth(self, row: Row, said: Said) -> Opinion:
        value = said["verdict"] or 0.0
        return replace(_graded(value, said), label="correct" if value else "incorrect")


class LongDocuments(Correct):
    """AA-LCR: the whole response is judged."""

    boxed = False


class BabyVision(Correct):
    """TRUE or FALSE, also by the kind of question."""

    words, of_categories = ("TRUE", "FALSE"), 100.0

    def category(self, row: Row) -> str:
        return str((row.get("metadata") or {}).get("type", "unknown"))


def _boxed(text: str) -> str:
    r"""What is in the last `\boxed{}` that is closed, else the whole text."""
    found, starts = text, []
    for mark in re.finditer(r"(?i)\\boxed\{|[{}]", text):
        if mark[0] != "}":
            starts.append(mark.end() if len(mark[0]) > 1 else 0)
        elif starts and (start := starts.pop()):
            found = text[start : mark.start()].strip()
    return found


# -- pairs --------------------------------------------------------------------------------------------------------------

_ORDERS = {"baseline-after": ("A_wins", "B_wins"), "baseline-before": ("B_wins", "A_wins")}
"""By where the other answer stands: the labels of a win and of a loss."""


class Pairs(Judged):
    """Each turn's reply against the baseline's, in both orders; the mean over categories counts."""

    scale = Scale(LABELS, lambda value: "win" if value > 0.5 else "loss" if value < 0.5 else "tie")
    shown = (SAME, FIRST, SECOND)

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.ties = bool(task.config.get("ties_allowed", True))
        self.labels: Mapping[str, str] = task.config.get("judgement_labels") or {}
        self.known = ("A_wins", "B_wins", "Tie") if self.ties else ("A_wins", "B_wins")
        if missing := [name for name in self.known if name not in self.labels]:
            raise TaskError(f"The task '{task.name}' has no '{missing[0]}' among its `judgement_labels`.")
        self.means, self.names = {}, (task.metric, "win_rate", *self.names)

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        other = row["baselines"][self.task.config["baseline_model"]]
        referenced = row["metadata"]["category"] in (self.task.config.get("categories_with_reference") or ())
        prompts = self.prompts["with-reference" if referenced else "without-reference"]
        found = {}
        for turn in range(len(replies)):
            for order in _ORDERS:
                first, second = (replies, other) if order == "baseline-after" else (other, replies)
                values = {}
                for place in range(turn + 1):
                    values[f"question_{place + 1}"] = row["prompts"][place]["text"]
                    values[f"answer_a_{place + 1}"] = first[place]
                    values[f"answer_b_{place + 1}"] = second[place]
                    values |= {f"ref_answer_{place + 1}": row["references"][place]} if referenced else {}
                user = self.filled(prompts[turn]["prompt_template"], values)
                found[f"{turn + 1} {order}"] = _chat(
                    self.filled(prompts[turn]["system_prompt"], self.labels), user
                )
        return found

    def read_verdict(self, text: str) -> str | None:
        found = [name for name in self.known if self.labels[name] in text]
        return found[0] if len(found) == 1 else None

    def worth(self, row: Row, said: Said) -> Opinion:
        won = {
            name: None
            if one is None
            else 0.5
            if one == "Tie"
            else float(one == _ORDERS[name.split(" ")[1]][0])
            for name, one in said.items()
        }
        pairs = {
            name.split(" ")[0]: [won[f"{name.split(' ')[0]} {order}"] for order in _ORDERS] for name in won
        }
        turns = {f"turn {turn}": self._final(*pair) for turn, pair in pairs.items()}
        parts = {SAME: mean([float(one == other) for one, other in pairs.values()]), **turns}
        for place, name in enumerate((FIRST, SECOND)):
            known = [one for pair in pairs.values() if (one := pair[place]) is not None]
            parts |= {name: mean(known)} if known else {}
        value = mean(list(turns.values()))
        return replace(_graded(value, won, **parts), label=self.scale.label_of(value))  # type: ignore[misc]

    def _final(self, first: float | None, second: float | None) -> float:
        """Of a turn: what both orders say, else a tie. Published, where neither can be read it is lost, and without ties where they differ."""
        if first == second:
            return first or 0.0
        return 0.5 if self.ties or not self.task.published else 0.0

    def corrected(self) -> list[MetricSpec]:
        by_category = MetricSpec(self.task.metric, "macro", SCORER, {"over": "category"})
        return [by_category, MetricSpec("win_rate", "accuracy", SCORER)]

    def pooled(self, column: Column) -> list[list[float]]:
        turns = [own for name, own in column.parts.items() if name.startswith("turn ")]
        return [[float(one) for one in values if one == one] for values in zip(*turns, strict=True)]

    def more(self, column: Column) -> Numbers:
        rates, every = super().more(column), [one for values in self.pooled(column) for one in values]
        return {self.task.metric: 100 * mean(list(rates.values())), "win_rate": mean(every), **rates}


_CLASSES: Mapping[str, type[Published]] = {
    "AALCRJudgeMetric": LongDocuments,
    "BabyVisionJudgeMetric": BabyVision,
    "CriteriaJudgeMetric": Criteria,
    "HealthbenchJudgeMetric": Points,
    "IFEvalMetric": Instructions,
    "LindseaJudgeMetric": Lindsea,
    "MTBenchJudgeMetric": TwoTurns,
    "MathVisionJudgeMetric": Correct,
    "PairwiseLLMJudgeMetric": Pairs,
}


def judging_of(task: SeaTask, rows: Rows) -> Made:
    """The scorer and the metrics of a judged task, or of one whose instructions are checked. Raises UsageError."""
    name = task.scored_by[1]
    if name not in _CLASSES:
        raise UnknownName("judged metric class", name, _CLASSES, f"Known: {', '.join(_CLASSES)}.")
    return _CLASSES[name](task, rows).made()
