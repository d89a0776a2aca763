"""SEA-HELM's judged tasks: its prompts as they stand in the files, asked of a judge that the person names, read and added up.

Each metric class says what is asked of a row (`questions`), what a reply says (`read_verdict`) and what the verdicts come to (`worth`).
Published: its readers and sums with their faults, an unread verdict counting 0 and being counted; of several judges only the first is asked,
as there. Corrected: verdicts go by the identity of what was asked, one that cannot be read is a failure of the judge, and all judges are asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm import instructing
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
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    ScoringError,
    TaskError,
    UnknownName,
)
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

_JUDGE = "judge"
_PROVIDERS = {
    "local_openai": "openai",
    "online_sglang": "sglang",
    "online_vllm": "vllm",
    "vertexai": "vertex",
}
_GENERATION = ("max_tokens", "min_p", "reasoning_effort", "seed", "temperature", "top_k", "top_p")
_CLASS = re.compile(r"<classification>\s*(\w+)\s*</classification>")
_FLAT = re.compile(r"\{[^{}]*\}")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")
_UNREAD = "unread_verdicts"

Messages = tuple[Message, ...]


# -- judges -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge as a task's file proposes it. role: the name by which the person says which model it is."""

    role: str
    model: str
    type: str
    init_args: Mapping[str, Any]
    generation: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What to write in the person's flag."""
        kind = self.type.lower()
        return f"{_PROVIDERS.get(kind, kind)}/{self.model}"


def judges_of(task: SeaTask) -> tuple[Judge, ...]:
    """The judges that a task's file names, the first in the role "judge", further ones in "judge-2" and so on. Raises TaskError."""
    given = task.config.get("judge")
    where = f"The task '{task.name}'"
    if not isinstance(given, Mapping) or not given.get("judge_model_name"):
        raise TaskError(f"{where} has no judge (`judge.judge_model_name`).")
    names = _listed(given["judge_model_name"])
    columns = [names]
    for key in ("judge_model_type", "judge_init_args", "judge_generation_kwargs"):
        column = _listed(given.get(key) or {})
        columns.append(column * len(names) if len(column) == 1 else column)
    if len({len(column) for column in columns}) > 1:
        raise TaskError(
            f"{where} has {len(names)} judges, and lists of another length beside `judge_model_name`."
        )
    found = []
    for number, (name, kind, init, generation) in enumerate(zip(*columns, strict=True), 1):
        for key in generation or {}:
            if key not in _GENERATION:
                raise UnknownName(
                    f"generation argument of the judge in '{task.name}'",
                    str(key),
                    _GENERATION,
                    f"Known: {', '.join(_GENERATION)}.",
                )
        role = _JUDGE if number == 1 else f"{_JUDGE}-{number}"
        found.append(Judge(role, str(name), str(kind or ""), init or {}, generation or {}))
    return tuple(found)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def filled(template: Any, values: Mapping[str, Any], published: bool = False) -> str:
    """A template with its placeholders filled once; other braces stay, in templates and in what is filled in.

    published: raises SeaHelmRaised where Python's own formatting would.
    """

    def put(found: re.Match[str]) -> str:
        name = found[1]
        if name in values:
            return str(values[name])
        if name is None and len(found[0]) == 2:
            return found[0][0]
        if published:
            raise SeaHelmRaised(f"KeyError: '{name}'" if name else "ValueError: a single brace")
        return found[0]

    return _BRACES.sub(put, str(template or ""))


# -- what all judged classes share --------------------------------------------------------------------------------------


class Judged(Published):
    """A metric class whose numbers are verdicts. scale: of values and labels; factor: of the numbers of categories."""

    part = "average_criteria_score"
    factor = 1.0
    category: str | None = "category"
    scale: Scale = pass_or_fail(0.5)

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.judges = judges_of(task)
        self.prompts = task.config["judge"].get("judge_prompts")
        if not isinstance(self.prompts, Mapping):
            raise TaskError(f"The task '{task.name}' has no prompts for its judge (`judge.judge_prompts`).")
        self.part = task.metric
        self.means = {task.metric: (100.0, task.metric)}
        self.sums = {_UNREAD: "unread"}
        if self.category:
            self.names = tuple(f"categories.{one}" for one in sorted({self.category_of(row) for row in rows}))

    def category_of(self, row: Row) -> str:
        """What a row's number is also shown by."""
        return str((row.get("metadata") or {}).get(self.category))

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        """What a judge is asked of a row, by name."""
        raise NotImplementedError

    def read_verdict(self, text: str) -> Any:
        """What a reply says; None where it says nothing that can be read."""
        raise NotImplementedError

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        """What the verdicts on a row come to, from 0 to 1; parts: further numbers."""
        raise NotImplementedError

    def filled(self, template: Any, values: Mapping[str, Any]) -> str:
        """A template of the file or the data, as `filled`."""
        return filled(template, values, self.task.published)

    def asked_in(self, row: Row, turn: int) -> str:
        """What the user said in a turn, counted from 0."""
        return self.filled(self.task.template.get("task_template"), row["prompts"][turn])

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer. Raises RequestFailed where a judge failed, SeaHelmRaised where SEA-HELM's own code raises."""
        row, published = row_of(sample), self.task.published
        texts = [one.text if published else separate_reasoning(one).answer for one in answer.responses]
        replies = [*texts[:-1], texts[-1] if published and texts else answer.text]
        try:
            asked = self.questions(row, replies)

            async def opinion(role: str, _: Exchange) -> Opinion:
                judge = next(one for one in self.judges if one.role == role)
                found = await together([self._verdict(judge, messages, ask) for messages in asked.values()])
                made = self.worth(row, dict(zip(asked, found, strict=True)))
                unread = float(sum(one is None for one in found))
                return replace(made, parts={**made.parts, **({"unread": unread} if published else {})})

            score = await judged(self._roles(), [Exchange((), "", "")], opinion, self.scale)
        except SeaHelmRaised as error:
            self._raised = str(error)
            raise
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            if published:
                self._raised = f"{type(error).__name__}: {error}"
                raise SeaHelmRaised(self._raised) from None
            raise ScoringError(
                f"The row of the sample '{sample.id}' cannot be judged: {type(error).__name__} {error}."
            ) from None
        item = {"category": self.category_of(row)} if self.category else None
        return replace(score, parts={self.part: score.value, **score.parts}, item=item)

    async def _verdict(self, judge: Judge, messages: Messages, ask: Ask) -> Any:
        carried = options_of(ask, judge.role)
        given = {
            name: value for name, value in judge.generation.items() if name not in OPTIONS or name in carried
        }
        response = await ask(judge.role, Generate(messages, **{"temperature": None, **given}))
        text = separate_reasoning(response).answer
        found = self.read_verdict(text)
        if found is None and not self.task.published:
            said = f"The verdict of '{judge.role}' cannot be read: {json.dumps(text[-200:], ensure_ascii=False)}."
            raise RequestFailed(Failure("bad verdict", "judge", said))
        return found

    def _roles(self) -> tuple[str, ...]:
        return tuple(one.role for one in (self.judges[:1] if self.task.published else self.judges))

    def made(self) -> Made:
        task, roles = self.task, self._roles()
        options = {
            "scoring": "published" if task.published else "corrected",
            "class": task.scored_by[1],
            "proposed": {one.role: one.name for one in self.judges if one.role in roles},
        }
        scorer = Scorer(SCORER, DIALECT, options, self.judge, True, roles, frozenset({"generate"}))
        return [scorer], super().made()[1] if task.published else self.corrected()

    def corrected(self) -> list[MetricSpec]:
        """The metrics, that of the task first."""
        return [MetricSpec(self.task.metric, "accuracy", SCORER)]

    def more(self, column: Column) -> Numbers:
        values = part(column, self.part)
        return {
            f"categories.{name}": self.factor * mean(own)
            for name, own in self._by_category(column, values).items()
        }

    def _by_category(self, column: Column, values: Sequence[float]) -> Mapping[str, list[float]]:
        found: dict[str, list[float]] = {}
        for item, value in zip(column.items if self.category else (), values, strict=False):
            found.setdefault(str(item["category"]), []).append(value)
        return found


def _chat(system: Any, user: str) -> Messages:
    """Messages as SEA-HELM sends them; system: None for none."""
    return (*([] if system is None else [Message("system", str(system))]), Message("user", user))


def _plain_ids(row: Row) -> None:
    """Raise SeaHelmRaised where its names of verdicts cannot be taken apart."""
    if "_" in str(row["id"]):
        raise SeaHelmRaised(
            f"ValueError: the id '{row['id']}' has an underscore, by which names of verdicts are split"
        )


# -- criteria -----------------------------------------------------------------------------------------------------------


class Criteria(Judged):
    """Each criterion is asked for by itself; classes are worth what the file says. last: the last class in a reply counts, else the first."""

    last = False

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.classes = {
            str(name): float(value)
            for name, value in (task.config["judge"].get("classifications") or {}).items()
        }
        if not self.classes:
            raise TaskError(
                f"The task '{task.name}' does not say what its judge's classes are worth (`judge.classifications`)."
            )

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        found = {}
        for number, criterion in enumerate(row["criteria"]):
            reference = ""
            if criterion.get("include_reference"):
                reference = (
                    f"\n{self.filled(self.prompts['reference_prompt'], {'reference': row['label']})}\n"
                )
            values = {
                "prompt": self.asked_in(row, 0),
                "response": replies[0],
                "keyPointText": self.filled(criterion["criterion"], row["prompts"][0]),
                "reference_text_block": reference,
            }
            user = self.filled(self.prompts["criteria_prompt"], values)
            found[f"criteria{number}"] = _chat(self.prompts["system_prompt"], user)
        return found

    def read_verdict(self, text: str) -> float | None:
        found = _CLASS.findall(text)
        return self.classes.get(found[-1 if self.last or not self.task.published else 0]) if found else None

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        if self.task.published:
            _plain_ids(row)
        return _graded(mean([one or 0.0 for one in said.values()]), said)


def _graded(value: float, said: Mapping[str, Any], **parts: float) -> Opinion:
    told = ", ".join(
        f"{name}: {'unread' if one is None else f'{float(one):g}'}" for name, one in said.items()
    )
    return Opinion(value, "pass" if value >= 0.5 else "fail", told, parts)


class TwoTurns(Criteria):
    """MT-Bench's criteria: each belongs to a turn, whose mean counts as much as the other's."""

    last = True

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        found = {}
        for number, criterion in enumerate(row["criteria"]):
            turn = int(criterion["turn"] > 0)
            if turn >= len(replies) and not self.task.published:
                raise ScoringError("The conversation ended before the turn that is judged.")
            transcript = f"[User]\n{self.asked_in(row, 0)}"
            if turn:
                transcript += f"\n\n[Assistant (fixed)]\n{replies[0]}\n\n[User]\n{self.asked_in(row, 1)}"
            values = {
                "transcript": transcript,
                "response": replies[turn],
                "keyPointText": self.filled(criterion["criterion"], row["prompts"][0]),
            }
            user = self.filled(self.prompts["criteria_prompt"][f"turn_{criterion['turn'] + 1}"], values)
            found[f"turn{criterion['turn']}_criteria{number}"] = _chat(self.prompts["system_prompt"], user)
        return found

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        by_turn = [
            [one or 0.0 for name, one in said.items() if name.startswith(f"turn{turn}_")] for turn in (0, 1)
        ]
        if self.task.published:
            _plain_ids(row)
            by_turn = [own or [0.0] for own in by_turn]  # a turn without criteria counts 0 there
        turns = {f"turn {number}": mean(own) for number, own in enumerate(by_turn, 1) if own}
        return _graded(mean(list(turns.values())), said, **turns)


class Lindsea(Criteria):
    """Criteria weighed by severity, times those that any sentence must meet ("generic")."""

    last, factor = True, 100.0

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        values = [one or 0.0 for one in _in_order(row, said, self.task.published)]
        kinds = [str(one["severity"]).lower() for one in row["criteria"]]
        weights = [SEVERITY.get(kind, 1.0) for kind in kinds]
        # What a row has no criteria for is 0 there, and not asked of it here.
        none = 0.0 if self.task.published else 1.0
        generic, own = (
            _weighted([(value, weight) for value, weight, kind in zip(values, weights, kinds, strict=True) if (kind == "generic") is wanted], none)
            for wanted in (True, False)
        )  # fmt: skip
        return _graded(own * generic, said, generic_score=generic, criteria_score=own)

    def corrected(self) -> list[MetricSpec]:
        parts = ("generic_score", "criteria_score")
        return [*super().corrected(), *(MetricSpec(one, "part-mean", SCORER, {"part": one}) for one in parts)]


def _weighted(pairs: Sequence[tuple[float, float]], none: float) -> float:
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else none


def _in_order(row: Row, said: Mapping[str, Any], published: bool) -> list[Any]:
    """The verdicts of a row's criteria. Published: in the order of their names as texts ("criteria10" before "criteria2"), which gives the
    verdicts to other criteria where there are more than ten."""
    if published:
        _plain_ids(row)
        return [said[name] for name in sorted(said)]
    return [said[f"criteria{number}"] for number in range(len(row["criteria"]))]


class Points(Judged):
    """HealthBench's rubric: the points of what is met, over all points above 0."""

    factor, category = 100.0, "example_tags"

    def category_of(self, row: Row) -> str:
        tags = (row.get("metadata") or {}).get("example_tags")
        return str(tags[0]) if isinstance(tags, list) and tags else ""

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        said = [f"{turn['role']}: {turn['content']}" for turn in row["conversations"]]
        conversation = "\n\n".join([*said, f"Assistant: {replies[0].strip()}"])
        found = {}
        for number, one in enumerate(row["criteria"]):
            values = {"conversation": conversation, "rubric_item": f"[{one['points']}] {one['criterion']}"}
            user = self.filled(self.prompts["criteria_prompt"], values)
            found[f"criteria{number}"] = _chat(self.prompts["system_prompt"], user)
        return found

    def read_verdict(self, text: str) -> Any:
        if not self.task.published:
            found = [
                one["criteria_met"] for one in json_objects(text) if isinstance(one.get("criteria_met"), bool)
            ]
            return found[-1] if found else None
        # The last pair of braces without others in it, also one within the explanation.
        for written in _FLAT.findall(text)[-1:]:
            for one in (written.strip(), written.strip().replace('\\"criteria_met\\"', '"criteria_met"')):
                try:
                    return json.loads(one).get("criteria_met")
                except ValueError:
                    continue
        return None

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        points = [int(one["points"]) for one in row["criteria"]]
        values = _in_order(row, said, self.task.published)
        greatest = sum(max(one, 0) for one in points)
        if any(not isinstance(one, int | float | None) for one in values):
            raise SeaHelmRaised("TypeError: a verdict is no number")
        if not greatest:
            raise (
                SeaHelmRaised("ZeroDivisionError")
                if self.task.published
                else ValueError("no points can be reached")
            )
        reached = sum((one or 0) * worth for one, worth in zip(values, points, strict=True))
        value = max(0.0, reached) / greatest
        return _graded(value if self.task.published else min(value, 1.0), said)


# -- one verdict --------------------------------------------------------------------------------------------------------


class Correct(Judged):
    """Does the answer say what the reference says? words: right and wrong. boxed: what is in the last box is judged, where there is one."""

    words = ("CORRECT", "INCORRECT")
    boxed = True
    category: str | None = None

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        said = _boxed(replies[0]) if self.boxed else replies[0]
        values = {
            "question": row["prompts"][0]["question"],
            **dict.fromkeys(("official_answer", "groundtruth"), row["label"]),
            **dict.fromkeys(("candidate_answer", "modeloutput"), said),
        }
        return {"verdict": _chat(None, self.filled(self.prompts["criteria_prompt"], values))}

    def read_verdict(self, text: str) -> float | None:
        right, wrong = (re.search(rf"\b{word}\b", text) is not None for word in self.words)
        return float(right) if right != wrong else None

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        value = said["verdict"] or 0.0
        return replace(_graded(value, said), label="correct" if value else "incorrect")

    scale = Scale(("incorrect", "correct"), lambda value: "correct" if value > 0.5 else "incorrect")


class LongDocuments(Correct):
    """AA-LCR: the whole response is judged."""

    boxed = False


class BabyVision(Correct):
    """TRUE or FALSE, by the type of the picture's question."""

    words = ("TRUE", "FALSE")
    factor, category = 100.0, "type"

    def category_of(self, row: Row) -> str:
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

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.labels: Mapping[str, str] = task.config.get("judgement_labels") or {}
        self.ties = bool(task.config.get("ties_allowed", True))
        missing = [
            name for name in ("A_wins", "B_wins", *(["Tie"] if self.ties else [])) if name not in self.labels
        ]
        if missing:
            raise TaskError(f"The task '{task.name}' has no '{missing[0]}' among its `judgement_labels`.")
        self.means, self.names = {}, ("win_rate", self.task.metric, *self.names)

    def questions(self, row: Row, replies: Sequence[str]) -> Mapping[str, Messages]:
        baseline = row["baselines"][self.task.config["baseline_model"]]
        referenced = row["metadata"]["category"] in (self.task.config.get("categories_with_reference") or ())
        prompts = self.prompts["with-reference" if referenced else "without-reference"]
        found = {}
        for turn in range(len(replies)):
            for order in _ORDERS:
                first, second = (replies, baseline) if order == "baseline-after" else (baseline, replies)
                values = {}
                for place in range(turn + 1):
                    values[f"question_{place + 1}"] = row["prompts"][place]["text"]
                    values[f"answer_a_{place + 1}"], values[f"answer_b_{place + 1}"] = (
                        first[place],
                        second[place],
                    )
                    if referenced:
                        values[f"ref_answer_{place + 1}"] = row["references"][place]
                system = self.filled(prompts[turn]["system_prompt"], self.labels)
                found[f"turn {turn + 1} {order}"] = _chat(
                    system, self.filled(prompts[turn]["prompt_template"], values)
                )
        return found

    def read_verdict(self, text: str) -> str | None:
        names = ("A_wins", "B_wins", "Tie") if self.ties else ("A_wins", "B_wins")
        found = [name for name in names if self.labels[name] in text]
        return found[0] if len(found) == 1 else None

    def worth(self, row: Row, said: Mapping[str, Any]) -> Opinion:
        names = dict.fromkeys(name.rpartition(" ")[0] for name in said)
        pairs = {name: tuple(_won(said[f"{name} {order}"], order) for order in _ORDERS) for name in names}
        turns = {name: self._final(*pair) for name, pair in pairs.items()}
        parts = dict(turns)
        for place, name in enumerate((FIRST, SECOND)):
            known = [pair[place] for pair in pairs.values() if pair[place] is not None]
            parts |= {name: fmean(known)} if known else {}
        parts[SAME] = fmean(float(one == other) for one, other in pairs.values())
        told = "; ".join(
            f"{name}: {self._told(one)} first, {self._told(other)} second"
            for name, (one, other) in pairs.items()
        )
        value = mean(list(turns.values()))
        assert self.scale.label_of is not None
        return Opinion(value, self.scale.label_of(value), told, parts)

    def _told(self, value: float | None) -> str:
        return "unread" if value is None or self.scale.label_of is None else self.scale.label_of(value)

    def _final(self, first: float | None, second: float | None) -> float:
        """Of a turn. Published, without ties what differs or cannot be read is lost; with ties it is one, but where neither can be read."""
        if first == second:
            return 0.0 if first is None else first
        return 0.5 if self.ties or not self.task.published else 0.0

    def corrected(self) -> list[MetricSpec]:
        return [
            MetricSpec(self.task.metric, "macro", SCORER, {"over": "category"}),
            MetricSpec("win_rate", "accuracy", SCORER),
            MetricSpec("same_verdict", "part-mean", SCORER, {"part": SAME}),
        ]

    def more(self, column: Column) -> Numbers:
        turns = [own for name, own in column.parts.items() if name.startswith("turn ")]
        pooled = [[float(one) for one in of_item if one == one] for of_item in zip(*turns, strict=True)]
        groups: dict[str, list[float]] = {}
        for item, own in zip(column.items, pooled, strict=True):
            groups.setdefault(str(item["category"]), []).extend(own)
        rates = {f"categories.{name}": mean(own) for name, own in groups.items()}
        return {
            "win_rate": mean(sum(pooled, [])),
            self.task.metric: 100 * mean(list(rates.values())),
            **rates,
        }


def _won(name: str | None, order: str) -> float | None:
    if name is None:
        return None
    return 0.5 if name == "Tie" else float(name == _ORDERS[order][0])


# -- the table ----------------------------------------------------------------------------------------------------------

_CLASSES: Mapping[str, Callable[[SeaTask, Rows], Judged]] = {
    "AALCRJudgeMetric": LongDocuments,
    "BabyVisionJudgeMetric": BabyVision,
    "CriteriaJudgeMetric": Criteria,
    "HealthbenchJudgeMetric": Points,
    "LindseaJudgeMetric": Lindsea,
    "MTBenchJudgeMetric": TwoTurns,
    "MathVisionJudgeMetric": Correct,
    "PairwiseLLMJudgeMetric": Pairs,
}


def judging_of(task: SeaTask, rows: Rows) -> Made:
    """The scorer and the metrics of a judged task, or of one whose instructions are checked. Raises UsageError."""
    name = task.scored_by[1]
    if name == "IFEvalMetric":
        return instructing.instructions_of(task, rows)
    if name not in _CLASSES:
        raise UnknownName("judged metric class", name, _CLASSES, f"Known: {', '.join(_CLASSES)}.")
    try:
        return _CLASSES[name](task, rows).made()
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"The judge of the task '{task.name}' cannot be used: {type(error).__name__} {error}."
        ) from None
