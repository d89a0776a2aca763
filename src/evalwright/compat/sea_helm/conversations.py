"""From a row to messages, byte for byte as SEA-HELM writes them: the preamble in the first turn, shots as turns, replies fed back."""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from evalwright.compat.sea_helm.loaders import Loader
from evalwright.compat.sea_helm.rows import hub_file, load_examples, loader_of
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import DatasetError, TaskError
from evalwright.core.images import Image
from evalwright.tasks.yaml_files import kind_of

_NAME = re.compile(r"\w+")
_LONGEST = 20_000_000
_ROLES = ("system", "user", "assistant")


@lru_cache(maxsize=4096)
def _parsed(template: str) -> tuple[tuple[str, str | None], ...]:
    """Texts and placeholders. Only names stand in braces: no attributes, no formats. Raises ValueError."""
    pieces: list[tuple[str, str | None]] = []
    for text, name, spec, conversion in string.Formatter().parse(template):
        if name is not None and (spec or conversion or not _NAME.fullmatch(name)):
            raise ValueError(f"'{{{name}...}}' is more than a name in braces")
        pieces.append((text, name))
    return tuple(pieces)


def render(template: str | None, values: Mapping[str, Any], what: str) -> str:
    """A template with its placeholders filled. what: for errors. Raises TaskError."""
    try:
        text = "".join(
            text + ("" if name is None else str(values[name])) for text, name in _parsed(template or "")
        )
    except KeyError as error:
        raise TaskError(
            f"{what} has the placeholder {{{error.args[0]}}}, which its rows do not have."
        ) from None
    except ValueError as error:
        raise TaskError(f"{what} cannot be read: {error}.") from None
    if len(text) > _LONGEST:
        raise TaskError(f"{what} gives a text of more than {_LONGEST:,} characters.")
    return text


def check_row(task: SeaTask, row: Row, place: int) -> None:
    """Whether a row can be asked, before anything is sent. Raises TaskError for a template, DatasetError for a row that cannot be used."""
    where = f"Row {place + 1:,} of the data of '{task.name}' ({task.language})"
    if not isinstance(row.get("metadata") or {}, Mapping):
        raise DatasetError(f"{where} has {kind_of(row['metadata'])} at `metadata`, not a mapping.")
    if isinstance(given := row.get("conversations"), list):
        told = [one for one in given if isinstance(one, Mapping) and one.get("content") is not None]
        if len(told) < len(given) or not any(one.get("role") in _ROLES for one in told):
            raise DatasetError(f"{where} has no messages with a `role` and a `content` at `conversations`.")
        return
    template = task.template.get("task_template")
    try:
        names = {name for _, name in _parsed(template or "") if name is not None} - {"answer_tag"}
    except ValueError:
        names = set()  # as `render` says
        render(template, {}, f"The `task_template` of the task '{task.name}' ({task.language})")
    for turn in row["prompts"]:
        if missing := sorted(names - set(turn)):
            raise DatasetError(f"{where} has no '{missing[0]}', which the task's `task_template` asks for.")


class Shots:
    """The examples of a task. count: how many a row gets at most."""

    def __init__(self, task: SeaTask, count: int) -> None:
        self._loader: Loader = loader_of(task)
        self._task = task
        self._count = count
        self.pool = load_examples(task, count)
        self._first: list[Row] = []
        self._by_subject: dict[str, list[Row]] = {}
        if self._loader.by_subject:
            for row in self.pool:
                self._by_subject.setdefault(_subject(row), []).append(row)
            if task.published and self._by_subject and min(map(len, self._by_subject.values())) < count:
                self._count = len(self.pool)  # SEA-HELM takes all where a subject has too few
        else:  # one more, because a row is no example of its own
            self._first = list(self.pool[: count + 1])

    def __call__(self, row: Row) -> Sequence[Row]:
        """Those of a row. Corrected, a row of the data is never its own example."""
        found = (
            self._by_subject.get(_subject(row, of_prompt=True), [])
            if self._loader.by_subject
            else self._first
        )
        if not self._task.published:
            found = [one for one in found if one["prompts"] != row["prompts"]]
        return found[: self._count]


def _subject(row: Row, *, of_prompt: bool = False) -> str:
    return str((row["prompts"][0] if of_prompt else row.get("metadata") or {}).get("subject") or "").lower()


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
            {"role": one["role"], "content": str(one["content"])} for one in given if one["role"] in _ROLES
        ]
    messages: list[dict[str, Any]] = []
    for number in range(1, turn + 1):
        if number > 1:
            messages.append({"role": "assistant", "content": replies[number - 2]})
        messages += _turn(task, row, examples, row["prompts"][number - 1])
    return messages


def _turn(
    task: SeaTask, row: Row, examples: Sequence[Row], values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    template, tag = task.template, {"answer_tag": task.answer_tag}
    where = f"of the task '{task.name}' ({task.language})"
    texts: list[str] = []
    for one in examples:
        label = one.get("label")
        prompt = {**one["prompts"][0], **tag}
        first = {"label": label[0] if isinstance(label, list) and label else label}
        texts.append(render(template.get("task_template"), prompt, f"The `task_template` {where}"))
        texts.append(
            render(
                template.get("answer_template"), {**one, **first, **prompt}, f"The `answer_template` {where}"
            )
        )
    texts.append(render(template.get("task_template"), {**tag, **values}, f"The `task_template` {where}"))
    preamble = render(template.get("preamble"), tag, f"The `preamble` {where}")
    texts[0] = f"{preamble}\n\n{texts[0]}".strip()
    content: list[Any] = [*texts[:-1], _with_images(texts[-1], row, task)]
    return [
        {"role": "user" if place % 2 == 0 else "assistant", "content": each}
        for place, each in enumerate(content)
    ]


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
