"""What a judge sees of a sample and its answer, for the last turn or for every turn."""

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
    """One turn of a conversation.

    Attributes:
        before: tag and text of the earlier turns.
        question: the user's message.
        answer: the model's reply.
        number: the turn's number, from 1.
        last: whether no turn follows.
        images: images in the prompt whose bytes are available.
    """

    before: tuple[tuple[str, str], ...]
    question: str
    answer: str
    number: int = 1
    last: bool = True
    images: tuple[Image, ...] = ()


def list_exchanges(sample: Sample, answer: Answer, turns: str) -> list[Exchange]:
    """List the turns to judge: the last one, or every turn of a conversation."""
    conversation = _read_conversation(answer)
    if not conversation:
        return [
            Exchange(
                (),
                _find_question(sample, answer),
                answer.text,
                images=_collect_images(answer),
            )
        ]
    exchanges: list[Exchange] = []
    before: list[tuple[str, str]] = []
    for number, (question, reply) in enumerate(conversation, 1):
        exchanges.append(
            Exchange(
                tuple(before),
                question,
                reply,
                number,
                number == len(conversation),
                _collect_images(answer),
            )
        )
        before += [
            (f"user-turn-{number}", question),
            (f"assistant-turn-{number}", reply),
        ]
    return exchanges if turns == "each" else exchanges[-1:]


def collect_material(
    sample: Sample, exchange: Exchange, show: Sequence[str]
) -> list[tuple[str, str]]:
    """Collect what precedes the answer, as far as `show` names it.

    This can be the conversation, the question with its options, the passages, and the reference.
    """
    texts: list[tuple[str, str]] = []
    if "question" in show:
        options = [
            f"{letter}. {text}"
            for letter, text in zip(ascii_uppercase, sample.choices, strict=False)
        ]
        texts += [
            *exchange.before,
            ("question", "\n".join([exchange.question, *options])),
        ]
    if "passages" in show:
        texts += [
            (f"passage-{number}", passage.text)
            for number, passage in enumerate(sample.passages, 1)
        ]
    if "reference" in show:
        right_answer = find_reference(sample, exchange)
        if right_answer:
            texts.append(("reference", right_answer))
    return texts


def find_reference(sample: Sample, exchange: Exchange) -> str:
    """Find the right answer of a turn, "" if there is none.

    It is the turn's text in the metadata `references`, else the targets, each a form of the same
    answer.
    """
    by_turn = sample.metadata.get("references")
    if by_turn is not None:
        if not isinstance(by_turn, list | tuple) or not all(
            isinstance(target, str) for target in by_turn
        ):
            raise ScoringError(
                "The metadata 'references' is a list of texts, one for each turn."
            )
        return by_turn[exchange.number - 1] if exchange.number <= len(by_turn) else ""
    if not exchange.last:
        return ""
    return "\nor: ".join(target for target in sample.targets if target.strip())


def _find_question(sample: Sample, answer: Answer) -> str:
    """Return the sample's input, or else the last user message that was sent."""
    if sample.input.strip():
        return sample.input
    if isinstance(answer.prompt, str):
        return answer.prompt
    return next(
        (turn.text for turn in reversed(answer.prompt) if turn.role == "user"), ""
    )


def _collect_images(answer: Answer) -> tuple[Image, ...]:
    turns = () if isinstance(answer.prompt, str) else answer.prompt
    user_turns = [turn for turn in turns if turn.role == "user"]
    return tuple(image for turn in user_turns for image in turn.images if image.data)


def _read_conversation(answer: Answer) -> list[tuple[str, str]]:
    """Pair questions and replies if the responses belong to one conversation; else return [].

    They do if every reply but the last stands in the prompt, before the next question.
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
    questions = turns[::2]
    replies = turns[1::2]
    same = [turn.text for turn in replies] == earlier
    if not same or any(turn.role != "user" for turn in questions):
        return []
    return list(
        zip((turn.text for turn in questions), (*earlier, answer.text), strict=True)
    )
