"""Reason first, then answer: two requests, the second with the reasoning of the first.

`reason-then-choose` continues the model's own text: the reasoning stops at a tag, and the
answer follows the tag. `chain-of-thought` is zero-shot chain of thought (Kojima et al. 2022,
arXiv 2205.11916): a trigger phrase makes the model reason, then a question extracts the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evalwright.core.ask import Ask
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
from evalwright.strategies.likelihood import ChooseByLetter, ChooseByLikelihood
from evalwright.strategies.registry import check_one_of, resolve_function
from evalwright.strategies.sampling import TARGET, answer_from
from evalwright.strategies.task_setup import Setup

REASONING_TOKENS = 1024
_OPENING_CHARS = "*_#<([{\"'`"


class ReasonThenChoose:
    """Lets the model reason up to `tag`, then answer after it.

    Args:
        setup: what the task provides.
        tag: the text before the answer.
        trigger: the beginning of the model's reasoning.
        reasoning_tokens: token budget of the reasoning; None: reasoning and answer share the
            task's.
        at_limit: what happens if that budget ends before the tag: "answer" inserts the tag, "keep"
            takes the text so far as the answer.
        then: how the answer is formed: "generate", or "likelihood" or "letter" of the choices.
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
        """Return the answer after the tag; its reasoning is the text before the tag."""
        opened = _continue_answer(self.render(sample), self._trigger, self._delimiter)
        first = await ask(TARGET, self._reasoning.request(opened, draw))
        unfinished = first.finish_reason == LENGTH
        if outcome_of(first) in (FILTERED, REFUSED, TOOL_CALL) or (
            unfinished and (self._keeps or not first.text.strip())
        ):
            return answer_from(opened, (first,))
        behind = _continue_answer(opened, _append_tag(first.text, self._tag), "")
        if self._choose is not None:
            choose = self._choose(
                Setup(lambda _: behind, self.sampling, delimiter=self._delimiter)
            )
            answer = await choose(sample, ask, draw)
        else:
            second = await ask(
                TARGET,
                replace(self.sampling, max_tokens=self._left(first)).request(
                    behind, draw
                ),
            )
            answer = answer_from(behind, (second,))
        thoughts = (first.reasoning, self._trigger, first.text, answer.reasoning)
        reasoning = "\n\n".join(
            thought.strip() for thought in thoughts if thought.strip()
        )
        return replace(
            answer, reasoning=reasoning, responses=(first, *answer.responses)
        )

    def _left(self, first: Response) -> int | None:
        """Return the token limit of the answer: if both share one, what the reasoning left of it.

        If the reply does not count tokens, that is the whole limit.
        """
        limit = self.sampling.max_tokens
        return (
            max(1, limit - first.usage.output_tokens)
            if self._shared and limit is not None
            else limit
        )

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        if self._choose is None or sample.choices:
            return ""
        return (
            "the row has no choices, which the strategy chooses from (`sample.choices`)"
        )


class ChainOfThought:
    """Makes the model reason by a trigger after the question, then requests only the answer.

    Args:
        setup: what the task provides.
        trigger: the text after the question.
        extractor: the question for the answer: appended to the reasoning in a text, the user's next
            turn in messages. None: there is no second request, and the scorer finds the answer in
            the reasoning.
        reasoning_tokens: token budget of the reasoning; None: the task's.
        parser: a function (or its name in a loaded file) that splits the reply into (reasoning,
            answer), in place of a second request.
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
            else resolve_function("chain-of-thought", "parser", parser)
        )
        self._extractor = None if self._parse else extractor
        self._reasoning = replace(
            setup.sampling, max_tokens=reasoning_tokens or setup.sampling.max_tokens
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the second reply; its reasoning is the first reply."""
        prompt = _append_trigger(
            self.render(sample), self._trigger, self._setup.delimiter
        )
        first = await ask(TARGET, self._reasoning.request(prompt, draw))
        if self._extractor is None or outcome_of(first) != ANSWERED:
            answer = answer_from(prompt, (first,))
            return answer if self._parse is None else _parse_answer(answer, self._parse)
        if isinstance(prompt, str):
            extractor = self._extractor or "Therefore, the answer is"
            second_prompt: Prompt = f"{prompt}{first.text.rstrip()}\n{extractor}"
        else:
            extractor = (
                self._extractor or "Give the answer alone, without the reasoning."
            )
            second_prompt = self._setup.followed(prompt, first, extractor)
        answer = answer_from(
            second_prompt,
            (first, await ask(TARGET, self.sampling.request(second_prompt, draw))),
        )
        before = separate_reasoning(first)
        thoughts = (before.reasoning, before.answer, answer.reasoning)
        return replace(
            answer,
            reasoning="\n\n".join(
                thought.strip() for thought in thoughts if thought.strip()
            ),
        )


def _parse_answer(answer: Answer, parse: Callable[..., Any]) -> Answer:
    """Split the answer's text into reasoning and answer with the parser."""
    reasoning, text = parse(answer.text)
    return replace(
        answer,
        text=str(text),
        reasoning="\n\n".join(filter(None, (answer.reasoning, str(reasoning)))),
    )


def _append_trigger(prompt: Prompt, trigger: str, delimiter: str) -> Prompt:
    """Append the trigger to the prompt: to a text or a prefill, else to the last user turn."""
    if isinstance(prompt, str) or prompt[-1].role == "assistant":
        return _continue_answer(prompt, trigger, delimiter)
    last = prompt[-1]
    suffix = f"\n\n{trigger}"
    content = (
        last.content + suffix
        if isinstance(last.content, str)
        else (*last.content, suffix)
    )
    return (*prompt[:-1], replace(last, content=content))


def _continue_answer(prompt: Prompt, text: str, delimiter: str) -> Prompt:
    """Append more of the model's own answer to the prompt.

    `delimiter` stands between a prompt and the beginning of the answer.
    """
    if not text:
        return prompt
    if isinstance(prompt, str):
        return prompt + ("" if prompt[-1:].isspace() else delimiter) + text
    last = prompt[-1]
    if last.role != "assistant":
        return (*prompt, Message("assistant", text.lstrip()))
    prefill = last.text
    # A chat interface returns the continuation of a turn without its leading space.
    gap = "" if prefill[-1:].isspace() or text[:1].isspace() else " "
    return (*prompt[:-1], Message("assistant", f"{prefill}{gap}{text}"))


def _append_tag(reasoning: str, tag: str) -> str:
    """Append the tag to the reasoning, on a line of its own unless the model had begun one."""
    ended = not reasoning or reasoning[-1].isspace() or reasoning[-1] in _OPENING_CHARS
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
