"""Conversations, rebuilt from the requests of a program that nobody looked into.

A program sends its whole history with every request. So a request that begins with all turns of an
earlier one continues that one's conversation; likewise one whose last reply is that of the earlier
one, if the program has rewritten what came before (it cut long results, or summed them up). What
continues nothing begins a conversation of its own: a helper's, or another attempt's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalwright.core.conversation import reply_turn
from evalwright.core.requests import Generate, Message, Prompt, Request
from evalwright.core.responses import Response
from evalwright.core.tools import ToolDefinition

_Opening = int
"""A digest of the first turns of a request."""


@dataclass(slots=True, eq=False)
class ProgramConversation:
    """A conversation that a program held.

    Attributes:
        turns: all turns up to the last request, also those that the program dropped from it.
        replies: positions of its replies among all replies.
        n_rewritten: how often the program rewrote earlier turns.
        text: the last prompt, where the program sends texts instead of turns.
        tools: what its last request offered.
    """

    turns: tuple[Message, ...]
    replies: list[int] = field(default_factory=list)
    n_rewritten: int = 0
    text: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    last_prompt: tuple[Message, ...] = ()
    last_response: Response = field(default_factory=Response)

    @property
    def prompt(self) -> Prompt:
        """What a record has as the prompt."""
        return self.turns if self.text is None else self.text


class Transcript:
    """The conversations of a program, as far as they are known."""

    def __init__(self) -> None:
        self.conversations: list[ProgramConversation] = []
        self.n_replies = 0
        self._by_history: dict[_Opening, list[ProgramConversation]] = {}
        self._by_reply: dict[tuple[int, int], list[ProgramConversation]] = {}

    @property
    def main(self) -> ProgramConversation | None:
        """The conversation with the most replies, the first of these; None if there is none."""
        return max(self.conversations, key=lambda talk: len(talk.replies), default=None)

    def add(
        self, request: Request, response: Response
    ) -> tuple[ProgramConversation | None, tuple[Message, ...]]:
        """Add a reply.

        Args:
            request: the request.
            response: the reply to it.

        Returns:
            The conversation that it belongs to, and the turns that are new in it, with the reply;
            no conversation for a request that is not for text.
        """
        position = self.n_replies
        self.n_replies += 1
        if not isinstance(request, Generate):
            return None, ()
        if isinstance(request.prompt, str):
            talk, news = self._add_text(request.prompt)
        else:
            talk, news = self._add_turns(request.prompt)
        talk.replies.append(position)
        talk.tools = request.tools
        talk.last_response = response
        self._remember(talk)
        return talk, (*news, reply_turn(response))

    def _add_text(self, text: str) -> tuple[ProgramConversation, tuple[Message, ...]]:
        for talk in reversed(self.conversations):
            if talk.text is not None and text.startswith(
                talk.text + talk.last_response.text
            ):
                news = text[len(talk.text) + len(talk.last_response.text) :]
                self._forget(talk)
                talk.text = text
                return talk, (Message("user", news),) if news else ()
        turns = (Message("user", text),)
        return self._begin(ProgramConversation((), text=text)), turns

    def _add_turns(
        self, prompt: tuple[Message, ...]
    ) -> tuple[ProgramConversation, tuple[Message, ...]]:
        continued = self._continued(prompt)
        if continued is not None:
            news = prompt[len(continued.last_prompt) :]
            self._forget(continued)
            continued.turns = (*continued.turns, *news)
            continued.last_prompt = prompt
            return continued, _without_first_reply(news)
        rewritten = self._rewritten(prompt)
        if rewritten is not None:
            news = prompt[_last_reply(prompt) + 1 :]
            self._forget(rewritten)
            reply = reply_turn(rewritten.last_response)
            rewritten.turns = (*rewritten.turns, reply, *news)
            rewritten.last_prompt = prompt
            rewritten.n_rewritten += 1
            return rewritten, news
        talk = self._begin(ProgramConversation(prompt, last_prompt=prompt))
        return talk, prompt

    def _begin(self, talk: ProgramConversation) -> ProgramConversation:
        self.conversations.append(talk)
        return talk

    def _continued(self, prompt: tuple[Message, ...]) -> ProgramConversation | None:
        """Return the conversation all of whose turns this prompt begins with."""
        state = 0
        longest: list[ProgramConversation] = []
        for length, turn in enumerate(prompt[:-1], start=1):
            state = hash((state, turn))
            talks = [
                talk
                for talk in self._by_history.get(state, ())
                if talk.last_prompt == prompt[:length]
            ]
            longest = talks or longest
        for talk in reversed(longest):
            if _is_reply(prompt[len(talk.last_prompt)], talk.last_response):
                return talk
        return longest[-1] if longest else None

    def _rewritten(self, prompt: tuple[Message, ...]) -> ProgramConversation | None:
        """Return the conversation whose last reply is the last in this prompt."""
        index = _last_reply(prompt)
        if index < 1 or not (key := _reply_key(prompt[index])):
            return None
        talks = self._by_reply.get((hash(prompt[0]), key), [])
        return talks[-1] if talks else None

    def _remember(self, talk: ProgramConversation) -> None:
        if talk.text is not None:
            return
        state = 0
        for turn in talk.last_prompt:
            state = hash((state, turn))
        self._by_history.setdefault(state, []).append(talk)
        if key := _reply_key(reply_turn(talk.last_response)):
            opening = hash(talk.last_prompt[0])
            self._by_reply.setdefault((opening, key), []).append(talk)

    def _forget(self, talk: ProgramConversation) -> None:
        """Take a conversation that goes on out of the tables of ends."""
        if talk.text is not None:
            return
        state = 0
        for turn in talk.last_prompt:
            state = hash((state, turn))
        self._by_history[state].remove(talk)
        if key := _reply_key(reply_turn(talk.last_response)):
            self._by_reply[hash(talk.last_prompt[0]), key].remove(talk)


def _last_reply(prompt: Sequence[Message]) -> int:
    """Return the index of the last turn of the model, -1 if there is none."""
    for index in range(len(prompt) - 1, -1, -1):
        if prompt[index].role == "assistant":
            return index
    return -1


def _without_first_reply(turns: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return turns without the reply that they begin with: it was reported when it came."""
    return turns[1:] if turns and turns[0].role == "assistant" else turns


def _reply_key(turn: Message) -> int:
    """Return what a reply is recognised by when a program sends it back; 0 for nothing."""
    text = turn.text.strip()
    calls = tuple((call.name, call.arguments) for call in turn.tool_calls)
    return hash((text, calls)) if text or calls else 0


def _is_reply(turn: Message, response: Response) -> bool:
    key = _reply_key(turn)
    return turn.role == "assistant" and key == _reply_key(reply_turn(response))
