"""From a row to messages, byte for byte as SEA-HELM writes them: the preamble in the first turn, shots as turns, replies fed back."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.compat.sea_helm.rows import ROLES, hub_file, load_examples, loader_of
from evalwright.compat.sea_helm.task import Row, SeaTask, pieces
from evalwright.core.errors import TaskError
from evalwright.core.images import Image

_LONGEST = 20_000_000


def render(template: str | None, values: Mapping[str, Any], what: str) -> str:
    """A template with its placeholders filled. what: for errors. Raises TaskError."""
    try:
        parts = pieces(template or "", what)
        text = "".join(text + ("" if name is None else str(values[name])) for text, name in parts)
    except KeyError as error:
        raise TaskError(
            f"{what} has the placeholder {{{error.args[0]}}}, which its rows do not have."
        ) from None
    if len(text) > _LONGEST:
        raise TaskError(f"{what} gives a text of more than {_LONGEST:,} characters.")
    return text


class Shots:
    """The examples of a task. count: how many a row gets at most."""

    def __init__(self, task: SeaTask, count: int) -> None:
        self._task, self._count = task, count
        self._by_subject = loader_of(task).by_subject
        self.pool = load_examples(task, count)
        self._found: dict[str, list[Row]] = {}
        # One more than the count, because a row is no example of its own.
        for row in self.pool if self._by_subject else self.pool[: count + 1]:
            self._found.setdefault(self._subject(row.get("metadata") or {}), []).append(row)
        if self._by_subject and task.published and min(map(len, self._found.values()), default=count) < count:
            self._count = len(self.pool)  # SEA-HELM takes all where a subject has too few

    def __call__(self, row: Row) -> Sequence[Row]:
        """Those of a row. Corrected, a row of the data is never its own example."""
        found = self._found.get(self._subject(row["prompts"][0]), [])
        if not self._task.published:
            found = [one for one in found if one["prompts"] != row["prompts"]]
        return found[: self._count]

    def _subject(self, of: Mapping[str, Any]) -> str:
        return str(of.get("subject") or "").lower() if self._by_subject else ""


def shots_of(task: SeaTask, asked: int | None, constants: Mapping[str, Any]) -> int | None:
    """How many shots a task has: those asked for, its own, or the folder's default. None where SEA-HELM's own code fails on `null`."""
    if asked is not None:
        return asked
    kind = "base" if task.base else "instruct"
    own = task.config.get("fewshot_num_examples")
    if own is None:
        return int(constants.get(f"{kind}_num_in_context_examples") or (5 if task.base else 0))
    count = own.get(kind) if isinstance(own, Mapping) else own
    return count if isinstance(count, int) else None


def conversation(
    task: SeaTask, row: Row, examples: Sequence[Row] = (), turn: int = 1, replies: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """The messages of a turn, counted from 1. replies: to the turns before. Raises TaskError.

    A turn repeats shots and preamble, as published. Messages with images have parts: the text, then the images.
    """
    if isinstance(given := row.get("conversations"), list):
        return [
            {"role": one["role"], "content": str(one["content"])} for one in given if one["role"] in ROLES
        ]
    contents: list[Any] = []
    for place, values in enumerate(row["prompts"][:turn]):
        texts = _turn(task, examples, values)
        contents += [*replies[place - 1 : place], *texts[:-1], _with_images(texts[-1], row, task)]
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": each} for place, each in enumerate(contents)]


def _turn(task: SeaTask, examples: Sequence[Row], values: Mapping[str, Any]) -> list[str]:
    """The texts of one turn: each example and its answer, then the question, the preamble before all of them."""

    def filled(key: str, values: Mapping[str, Any]) -> str:
        what = f"The `{key}` of the task '{task.name}' ({task.language})"
        return render(task.template.get(key), values, what)

    tag = {"answer_tag": task.answer_tag}
    texts: list[str] = []
    for one in examples:
        label = one.get("label")
        prompt = {**one["prompts"][0], **tag}
        first = {"label": label[0] if isinstance(label, list) and label else label}
        texts += [filled("task_template", prompt), filled("answer_template", {**one, **first, **prompt})]
    texts.append(filled("task_template", {**tag, **values}))
    texts[0] = f"{filled('preamble', tag)}\n\n{texts[0]}".strip()
    return texts


def _with_images(text: str, row: Row, task: SeaTask) -> Any:
    named = f"row {row.get('id')}"
    images = [Image.read(base64.b64decode(each), named) for each in row.get("images") or ()]
    files = [hub_file(str(task.here["filepath"]), name) for name in row.get("image_files") or ()]
    images += [Image.read(file.read_bytes(), file.name) for file in files]
    return [text, *images] if images else text


def base_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text that a base model goes on from: the turns without white space around them, an empty line after each."""
    return "".join(f"{_text(one['content']).strip()}\n\n" for one in messages)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part for part in content if isinstance(part, str))
