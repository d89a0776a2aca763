"""Scores of programs that are run, kept in the store for the worker that writes the run.

Workers evaluate slices with the scorers that send requests or run programs. The responses to
requests are stored; scores of programs are kept here, so that no program runs a second time when
the run is made from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from inspect import isawaitable
from math import isfinite
from typing import Any

from evalwright._version import __version__
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Scored, Scorer, Task
from evalwright.engine.slices import WorkerNotes
from evalwright.scorers.registry import RUN_PROGRAMS


def keep_program_scores(tasks: Sequence[Task], notes: WorkerNotes) -> tuple[Task, ...]:
    """Return tasks whose scorers that run programs store their scores, and run none twice.

    Such a score depends on the sample and on the answer's text alone.

    Args:
        tasks: the tasks.
        notes: the notes about the scores of the run.
    """
    return tuple(
        replace(
            task,
            scorers=tuple(
                replace(scorer, function=_stored_function(task, scorer, notes))
                if scorer.kind in RUN_PROGRAMS
                else scorer
                for scorer in task.scorers
            ),
        )
        for task in tasks
    )


def _stored_function(
    task: Task, scorer: Scorer, notes: WorkerNotes
) -> Callable[..., Coroutine[Any, Any, Scored]]:
    async def score(sample: Sample, answer: Answer, *arguments: Any) -> Scored:
        text = answer.text.encode("utf-8", "surrogatepass")
        digest = blake2b(text, digest_size=16).hexdigest()
        of_answer = (task.name, scorer.name, sample.id, digest)
        key = notes.key("score", __version__, *of_answer)
        (note,) = await notes.read([key])
        stored = _score_of(note or {})
        if stored is not None:
            return stored
        pending = scorer.function(sample, answer, *arguments)
        scored = await pending if isawaitable(pending) else pending
        if isinstance(scored, Score):
            await notes.write(key, scored.as_dict())
        return scored

    return score


def _score_of(note: Mapping[str, Any]) -> Score | None:
    """Return the score in a note; None if no program was scored like this: it is damaged."""
    if not {"value"} <= note.keys() <= {"value", "label", "explanation"}:
        return None
    value = note["value"]
    texts = [note.get("label", ""), note.get("explanation", "")]
    is_number = isinstance(value, float) and isfinite(value)
    if not is_number or not all(isinstance(text, str) for text in texts):
        return None
    return Score(value, *texts)
