"""Instruction, shots and question put together, as one text or as messages.

A turn carries what follows it where turns are joined to one text; messages are sent without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields, field_of
from evalwright.compat.lm_eval.tasks.shots import Shots
from evalwright.core.errors import TaskError
from evalwright.core.requests import Message, Prompt


@dataclass(frozen=True, slots=True)
class Turn:
    """One part of the prompt. after: what stands behind it in a text."""

    role: Literal["system", "user", "assistant"]
    content: str
    after: str = ""


def joined(first: str | None, second: str | None, delimiter: str) -> str:
    """Both, with the delimiter between unless there is white space at the seam or one of them is empty."""
    if not first or not second:
        return first or second or ""
    return f"{first}{delimiter if apart(first, second) else ''}{second}"


def apart(first: str, second: str) -> bool:
    """Whether two texts need something between them: no white space where they meet."""
    return bool(first) and not first[-1].isspace() and not second[0].isspace()


class Prompts:
    """Builds the prompt of a row. multiple_input: the row's choices are contexts, each a prompt of its own."""

    def __init__(
        self,
        definition: Definition,
        fields: Fields,
        shots: Shots | None,
        options: Options,
        multiple_input: bool,
    ) -> None:
        self.definition = definition
        self.fields = fields
        self.shots = shots
        self.options = options
        self.multiple_input = multiple_input

    def __call__(self, index: int, doc: Doc) -> Prompt | list[Prompt]:
        """One prompt, or one for each choice where the task has multiple inputs."""
        config, fields = self.definition.config, self.fields
        prefix = field_of(doc, config.gen_prefix)
        before = self._before(index, doc)
        choices = fields.choices(doc) if fields.has_choices else None
        if self.multiple_input:
            assert choices is not None
            fields.text(doc)
            return [self._made([*before, *self._turns(text, None, None, prefix, "", "")]) for text in choices]
        question = self._turns(fields.text(doc), choices, None, prefix, config.target_delimiter, "")
        return self._made([*before, *question])

    def _before(self, index: int, doc: Doc) -> list[Turn]:
        config, shots = self.definition.config, self.definition.shots
        description = field_of(doc, config.description) or ""
        system = joined(self.options.system, description, config.fewshot_delimiter)
        turns = [Turn("system", system)] if system else []
        if self.shots is None:
            return turns
        fields = self.fields
        for shot in self.shots.of(index, doc):
            question = fields.text(shot, shots.doc_to_text)
            choices = fields.choices(shot, shots.doc_to_choice) if shots.doc_to_choice else None
            answer = fields.target(shot, shots.doc_to_target)
            prefix = field_of(shot, shots.gen_prefix)
            if self.multiple_input:
                assert choices is not None
                question, choices = choices[question], None
            turns += self._turns(
                question, choices, answer, prefix, shots.target_delimiter or "", shots.fewshot_delimiter or ""
            )
        return turns

    def _turns(
        self, question: Any, choices: Any, answer: Any, prefix: str | None, delimiter: str, after: str
    ) -> list[Turn]:
        """A question, and its answer or the beginning of one."""
        if not isinstance(question, str):
            raise TaskError(f"The task '{self.definition.name}': a question must be text, not {question!r}.")
        has_answer = answer is not None and answer != ""
        between = (has_answer and not prefix) or (prefix and apart(question, prefix))
        turns = [Turn("user", question, delimiter if between else "")]
        if has_answer:
            turns.append(Turn("assistant", joined(prefix, self._answer(choices, answer), " "), after))
        elif prefix:
            turns.append(Turn("assistant", prefix))
        return turns

    def _answer(self, choices: Any, answer: Any) -> str:
        if choices and isinstance(answer, int):
            answer = choices[answer]
        elif isinstance(answer, list):
            answer = answer[0]
            if not self.options.published and choices and isinstance(answer, int):
                answer = choices[answer]
        if isinstance(answer, str):
            return answer
        if not self.options.published:
            return str(answer)
        raise TaskError(
            f"The task '{self.definition.name}': the answer of a shot must be text, not {answer!r}."
        )

    def _made(self, turns: Sequence[Turn]) -> Prompt:
        if not self.options.chat:
            return "".join(turn.content + turn.after for turn in turns)
        if not self.options.multiturn:
            turns = _one_turn(turns)
        return tuple(Message(turn.role, turn.content) for turn in turns)


def _one_turn(turns: Sequence[Turn]) -> list[Turn]:
    """All between the instruction and a begun answer as one message of the user."""
    system = list(turns[:1]) if turns[0].role == "system" else []
    rest = list(turns[len(system) :])
    begun = [rest.pop()] if rest[-1].role == "assistant" else []
    rest[-1] = replace(rest[-1], after="")
    return [*system, Turn("user", "".join(turn.content + turn.after for turn in rest)), *begun]
