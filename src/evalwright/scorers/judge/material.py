"""What a judge is shown of a sample and its answer: texts by the name of their tag, for the last
turn or for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from evalwright.core.errors import ScoringError
from evalwright.core.images import Image
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message
from evalwright.core.samples import Answer, Sample


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: what was said before it, what was asked, what was answered. number: of the turn,
    from 1; last: whether none follows. images: that the model was shown, where their bytes are
    here.
    """

    before: tuple[tuple[str, str], ...]
    question: str
    answer: str
    number: int = 1
    last: bool = True
    images: tuple[Image, ...] = ()


def exchanges(sample: Sample, answer: Answer, turns: str) -> list[Exchange]:
    """The turns that are judged: of a conversation each, or the last; of anything else the only
    one.
    """
    said = _conversation(answer)
    if not said:
        return [
            Exchange((), _asked(sample, answer), answer.text, images=_images(answer))
        ]
    found: list[Exchange] = []
    before: list[tuple[str, str]] = []
    for number, (question, reply) in enumerate(said, 1):
        found.append(
            Exchange(
                tuple(before),
                question,
                reply,
                number,
                number == len(said),
                _images(answer),
            )
        )
        before += [
            (f"user-turn-{number}", question),
            (f"assistant-turn-{number}", reply),
        ]
    return found if turns == "each" else found[-1:]


def material(
    sample: Sample, exchange: Exchange, show: Sequence[str]
) -> list[tuple[str, str]]:
    """What stands before the answer: the conversation, the question with its options, the passages,
    the reference.
    """
    found: list[tuple[str, str]] = []
    if "question" in show:
        options = [
            f"{letter}. {text}"
            for letter, text in zip(ascii_uppercase, sample.choices, strict=False)
        ]
        found += [
            *exchange.before,
            ("question", "\n".join([exchange.question, *options])),
        ]
    if "passages" in show:
        found += [
            (f"passage-{number}", one.text)
            for number, one in enumerate(sample.passages, 1)
        ]
    if "reference" in show and (known := reference(sample, exchange)):
        found.append(("reference", known))
    return found


def reference(sample: Sample, exchange: Exchange) -> str:
    """What is right: the targets, each a form of the same answer; of a turn its entry of the
    metadata `references`. "" for none.
    """
    by_turn = sample.metadata.get("references")
    if by_turn is not None:
        if not isinstance(by_turn, list | tuple) or not all(
            isinstance(one, str) for one in by_turn
        ):
            raise ScoringError(
                "The metadata 'references' is a list of texts, one for each turn."
            )
        return by_turn[exchange.number - 1] if exchange.number <= len(by_turn) else ""
    if not exchange.last:
        return ""
    return "\nor: ".join(one for one in sample.targets if one.strip())


def _asked(sample: Sample, answer: Answer) -> str:
    """The question: the sample's input, or else what was sent."""
    if sample.input.strip():
        return sample.input
    if isinstance(answer.prompt, str):
        return answer.prompt
    return next(
        (turn.text for turn in reversed(answer.prompt) if turn.role == "user"), ""
    )


def _images(answer: Answer) -> tuple[Image, ...]:
    turns = () if isinstance(answer.prompt, str) else answer.prompt
    return tuple(
        image
        for turn in turns
        if turn.role == "user"
        for image in turn.images
        if image.data
    )


def _conversation(answer: Answer) -> list[tuple[str, str]]:
    """(question, reply) of each turn, where the responses are the replies of one conversation; else
    nothing.

    They are where every reply but the last stands in the prompt, before the next question.
    """
    earlier = [
        separate_reasoning(response).answer for response in answer.responses[:-1]
    ]
    prompt: tuple[Message, ...] = (
        () if isinstance(answer.prompt, str) else answer.prompt
    )
    turns = prompt[len(prompt) - 2 * len(earlier) - 1 :]
    if not earlier or len(prompt) < 2 * len(earlier) + 1:
        return []
    asked = turns[::2]
    replied = turns[1::2]
    same = [turn.text for turn in replied] == earlier
    if not same or any(turn.role != "user" for turn in asked):
        return []
    return list(
        zip((turn.text for turn in asked), (*earlier, answer.text), strict=True)
    )
