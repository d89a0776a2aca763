"""SEA-HELM's judges and what they are asked: its prompts as they stand in the files, of a judge
that the person names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from evalwright import Ask, Generate, Message
from evalwright.compat.sea_helm.sea_task import Row, SeaTask, log
from evalwright.extend import (
    TaskError,
    check_known,
    checked_sampling,
    options_of,
    refusal_of,
)

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
_NOT_EVERYWHERE = ("min_p", "reasoning_effort", "top_k")
"""Arguments that not every model takes."""
_NAME = re.compile(r"[\w.:@/+-]{1,300}")
_BRACES = re.compile(r"\{\{|\}\}|\{(\w+)\}|[{}]")
_MOST_WORTH = 1_000_000

Question = tuple[str | None, str]
"""What a judge is asked: the system message, None for none, and the user's."""
Questions = Mapping[str, Question]
"""By the name of what is asked."""
Verdicts = Mapping[str, Any]
"""Verdicts by what was asked; None for one that could not be read."""
Fill = Callable[[Any, Mapping[str, Any]], str]
"""Fills the placeholders of a template."""


# -- judges ----------------------------------------------------------------------------


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
        how = checked_sampling(generation, f"The judge of the task '{task.name}'")
        judges.append(
            Judge(
                f"judge-{len(judges) + 1}" if judges else "judge",
                f"{provider}/{name}",
                how,
            )
        )
    return tuple(judges)


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


def judge_request(
    task_name: str,
    role: str,
    generation: Mapping[str, Any],
    ask: Ask,
    question: Question,
) -> Generate:
    """The request with the file's arguments of generation; those that this judge does not take are
    left out, and said once.
    """
    system, user = question
    before = () if system is None else (Message("system", str(system)),)
    prompt = (*before, Message("user", user))
    carried = options_of(ask, role)
    arguments: dict[str, Any] = {"temperature": None}
    for name, setting in generation.items():
        if name not in _NOT_EVERYWHERE:
            arguments[name] = setting
            continue
        alone = Generate(prompt, temperature=None, **{name: setting})
        why = refusal_of(ask, role, alone)
        if why is None and name in carried:
            arguments[name] = setting
        elif why is not None:
            tell_left_out(task_name, f"{name}={setting}", why)
    return Generate(prompt, **arguments)


# -- prompts ---------------------------------------------------------------------------


def filled(
    template: Any,
    values: Mapping[str, Any],
    refusal: Callable[[str], Exception] | None = None,
) -> str:
    """A template with its placeholders filled once; other braces stay, in templates and in what is
    filled in.

    refusal: makes the error of one for which there is no value, and of a single brace.
    """

    def put(match: re.Match[str]) -> str:
        if match[1] in values:
            return str(values[match[1]])
        if len(match[0]) == 2 and match[1] is None:
            return match[0][0]
        if refusal is not None:
            raise refusal(
                f"KeyError: '{match[1]}'" if match[1] else "ValueError: a single brace"
            )
        return match[0]

    return _BRACES.sub(put, str(template or ""))


@dataclass(frozen=True, slots=True)
class JudgeForm:
    """What the questions of a task are made of.

    Args:
        prompts: `judge.judge_prompts` of the task's file.
        template: its `task_template`.
        classes: what the judge's classes are worth, for criteria.
        labels: what the judge writes for a win of A or B and for a tie, for pairs.
        label_names: which of these there are.
        ties: whether there are ties.
        baseline: the model whose answers are the others of pairs.
        referenced: the categories of pairs that are judged with a reference.
        words: right and wrong, for answers with a reference.
        boxed: whether the last box of an answer is judged, if any.
        fill: how placeholders are filled.
    """

    prompts: Mapping[str, Any]
    template: Any = None
    classes: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    label_names: Sequence[str] = ()
    ties: bool = True
    baseline: str | None = None
    referenced: Sequence[str] = ()
    words: Sequence[str] = ("CORRECT", "INCORRECT")
    boxed: bool = False
    fill: Fill = filled


def form_of(task: SeaTask, kind: str, **settings: Any) -> JudgeForm:
    """The form of a task's questions. kind: of `QUESTIONS`. Raises TaskError."""
    prompts = task.config["judge"].get("judge_prompts")
    if not isinstance(prompts, Mapping):
        raise TaskError(
            f"The task '{task.name}' has no prompts for its judge"
            " (`judge.judge_prompts`)."
        )
    if kind in ("criteria", "turns", "severity"):
        settings["classes"] = _classes_of(task)
    if kind == "pairs":
        settings |= _pair_settings(task)
    return JudgeForm(prompts, task.template.get("task_template"), **settings)


def _classes_of(task: SeaTask) -> Mapping[str, Any]:
    classes = task.config["judge"].get("classifications")
    values = classes.values() if isinstance(classes, Mapping) else ()
    numbers = [
        class_worth
        for class_worth in values
        if isinstance(class_worth, int | float) and not isinstance(class_worth, bool)
    ]
    if not values or sum(
        abs(class_worth) <= _MOST_WORTH for class_worth in numbers
    ) < len(values):
        raise TaskError(
            f"The task '{task.name}' does not say what its judge's classes are worth."
        )
    return classes  # type: ignore[no-any-return]


def _pair_settings(task: SeaTask) -> dict[str, Any]:
    ties = bool(task.config.get("ties_allowed", True))
    labels: Mapping[str, str] = task.config.get("judgement_labels") or {}
    label_names = ("A_wins", "B_wins", "Tie") if ties else ("A_wins", "B_wins")
    if missing := [name for name in label_names if name not in labels]:
        raise TaskError(
            f"The task '{task.name}' has no '{missing[0]}' among its"
            " `judgement_labels`."
        )
    return {
        "ties": ties,
        "labels": labels,
        "label_names": label_names,
        "baseline": task.config.get("baseline_model"),
        "referenced": task.config.get("categories_with_reference") or (),
    }


def criteria_questions(
    form: JudgeForm, row: Row, replies: Sequence[str]
) -> dict[str, Question]:
    """Each criterion of a row by itself, of a conversation those of each turn."""
    question_by_name: dict[str, Question] = {}
    template = form.prompts["criteria_prompt"]
    of_turns = isinstance(template, Mapping)
    for number, criterion in enumerate(row["criteria"]):
        turn = int(criterion["turn"]) if of_turns else 0
        values = _criterion_values(form, row, replies, criterion, turn)
        user = form.fill(template[f"turn_{turn + 1}"] if of_turns else template, values)
        name = f"turn{turn}_criteria{number}" if of_turns else f"criteria{number}"
        question_by_name[name] = (form.prompts["system_prompt"], user)
    return question_by_name


def _criterion_values(
    form: JudgeForm, row: Row, replies: Sequence[str], criterion: Row, turn: int
) -> Mapping[str, str]:
    """The placeholders of a criterion's prompt."""
    user_turns = [
        form.fill(form.template, prompt) for prompt in row["prompts"][: turn + 1]
    ]
    before = f"[User]\n{user_turns[0]}"
    if turn:
        before += f"\n\n[Assistant (fixed)]\n{replies[0]}\n\n[User]\n{user_turns[1]}"
    reference = ""
    if criterion.get("include_reference"):
        template = form.prompts["reference_prompt"]
        reference = f"\n{form.fill(template, {'reference': row['label']})}\n"
    return {
        "prompt": user_turns[0],
        "transcript": before,
        "response": replies[min(turn, 1)],
        "keyPointText": form.fill(criterion["criterion"], row["prompts"][0]),
        "reference_text_block": reference,
    }


def point_questions(
    form: JudgeForm, row: Row, replies: Sequence[str]
) -> dict[str, Question]:
    """HealthBench's: each item of the rubric, with the whole conversation."""
    lines = [
        f"{message['role']}: {message['content']}" for message in row["conversations"]
    ]
    conversation = "\n\n".join([*lines, f"Assistant: {replies[0].strip()}"])
    question_by_name: dict[str, Question] = {}
    for number, criterion in enumerate(row["criteria"]):
        item = f"[{criterion['points']}] {criterion['criterion']}"
        values = {"conversation": conversation, "rubric_item": item}
        user = form.fill(form.prompts["criteria_prompt"], values)
        question_by_name[f"criteria{number}"] = (form.prompts["system_prompt"], user)
    return question_by_name


def correctness_question(
    form: JudgeForm, row: Row, replies: Sequence[str]
) -> dict[str, Question]:
    """Whether the answer says what the reference says."""
    question = row["prompts"][0]["question"]
    right = row["label"]
    answer = boxed(replies[0]) if form.boxed else replies[0]
    values = {
        "question": question,
        "official_answer": right,
        "candidate_answer": answer,
        "groundtruth": right,
        "modeloutput": answer,
    }
    return {"verdict": (None, form.fill(form.prompts["criteria_prompt"], values))}


def boxed(text: str) -> str:
    r"""What is in the last `\boxed{}` that is closed, else the whole text."""
    content = text
    starts = []
    for mark in re.finditer(r"(?i)\\boxed\{|[{}]", text):
        if mark[0] != "}":
            starts.append(mark.end() if len(mark[0]) > 1 else 0)
        elif starts and (start := starts.pop()):
            content = text[start : mark.start()].strip()
    return content


WIN_BY_ORDER = {"baseline-after": "A_wins", "baseline-before": "B_wins"}
"""By where the other answer stands: the label of a win."""


def pair_questions(
    form: JudgeForm, row: Row, replies: Sequence[str]
) -> dict[str, Question]:
    """Each turn's reply beside the baseline's, in both orders."""
    baseline = row["baselines"][form.baseline]
    referenced = row["metadata"]["category"] in form.referenced
    prompts = form.prompts["with-reference" if referenced else "without-reference"]
    question_by_name: dict[str, Question] = {}
    shared_columns = {
        "question": [prompt["text"] for prompt in row["prompts"][: len(replies)]]
    }
    shared_columns |= {"ref_answer": row["references"]} if referenced else {}
    for turn in range(len(replies)):
        system = form.fill(prompts[turn]["system_prompt"], form.labels)
        for order in WIN_BY_ORDER:
            first, second = (
                (replies, baseline)
                if order == "baseline-after"
                else (baseline, replies)
            )
            columns = {**shared_columns, "answer_a": first, "answer_b": second}
            values = {
                f"{name}_{index + 1}": columns[name][index]
                for name in columns
                for index in range(turn + 1)
            }
            user = form.fill(prompts[turn]["prompt_template"], values)
            question_by_name[f"{turn + 1} {order}"] = (system, user)
    return question_by_name


def won(form: JudgeForm, verdicts: Verdicts) -> dict[str, float | None]:
    """What each verdict on a pair is worth: 1 for a win, 0.5 for a tie; None for no verdict."""
    neither = {"Tie": 0.5, None: None}
    return {
        name: neither.get(
            verdict, float(verdict == WIN_BY_ORDER[name.partition(" ")[2]])
        )
        for name, verdict in verdicts.items()
    }


def pair_label(form: JudgeForm, text: str) -> str | None:
    """The one label that a reply has."""
    labels_named = [name for name in form.label_names if form.labels[name] in text]
    return labels_named[0] if len(labels_named) == 1 else None


def right_or_wrong(form: JudgeForm, text: str) -> float | None:
    """Which of the two words a reply has."""
    right, wrong = (re.search(rf"\b{word}\b", text) is not None for word in form.words)
    return float(right) if right != wrong else None


_CLASS = re.compile(r"<classification>\s*(\w+)\s*</classification>")


def class_worth(form: JudgeForm, text: str, last: bool = True) -> float | None:
    """What the last class in a reply is worth, or the first."""
    classes_named = _CLASS.findall(text)
    return form.classes.get(classes_named[-1 if last else 0]) if classes_named else None


QUESTIONS: Mapping[
    str, Callable[[JudgeForm, Row, Sequence[str]], dict[str, Question]]
] = {
    "criteria": criteria_questions,
    "turns": criteria_questions,
    "severity": criteria_questions,
    "points": point_questions,
    "correct": correctness_question,
    "pairs": pair_questions,
}
"""By the kind of what is judged."""
