"""What is sent: the conversation of a row, as SEA-HELM writes it byte for byte, and examples."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright import Message
from evalwright.compat.sea_helm.placeholders import render
from evalwright.compat.sea_helm.sea_task import Row, SeaTask
from evalwright.compat.sea_helm.task_rows import (
    ROLES,
    file_of_hub,
    load_examples,
    loader_of,
    unset,
)
from evalwright.extend import DatasetError, Image


class Shots:
    """The examples of a task. count: how many a row gets at most."""

    def __init__(self, task: SeaTask, count: int) -> None:
        self.pool = load_examples(task, count)
        self._task = task
        self._by_subject = loader_of(task).by_subject
        self._found: dict[str, list[Row]] = {}
        # One more than the count, because a row is no example of its own.
        for row in self.pool if self._by_subject else self.pool[: count + 1]:
            self._found.setdefault(self._key(row.get("metadata") or {}), []).append(row)
        few = (
            self._by_subject
            and min(map(len, self._found.values()), default=count) < count
        )
        # SEA-HELM takes all where a subject has too few.
        self._count = len(self.pool) if few and task.published else count

    def _key(self, about: Mapping[str, Any]) -> str:
        """What examples go by: nothing, or the subject."""
        return str(about.get("subject") or "").lower() if self._by_subject else ""

    def __call__(self, row: Row) -> Sequence[Row]:
        """Those of a row.

        Corrected, a row of the data is never its own example, and one that lacks a text is none.
        """
        examples = self._found.get(self._key(row["prompts"][0]), [])
        own_prompts = () if self._task.published else (row["prompts"],)
        return [
            example
            for example in examples
            if example["prompts"] not in own_prompts and not unset(self._task, example)
        ][: self._count]


def shots_of(
    task: SeaTask, requested: int | None, constants: Mapping[str, Any]
) -> int | None:
    """How many shots a task has: those asked for, its own, or the folder's default.

    None where SEA-HELM's own code fails on `null`.
    """
    if requested is not None:
        return requested
    kind = "base" if task.base else "instruct"
    configured = task.config.get("fewshot_num_examples")
    if configured is None:
        return int(
            constants.get(f"{kind}_num_in_context_examples") or (5 if task.base else 0)
        )
    count = configured.get(kind) if isinstance(configured, Mapping) else configured
    return count if isinstance(count, int) else None


def conversation(
    task: SeaTask, row: Row, examples: Sequence[Row] = (), replies: Sequence[str] = ()
) -> list[Message]:
    """The messages of the turn behind those that have replies. Raises TaskError.

    A turn repeats shots and preamble, as published. Messages with images have parts: the text, then
    the images.
    """
    if isinstance(recorded := row.get("conversations"), list):
        return [
            Message(message["role"], str(message["content"]))
            for message in recorded
            if message["role"] in ROLES
        ]
    if not all([*row.get("images", ()), *row.get("image_files", ())]):
        raise DatasetError(
            f"The row '{row.get('id')}' lacks a picture that the task asks about."
        )
    images = [
        Image.read(base64.b64decode(encoded), f"row {row.get('id')}")
        for encoded in row.get("images") or ()
    ]
    files = [
        file_of_hub(str(task.language_settings["filepath"]), name)
        for name in row.get("image_files") or ()
    ]
    images += [Image.read(file.read_bytes(), file.name) for file in files]
    contents: list[Any] = []
    for turn_index, values in enumerate(row["prompts"][: len(replies) + 1]):
        *before, text = _turn(task, examples, values)
        contents += [
            *replies[turn_index - 1 : turn_index],
            *before,
            (text, *images) if images else text,
        ]
    return [
        Message("assistant" if content_index % 2 else "user", content)
        for content_index, content in enumerate(contents)
    ]


def _turn(
    task: SeaTask, examples: Sequence[Row], values: Mapping[str, Any]
) -> list[str]:
    """The texts of one turn: each example and its answer, then the question, the preamble before
    all of them.
    """

    def filled(key: str, values: Mapping[str, Any]) -> str:
        subject = f"The `{key}` of the task '{task.name}' ({task.language})"
        return render(task.template.get(key), values, subject)

    tag = {"answer_tag": task.answer_tag}
    texts: list[str] = []
    for example in examples:
        label = example.get("label")
        prompt = {**example["prompts"][0], **tag}
        first = {"label": label[0] if isinstance(label, list) and label else label}
        texts += [
            filled("task_template", prompt),
            filled("answer_template", {**example, **first, **prompt}),
        ]
    texts.append(filled("task_template", {**tag, **values}))
    texts[0] = f"{filled('preamble', tag)}\n\n{texts[0]}".strip()
    return texts


def base_text(messages: Sequence[Message]) -> str:
    """The text that a base model goes on from: the turns without white space around them, an empty
    line after each.
    """
    return "".join(f"{message.text.strip()}\n\n" for message in messages)
