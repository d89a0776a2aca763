"""Chooses few-shot examples and builds prompts, as one text or as messages.

Published examples come from one stream of random numbers per task, so they depend on a question's
position. Corrected ones come from a stream per row's content, so that a subset or a resumed run has
the same prompts, and no row is ever its own example.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from evalwright import Message
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.rendering import Doc, Fields, render_field
from evalwright.extend import Prompt, TaskError, UnknownName

SAMPLERS = ("default", "first_n")


class FewShotSampler:
    """Chooses `count` rows of a pool for each question.

    The draws are published arithmetic: Python's generator, row by row. Corrected scoring draws in
    the same way from a generator of the row's own.

    avoid_own: skip rows equal to the question.
    """

    def __init__(
        self,
        definition: Definition,
        pool: Any,
        questions: Any,
        count: int,
        options: Options,
    ) -> None:
        self.count = count
        self.pool = pool
        self.seed = options.seed
        self.published = options.published
        self.task = definition.name
        self.sampler = (
            definition.shots.sampler if definition.config.fewshot_config else "default"
        )
        self.avoid_own = (
            not self.published or definition.shots.split == definition.config.test_split
        )
        # Published shots are drawn for the questions that are asked alone, in their order.
        chosen = options.samples.get(self.task) if self.published else None
        row_indices = range(len(questions))
        self._asked_rows = (
            row_indices
            if chosen is None
            else sorted({index for index in chosen if index in row_indices})
        )
        self._drawn: array[int] | None = None
        self._sampled_by_class: list[Sequence[Doc]] | None = None
        if not isinstance(self.sampler, str):
            self._sampled_by_class = self._by_class(questions)
        elif self.sampler not in SAMPLERS:
            raise UnknownName(
                f"sampler of shots (in the task '{self.task}')", self.sampler, SAMPLERS
            )
        elif pool is None or not len(pool):
            raise TaskError(
                f"The task '{self.task}' needs {count} shots but has no rows to draw"
                " them from."
            )
        elif self.published and self.sampler == "default":
            self._drawn = self._stream(questions)

    def of(self, index: int, doc: Doc) -> list[Doc]:
        """The examples for the question at an index."""
        if self._sampled_by_class is not None:
            return list(self._sampled_by_class[self._asked_rows.index(index)])
        if self._drawn is not None:
            first = self._asked_rows.index(index) * self.count
            return [
                self.pool[pool_index]
                for pool_index in self._drawn[first : first + self.count]
            ]
        if self.sampler == "first_n":
            return self._first(doc)
        chance = random.Random(f"{self.seed}:{row_digest(doc)}")
        return [
            self.pool[pool_index]
            for pool_index in self._places(chance, doc, len(self.pool))
        ]

    def _stream(self, questions: Any) -> array[int]:
        """Pool indices of every question's examples, in the order of the questions."""
        chance = random.Random(self.seed)
        drawn = array("q")
        size = len(self.pool)
        for index in self._asked_rows:
            if self.avoid_own and (doc := questions[index]):
                drawn.extend(self._places(chance, doc, size))
            else:
                self._check(size, self.count)
                drawn.extend(chance.sample(range(size), self.count))
        return drawn

    def _places(self, chance: random.Random, doc: Doc, size: int) -> list[int]:
        """Draw one row too many and drop the question; if too few remain, exclude it first."""
        if size > self.count:
            drawn = chance.sample(range(size), self.count + 1)
            without_question = [
                pool_index for pool_index in drawn if self.pool[pool_index] != doc
            ][: self.count]
            if len(without_question) == self.count:
                return without_question
        elif self.published:
            self._check(size, self.count + 1)
        others = [
            pool_index for pool_index in range(size) if self.pool[pool_index] != doc
        ]
        self._check(len(others), self.count)
        return chance.sample(others, self.count)

    def _first(self, doc: Doc) -> list[Doc]:
        others = (row for row in self.pool if not (self.avoid_own and row == doc))
        first_rows = list(islice(others, self.count))
        self._check(len(first_rows), self.count)
        return first_rows

    def _by_class(self, questions: Any) -> list[Sequence[Doc]]:
        make: Any = self.sampler
        sampler = make(list(self.pool or ()), rnd=None)
        sampler.set_rnd(self.seed)
        return [
            sampler.sample(
                n=self.count, eval_doc=questions[index] if self.avoid_own else None
            )
            for index in self._asked_rows
        ]

    def _check(self, available: int, needed: int) -> None:
        if available < needed:
            raise TaskError(
                f"The task '{self.task}' needs {self.count} shots, but there are"
                f" {available} rows to draw {needed} from."
            )


def row_digest(doc: Any) -> str:
    """Hash a row's content, the same in every process."""
    text = json.dumps(doc, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=16
    ).hexdigest()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a prompt. after: what follows it in a text prompt."""

    role: Literal["system", "user", "assistant"]
    content: str
    after: str = ""


def join_with_delimiter(first: str | None, second: str | None, delimiter: str) -> str:
    """Join two texts, with the delimiter if neither is empty and no white space separates them."""
    if not first or not second:
        return first or second or ""
    return f"{first}{delimiter if needs_separator(first, second) else ''}{second}"


def needs_separator(first: str, second: str) -> bool:
    """Whether two texts meet without white space."""
    return bool(first) and not first[-1].isspace() and not second[0].isspace()


class Prompts:
    """Builds the prompt of a row.

    multiple_input: the row's choices are contexts, each a prompt of its own.
    """

    def __init__(
        self,
        definition: Definition,
        fields: Fields,
        shots: FewShotSampler | None,
        options: Options,
        multiple_input: bool,
    ) -> None:
        self.definition = definition
        self.fields = fields
        self.shots = shots
        self.options = options
        self.multiple_input = multiple_input

    def __call__(self, index: int, doc: Doc) -> Prompt | list[Prompt]:
        """The row's prompt, or one for each choice with multiple inputs."""
        config = self.definition.config
        fields = self.fields
        prefix = render_field(doc, config.gen_prefix)
        context_turns = self._before(index, doc)
        choices = fields.choices(doc) if fields.has_choices else None
        if self.multiple_input:
            assert choices is not None
            fields.text(doc)
            return [
                self._assemble(
                    [*context_turns, *self._turns(text, None, None, prefix, "", "")]
                )
                for text in choices
            ]
        question = self._turns(
            fields.text(doc), choices, None, prefix, config.target_delimiter, ""
        )
        return self._assemble([*context_turns, *question])

    def _before(self, index: int, doc: Doc) -> list[Turn]:
        config = self.definition.config
        shots = self.definition.shots
        description = render_field(doc, config.description) or ""
        system = join_with_delimiter(
            self.options.system, description, config.fewshot_delimiter
        )
        turns = [Turn("system", system)] if system else []
        if self.shots is None:
            return turns
        fields = self.fields
        for shot in self.shots.of(index, doc):
            question = fields.text(shot, shots.doc_to_text)
            choices = (
                fields.choices(shot, shots.doc_to_choice)
                if shots.doc_to_choice
                else None
            )
            answer = fields.target(shot, shots.doc_to_target)
            prefix = render_field(shot, shots.gen_prefix)
            if self.multiple_input:
                assert choices is not None
                question = choices[question]
                choices = None
            turns += self._turns(
                question,
                choices,
                answer,
                prefix,
                shots.target_delimiter or "",
                shots.fewshot_delimiter or "",
            )
        return turns

    def _turns(
        self,
        question: Any,
        choices: Any,
        answer: Any,
        prefix: str | None,
        delimiter: str,
        ending: str,
    ) -> list[Turn]:
        """A question, and its answer or the beginning of one."""
        if not isinstance(question, str):
            raise TaskError(
                f"The task '{self.definition.name}': a question must be text, not"
                f" {question!r}."
            )
        has_answer = answer is not None and answer != ""
        between = (has_answer and not prefix) or (
            prefix and needs_separator(question, prefix)
        )
        turns = [Turn("user", question, delimiter if between else "")]
        if has_answer:
            turns.append(
                Turn(
                    "assistant",
                    join_with_delimiter(prefix, self._answer(choices, answer), " "),
                    ending,
                )
            )
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
            f"The task '{self.definition.name}': the answer of a shot must be text, not"
            f" {answer!r}."
        )

    def _assemble(self, turns: Sequence[Turn]) -> Prompt:
        if not self.options.chat:
            return "".join(turn.content + turn.after for turn in turns)
        if not self.options.multiturn:
            turns = _one_turn(turns)
        return tuple(Message(turn.role, turn.content) for turn in turns)


def _one_turn(turns: Sequence[Turn]) -> list[Turn]:
    """Merge all turns but the system message and a begun answer into one user message."""
    system = list(turns[:1]) if turns[0].role == "system" else []
    conversation = list(turns[len(system) :])
    begun_answer = [conversation.pop()] if conversation[-1].role == "assistant" else []
    conversation[-1] = replace(conversation[-1], after="")
    return [
        *system,
        Turn("user", "".join(turn.content + turn.after for turn in conversation)),
        *begun_answer,
    ]
