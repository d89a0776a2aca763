"""The inputs of reward models: a prompt as one text or as a conversation, and the reference."""

from __future__ import annotations

from evalwright.core.errors import ModelError
from evalwright.core.requests import Message, Prompt, Reward


def plain_prompt(prompt: Prompt) -> str:
    """Return a prompt as one text; several messages are labelled with their roles."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) == 1:
        return prompt[0].text
    return "\n\n".join(f"{turn.role}: {turn.text}" for turn in prompt)


def conversation(prompt: Prompt, response: str) -> tuple[Message, ...]:
    """Return the prompt as messages, with the reply as the last turn.

    A reply that the prompt has begun is continued.
    """
    turns = (Message("user", prompt),) if isinstance(prompt, str) else prompt
    if turns and turns[-1].role == "assistant":
        return (*turns[:-1], Message("assistant", turns[-1].text + response))
    return (*turns, Message("assistant", response))


def needed_reference(request: Reward, name: str) -> str:
    """Return the reference.

    Raises:
        ModelError: the request has none.
    """
    if request.reference is None:
        raise ModelError(
            f"'{name}' compares with a reference, and the request has none: set"
            " `reference: true` in the scorer 'reward'."
        )
    return request.reference
