"""Renders a sample into what the model reads: messages, or one text.

No other module assembles prompts.

    chat   [system], user, assistant, user, assistant, ..., user, [assistant prefill]
    text   system SEP user DEL answer SEP user DEL answer SEP ... user [DEL prefill]

SEP is `separator`, DEL is `delimiter`. White space at the end of each rendered part is dropped, so
that what stands between parts is exactly what the task says; a prompt to generate from ends with
the delimiter's line breaks, but never with a space, which would split the first word's token. Shots
begin with the prefill too, as the answer will.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Literal, TypeVar

from evalwright.core.errors import DatasetError
from evalwright.core.images import Image
from evalwright.core.requests import Message, Prompt
from evalwright.core.samples import Sample
from evalwright.tasks import schema, templates
from evalwright.tasks.few_shot import Shot, Shots, without_id
from evalwright.tasks.images import RowImages, marks_of, with_images
from evalwright.tasks.samples import Placed, RowError
from evalwright.tasks.yaml_files import Document

Form = Literal["chat", "text"]
Rendered = TypeVar("Rendered")


_SAMPLE_TEXTS = frozenset(("id", "input", "target"))
"""What templates see of every sample, whatever its row is."""


class Part(Placed):
    """One template of the prompt, and where it is written in the file."""

    def __init__(
        self, source: str, name: str, document: Document, *, exact: bool = False
    ) -> None:
        super().__init__(
            templates.text,
            source,
            f"prompt.{name}",
            document,
            ("prompt", *name.split(".")),
        )
        self.source = source
        self.fixed = not templates.is_template(source)
        self.never_fails = templates.reads_only(source, _SAMPLE_TEXTS)
        self._exact = exact
        self._fixed_text = source if exact else source.rstrip()

    def __call__(
        self, context: Mapping[str, Any], columns: Mapping[str, Any] | None = None
    ) -> str:
        """Render the text, without white space at its end.

        Raises:
            RowError: it cannot be rendered.
        """
        if self.fixed:
            return self._fixed_text
        rendered: str = super().__call__(context, columns)
        return rendered if self._exact else rendered.rstrip()


class Renderer:
    """Renders prompts: `renderer(sample)` is the prompt of a sample.

    Args:
        dataset: the dataset, from whose folder relative paths of images start.
        variables: this member's values of `for_each`.
        open_ended: whether the model continues the prompt, so that in text form the delimiter is
            part of the prompt; otherwise it begins the continuation that is scored.

    Raises:
        DatasetError: a sample cannot be rendered; the message names it.
    """

    def __init__(
        self,
        prompt: schema.Prompt,
        document: Document,
        form: Form,
        *,
        dataset: schema.Dataset,
        user: str | Sequence[str],
        assistant: str,
        variables: Mapping[str, Any],
        open_ended: bool,
        exact: bool = False,
    ) -> None:
        turns = [user] if isinstance(user, str) else list(user)
        self.form = form
        self._fields = {
            name: Part(source, f"fields.{name}", document)
            for name, source in prompt.fields.items()
        }
        self._system = Part(prompt.system, "system", document)
        self._users = [Part(turn, "user", document, exact=exact) for turn in turns]
        self._assistant = Part(assistant, "assistant", document)
        self._prefill = Part(prompt.prefill, "prefill", document)
        self._images = (
            None
            if prompt.images is None
            else RowImages(prompt.images, document, dataset)
        )
        self._may_fail = (
            bool(self._fields)
            or self._images is not None
            or not all(
                part.never_fails for part in (*self._users, self._prefill, self._system)
            )
        )
        self._delimiter = prompt.delimiter
        self._separator = prompt.separator
        self._ending = prompt.delimiter.rstrip(" \t") if open_ended else ""
        self._variables = dict(variables)
        self.shots: Shots | None = None
        self._heads: dict[str, str | tuple[Message, ...]] = {}
        sources = [
            part.source
            for part in (self._system, *self._users, self._assistant, self._prefill)
        ]
        self._lettered = any("lettered" in source for source in sources)

    def __call__(self, sample: Sample) -> Prompt:
        """Render the prompt of one sample."""
        return per_sample(sample, self.render)

    def turns(self, sample: Sample) -> tuple[str, ...]:
        """Render the user turns that follow the first."""
        return self._turns(sample)[1:]

    def question(self, sample: Sample) -> str:
        """Render the user's turns of a sample, without what precedes them.

        Raises:
            DatasetError: they cannot be rendered.
        """
        return "\n\n".join(self._turns(sample))

    def _turns(self, sample: Sample) -> tuple[str, ...]:
        def rendered(sample: Sample) -> tuple[str, ...]:
            context = self.context(sample)
            if self._images is not None:
                context["images"] = ("",) * len(self._images(context))
            first, *later = (part(context) for part in self._users)
            # A row may have fewer turns than others of its task.
            return (first, *(turn for turn in later if turn.strip()))

        return per_sample(sample, rendered)

    def render(self, sample: Sample) -> Prompt:
        """Render like a call, but raise RowError."""
        context = self.context(sample)
        images = self._seen(context)
        user = self._users[0](context)
        prefill = self._prefill(context)
        shots, key = self.shots.draw(sample, user) if self.shots else ([], "")
        head = self._head(shots, key, context)
        if self.form == "text":
            question = (
                self._answered(user, prefill)
                if prefill
                else user + (self._ending if user else "")
            )
            return f"{head}{question}"
        messages = (*head, Message("user", with_images(user, images)))
        return (*messages, Message("assistant", prefill)) if prefill else messages

    def shot(self, sample: Sample) -> Shot:
        """Render a sample of the pool as a worked example.

        Raises:
            RowError: it cannot be rendered.
        """
        context = self.context(sample)
        answer = self._assistant(context)
        if not answer.strip():
            raise RowError("a shot has no answer: its target is empty")
        prefill = self._prefill(context)
        full_answer = self._answered(prefill, answer) if prefill else answer
        return Shot(
            self._users[0](context), full_answer, without_id(sample.row), sample
        )

    def answer(self, sample: Sample) -> str:
        """Render the answer of a shot of this sample, without the prefill.

        It is "" if its row cannot be a shot.
        """
        try:
            return self._assistant(self.context(sample))
        except RowError:
            return ""

    def check(self, sample: Sample) -> bytes:
        """Raise RowError if any part except the shots cannot be rendered.

        Returns:
            What identifies the row's images.
        """
        if not self._may_fail:
            return b""
        context = self.context(sample)
        images = self._seen(context)
        for part in (*self._users, self._prefill, self._system):
            if not part.fixed:
                part(context)
        return "".join(image.digest for image in images).encode()

    def _seen(self, context: dict[str, Any]) -> tuple[Image, ...]:
        """Read the row's images and add them to what templates see."""
        images = () if self._images is None else self._images(context)
        if self._images is not None:
            context["images"] = marks_of(images)
        return images

    def context(self, sample: Sample) -> dict[str, Any]:
        """Return what prompt templates see.

        That is the row's columns, overridden by the sample's own fields and those of
        `prompt.fields`.
        """
        context = {
            **sample.row,
            **self._variables,
            "row": sample.row,
            "id": sample.id,
            "input": sample.input,
            "choices": sample.choices,
            "target": sample.target,
            "targets": sample.targets,
            "passages": sample.passages,
            "metadata": sample.metadata,
        }
        if sample.choices:
            letters = tuple(ascii_uppercase[: len(sample.choices)])
            context["letters"] = letters
            if sample.gold and sample.gold[0] < len(letters):
                context["letter"] = letters[sample.gold[0]]
            if self._lettered:
                pairs = zip(letters, sample.choices, strict=False)
                context["lettered"] = "\n".join(
                    f"{letter}. {choice}" for letter, choice in pairs
                )
        for name, part in self._fields.items():
            context[name] = part(context)
        return context

    def _answered(self, user: str, answer: str) -> str:
        return f"{user}{self._delimiter}{answer}" if user else answer

    def _head(
        self, shots: list[Shot], key: str | None, context: Mapping[str, Any]
    ) -> Any:
        """Return what precedes the question: text, or messages.

        `key` is equal for equal shots, None if they are only for this sample.
        """
        shared = key if self._system.fixed else None
        if shared is not None and shared in self._heads:
            return self._heads[shared]
        system = self._system(context)
        head: str | tuple[Message, ...]
        if self.form == "text":
            parts = [system] if system else []
            parts += [self._answered(shot.user, shot.answer) for shot in shots]
            head = "".join(part + self._separator for part in parts)
        else:
            messages = [Message("system", system)] if system else []
            for shot in shots:
                messages += [
                    Message("user", shot.user),
                    Message("assistant", shot.answer),
                ]
            head = tuple(messages)
        if shared is not None:
            self._heads[shared] = head
        return head


def per_sample(sample: Sample, render: Callable[[Sample], Rendered]) -> Rendered:
    """Render something of a sample.

    Raises:
        DatasetError: it cannot be rendered; the message names the sample.
    """
    try:
        return render(sample)
    except RowError as error:
        raise DatasetError(f"Sample '{sample.id}': {error}.") from None
