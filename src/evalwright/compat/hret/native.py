"""A model of this package in the place of one of HRET's: how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalwright import Model, Response
from evalwright.extend import Sampling

Parser = Callable[[str], tuple[str, str]]
"""How a reply becomes (reasoning, answer)."""

AS_IT_LIKES = Sampling(temperature=None)


@dataclass(frozen=True)
class Native:
    """A model of this package in the place of one of HRET's.

    sampling: how text is drawn. one_call: whether settings of one call reach it (a limit of tokens,
    log-probabilities); HRET's back ends of web interfaces drop them. chat: whether prompts are
    messages. tells_reason: HRET writes the reply's finish reason into the sample. empty_reward:
    what an empty reply is worth, where that is not asked. by_options: a row with options is
    answered by the likelihood of each, behind the trigger of a chain of thought too, unless
    bare_options. gives_logits: HRET writes log-probabilities of text unasked. read: what a reply is
    taken for. cot, trigger, parser: the chain of thought. lenient: an image that cannot be read is
    a sentence in the prompt, as in HRET; else the sample fails. is_function: it is a user's own
    function, whose rows may bring log-probabilities.
    """

    model: Model
    sampling: Sampling = AS_IT_LIKES
    one_call: bool = True
    tells_reason: bool = False
    chat: bool = False
    system: str = ""
    vision: bool = False
    lenient: bool = False
    is_function: bool = False
    by_options: bool = False
    bare_options: bool = False
    gives_logits: bool = False
    read: Callable[[Response], Response] | None = None
    empty_reward: float | None = None
    cot: bool = False
    trigger: str | None = None
    parser: Parser | None = None


def model_of(part: Native | Model) -> Model:
    """The engine's model."""
    return part.model if isinstance(part, Native) else part
