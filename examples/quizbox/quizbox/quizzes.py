"""The dialect: `quizbox:NAME` is the quiz in NAME.quiz.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright import Answer, Sample, Score, Task
from evalwright.extend import (
    ListedTask,
    MetricSpec,
    Scorer,
    ScoringRules,
    TaskError,
    TaskGroup,
    UnknownName,
    regular_file,
    task_from_definition,
)

SYSTEM = "quizbox"
SUFFIX = ".quiz.toml"
BUNDLED = Path(__file__).parent
METRICS = (MetricSpec("right", "accuracy", "grade"),)
right_or_wrong = frozenset({"right"})


def grade(sample: Sample, answer: Answer) -> Score:
    """Quizbox's rule: the reply's last line is an accepted answer, in any case."""
    lines = answer.text.strip().rstrip(".").splitlines() or [""]
    accepted = [target.casefold() for target in sample.targets]
    is_right = lines[-1].strip().casefold() in accepted
    label = "correct" if is_right else "incorrect"
    return Score(float(is_right), label, parts={"right": is_right})


SCORERS = (Scorer("grade", SYSTEM, {}, grade),)


def names(roots: Sequence[Path]) -> Sequence[ListedTask]:
    """The quizzes in some folders, or in this package."""
    folders = [Path(root) for root in roots] or [BUNDLED]
    files = [file for folder in folders for file in sorted(folder.glob(f"*{SUFFIX}"))]
    return [
        ListedTask(file.name.removesuffix(SUFFIX), "task", str(file)) for file in files
    ]


def load(
    name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
) -> list[Task]:
    """The quiz as a task, with its own scoring."""
    quizzes = {quiz.name: quiz.path for quiz in names(settings.get("task_root") or ())}
    if name not in quizzes:
        raise UnknownName("quiz", name, quizzes, f"Known: {', '.join(quizzes)}.")
    definition = {
        "task": name,
        "dataset": {"rows": read_questions(Path(quizzes[name]))},
        "sample": {"id": "{{ key }}", "input": "{{ ask }}", "target": "{{ accept }}"},
        "prompt": {"user": "{{ input }} Answer with the name alone."},
        "answer": {"mode": "generate", "max_tokens": 20},
    }
    task = replace(
        task_from_definition(definition, chat=chat),
        name=f"{SYSTEM}:{name}",
        definition={"dialect": SYSTEM, "task": name},
        scorers=SCORERS,
        metrics=METRICS,
    )
    return [task]


def read_questions(path: Path) -> list[dict[str, Any]]:
    """The questions of a quiz file."""
    try:
        quiz = tomllib.loads(regular_file(path).read_text(encoding="utf-8"))
        keys = ("key", "ask", "accept")
        return [{key: row[key] for key in keys} for row in quiz["question"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path} is not a quiz: {error!r}.") from error


def groups(tasks: Sequence[Mapping[str, Any]]) -> Sequence[TaskGroup]:
    """Quizbox averages nothing."""
    return []


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> ScoringRules:
    """Any run of a quiz is scored again by the same rule."""
    return ScoringRules(SCORERS, METRICS)
