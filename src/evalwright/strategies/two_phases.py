"""Reason first, answer then: two requests, the second with the reasoning of the first.

`reason-then-choose` goes on from the model's own text: the reasoning stops at a tag, and what
follows the tag is the answer. `chain-of-thought` is zero-shot chain of thought (Kojima et al. 2022,
arXiv 2205.11916): a trigger, and a question for the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.outcomes import (
    ANSWERED,
    FILTERED,
    LENGTH,
    REFUSED,
    TOOL_CALL,
    outcome_of,
)
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability, Message, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import TARGET, answer_from
from evalwright.strategies.likelihood import ChooseByLetter, ChooseByLikelihood
from evalwright.strategies.registry import Setup, check_one_of, function_of

REASONING_TOKENS = 1024
_OPENING = "*_#<([{\"'`"


class ReasonThenChoose:
    """Reasons up to `tag`, then answers behind it.

    reasoning_tokens: the budget of the reasoning; None: reasoning and answer share the task's.
    at_limit: what is done where that budget is used up before the tag: "answer" puts the tag there,
    "keep" takes what was written as the answer. then: "generate", or "likelihood" or "letter" of
    the choices.
    """

    def __init__(
        self,
        setup: Setup,
        *,
        tag: str = "Answer:",
        trigger: str = "",
        reasoning_tokens: int | None = REASONING_TOKENS,
        at_limit: str = "answer",
        then: str = "generate",
    ) -> None:
        name = "reason-then-choose"
        _check_one_turn(name, setup)
        _check_tokens(name, reasoning_tokens)
        check_one_of(name, "at_limit", at_limit, ("answer", "keep"))
        check_one_of(name, "then", then, ("generate", "likelihood", "letter"))
        if not isinstance(tag, str) or not tag.strip():
            raise ConfigurationError(
                f"The option 'tag' of '{name}' is the text before the answer, not"
                f" {tag!r}."
            )
        self.render = setup.render
        self.sampling = setup.sampling
        self._choose = {"likelihood": ChooseByLikelihood, "letter": ChooseByLetter}.get(
            then
        )
        self.needs: frozenset[Ability] = frozenset(
            {"generate", "log-likelihood"} if self._choose else {"generate"}
        )
        self._tag = tag.rstrip()
        self._trigger = trigger.rstrip()
        self._keeps = at_limit == "keep"
        self._shared = reasoning_tokens is None
        self._reasoning = replace(
            setup.sampling,
            max_tokens=reasoning_tokens or setup.sampling.max_tokens,
            stop=(self._tag,),
        )
        self._delimiter = setup.delimiter

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer behind the tag; its reasoning is what stands before it."""
        opened = _continued(self.render(sample), self._trigger, self._delimiter)
        first = await ask(TARGET, self._reasoning.request(opened, draw))
        unfinished = first.finish_reason == LENGTH
        if outcome_of(first) in (FILTERED, REFUSED, TOOL_CALL) or (
            unfinished and (self._keeps or not first.text.strip())
        ):
            return answer_from(opened, (first,))
        behind = _continued(opened, _with_tag(first.text, self._tag), "")
        if self._choose is not None:
            choose = self._choose(
                Setup(lambda _: behind, self.sampling, delimiter=self._delimiter)
            )
            found = await choose(sample, ask, draw)
        else:
            second = await ask(
                TARGET,
                replace(self.sampling, max_tokens=self._left(first)).request(
                    behind, draw
                ),
            )
            found = answer_from(behind, (second,))
        thoughts = (first.reasoning, self._trigger, first.text, found.reasoning)
        reasoning = "\n\n".join(part.strip() for part in thoughts if part.strip())
        return replace(found, reasoning=reasoning, responses=(first, *found.responses))

    def _left(self, first: Response) -> int | None:
        """The budget of the answer: where both share one, what the reasoning left of it (all where
        nobody counted).
        """
        whole = self.sampling.max_tokens
        return (
            max(1, whole - first.usage.output_tokens)
            if self._shared and whole is not None
            else whole
        )

    def lacks(self, sample: Sample) -> str:
        """Why a sample cannot be answered, "" where it can."""
        if self._choose is None or sample.choices:
            return ""
        return (
            "the row has no choices, which the strategy chooses from (`sample.choices`)"
        )


class ChainOfThought:
    """A trigger after the question makes the model reason; then it is asked for the answer alone.

    extractor: what asks for it: behind the reasoning in a text, as the next turn of the user in
    messages. None: nothing asks, and the scorer finds the answer in the reasoning. parser: nothing
    asks either; a function (or its name in a loaded file) from the reply to (reasoning, answer).
    """

    needs: frozenset[Ability] = frozenset({"generate"})

    def __init__(
        self,
        setup: Setup,
        *,
        trigger: str = "Let's think step by step.",
        extractor: str | None = "",
        reasoning_tokens: int | None = REASONING_TOKENS,
        parser: Any = None,
    ) -> None:
        _check_one_turn("chain-of-thought", setup)
        _check_tokens("chain-of-thought", reasoning_tokens)
        self.render = setup.render
        self.sampling = setup.sampling
        self._setup = setup
        self._trigger = trigger
        if parser is not None and extractor:
            raise ConfigurationError(
                "'chain-of-thought' takes 'parser' or 'extractor', not both: leave one"
                " out."
            )
        self._parse = (
            None
            if parser is None
            else function_of("chain-of-thought", "parser", parser)
        )
        self._extractor = None if self._parse else extractor
        self._reasoning = replace(
            setup.sampling, max_tokens=reasoning_tokens or setup.sampling.max_tokens
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The second reply; its reasoning is the first."""
        prompt = _triggered(self.render(sample), self._trigger, self._setup.delimiter)
        first = await ask(TARGET, self._reasoning.request(prompt, draw))
        if self._extractor is None or outcome_of(first) != ANSWERED:
            found = answer_from(prompt, (first,))
            return found if self._parse is None else _parsed(found, self._parse)
        if isinstance(prompt, str):
            extractor = self._extractor or "Therefore, the answer is"
            asked: Prompt = f"{prompt}{first.text.rstrip()}\n{extractor}"
        else:
            extractor = (
                self._extractor or "Give the answer alone, without the reasoning."
            )
            asked = self._setup.followed(prompt, first, extractor)
        found = answer_from(
            asked, (first, await ask(TARGET, self.sampling.request(asked, draw)))
        )
        before = separate_reasoning(first)
        parts = (before.reasoning, before.answer, found.reasoning)
        return replace(
            found, reasoning="\n\n".join(part.strip() for part in parts if part.strip())
        )


def _parsed(answer: Answer, parse: Callable[..., Any]) -> Answer:
    """The answer as the parser reads it."""
    reasoning, text = parse(answer.text)
    return replace(
        answer,
        text=str(text),
        reasoning="\n\n".join(filter(None, (answer.reasoning, str(reasoning)))),
    )


def _triggered(prompt: Prompt, trigger: str, delimiter: str) -> Prompt:
    """The prompt with the trigger: behind a text or a prefill, else at the end of the user's last
    turn.
    """
    if isinstance(prompt, str) or prompt[-1].role == "assistant":
        return _continued(prompt, trigger, delimiter)
    last = prompt[-1]
    more = f"\n\n{trigger}"
    content = (
        last.content + more if isinstance(last.content, str) else (*last.content, more)
    )
    return (*prompt[:-1], replace(last, content=content))


def _continued(prompt: Prompt, text: str, delimiter: str) -> Prompt:
    """The prompt with more of the model's own answer. delimiter: between a prompt and the answer's
    beginning.
    """
    if not text:
        return prompt
    if isinstance(prompt, str):
        return prompt + ("" if prompt[-1:].isspace() else delimiter) + text
    last = prompt[-1]
    if last.role != "assistant":
        return (*prompt, Message("assistant", text.lstrip()))
    begun = last.text
    # A chat interface gives the rest of a turn without the space before it.
    gap = "" if begun[-1:].isspace() or text[:1].isspace() else " "
    return (*prompt[:-1], Message("assistant", f"{begun}{gap}{text}"))


def _with_tag(reasoning: str, tag: str) -> str:
    """The reasoning and the tag, which stands on a line of its own where the model did not come to
    it by itself.
    """
    ended = not reasoning or reasoning[-1].isspace() or reasoning[-1] in _OPENING
    return f"{reasoning}{'' if ended else chr(10)}{tag}"


def _check_one_turn(name: str, setup: Setup) -> None:
    if setup.turns is not None:
        raise ConfigurationError(f"'{name}' cannot be used with several user turns.")


def _check_tokens(name: str, tokens: object) -> None:
    if tokens is not None and (
        not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1
    ):
        raise ConfigurationError(
            f"The option 'reasoning_tokens' of '{name}' is a whole number from 1 on, or"
            f" null, not {tokens!r}."
        )
