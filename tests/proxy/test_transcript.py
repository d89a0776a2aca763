"""Conversations that are rebuilt from requests: chains, helpers, rewritten histories."""

from __future__ import annotations

from evalwright.core.requests import Embed, Generate, Message, RollingLogLikelihood
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.proxy.transcript import Transcript

SYSTEM = Message("system", "You act.")
QUESTION = Message("user", "Fix it.")


def reply(text: str) -> Message:
    return Message("assistant", text)


def user(text: str) -> Message:
    return Message("user", text)


def add(transcript: Transcript, text: str, *turns: Message) -> tuple[str, ...]:
    """Add a reply; return the texts of what was new."""
    _, news = transcript.add(Generate(turns), Response(text))
    return tuple(turn.text for turn in news)


def test_a_history_that_grows_is_one_conversation() -> None:
    transcript = Transcript()
    assert add(transcript, "a", SYSTEM, QUESTION) == ("You act.", "Fix it.", "a")
    assert add(transcript, "b", SYSTEM, QUESTION, reply("a"), user("1")) == ("1", "b")
    whole = (SYSTEM, QUESTION, reply("a"), user("1"), reply("b"), user("2"))
    assert add(transcript, "c", *whole) == ("2", "c")
    (talk,) = transcript.conversations
    assert talk.turns == whole
    assert talk.replies == [0, 1, 2]
    assert talk.n_rewritten == 0


def test_the_longest_conversation_is_the_main_one_and_helpers_are_apart() -> None:
    transcript = Transcript()
    title = user("Name this conversation.")
    add(transcript, "A title", title)
    add(transcript, "a", SYSTEM, QUESTION)
    add(transcript, "helped", user("Look it up."))
    add(transcript, "b", SYSTEM, QUESTION, reply("a"), user("1"))
    main = transcript.main
    assert main is not None
    assert main.replies == [1, 3]
    assert [talk.replies for talk in transcript.conversations] == [[0], [1, 3], [2]]


def test_equal_openings_are_told_apart_by_the_reply_that_is_sent_back() -> None:
    """Two attempts at once, as from `n: 2` or two threads."""
    transcript = Transcript()
    add(transcript, "a", SYSTEM, QUESTION)
    add(transcript, "b", SYSTEM, QUESTION)
    add(transcript, "c", SYSTEM, QUESTION, reply("a"), user("1"))
    add(transcript, "d", SYSTEM, QUESTION, reply("b"), user("1"))
    assert [talk.replies for talk in transcript.conversations] == [[0, 2], [1, 3]]


def test_a_reply_that_the_program_changed_is_still_its_own() -> None:
    transcript = Transcript()
    add(transcript, "Action: ls\nObservation: made up", SYSTEM, QUESTION)
    add(transcript, "b", SYSTEM, QUESTION, reply("Action: ls"), user("a.txt"))
    (talk,) = transcript.conversations
    assert talk.turns[2].text == "Action: ls"


def test_a_rewritten_history_goes_on_and_nothing_of_it_is_lost() -> None:
    transcript = Transcript()
    long = user("x" * 100)
    add(transcript, "a", SYSTEM, QUESTION)
    add(transcript, "b", SYSTEM, QUESTION, reply("a"), long)
    cut = (SYSTEM, QUESTION, reply("a"), user("[cut]"), reply("b"), user("2"))
    assert add(transcript, "c", *cut) == ("2", "c")
    assert add(transcript, "d", *cut, reply("c"), user("3")) == ("3", "d")
    (talk,) = transcript.conversations
    assert talk.turns == (
        SYSTEM,
        QUESTION,
        reply("a"),
        long,
        reply("b"),
        user("2"),
        reply("c"),
        user("3"),
    )
    assert talk.n_rewritten == 1


def test_a_history_that_is_only_a_summary_begins_a_conversation() -> None:
    transcript = Transcript()
    add(transcript, "a", SYSTEM, QUESTION)
    add(transcript, "b", SYSTEM, user("Summary: nothing was done. Go on."))
    assert [talk.replies for talk in transcript.conversations] == [[0], [1]]


def test_replies_without_text_are_told_apart_by_their_calls() -> None:
    transcript = Transcript()
    calls = [ToolCall("bash", f'{{"command": "{name}"}}', "c") for name in "ab"]
    for call in calls:
        response = Response(tool_calls=(call,), finish_reason="tool_calls")
        transcript.add(Generate((SYSTEM, QUESTION)), response)
    for call in reversed(calls):
        turn = Message("assistant", "", tool_calls=(call,))
        result = Message("tool", "done", tool_call_id="c")
        add(transcript, "end", SYSTEM, QUESTION, turn, result)
    assert [talk.replies for talk in transcript.conversations] == [[0, 3], [1, 2]]


def test_going_back_to_an_earlier_state_is_another_conversation() -> None:
    transcript = Transcript()
    add(transcript, "a", SYSTEM, QUESTION)
    add(transcript, "b", SYSTEM, QUESTION, reply("a"), user("1"))
    add(transcript, "c", SYSTEM, QUESTION, reply("a"), user("instead"))
    assert [talk.replies for talk in transcript.conversations] == [[0, 1], [2]]
    assert transcript.conversations[1].turns[-1].text == "instead"


def test_texts_that_are_continued_are_one_conversation() -> None:
    transcript = Transcript()
    transcript.add(Generate("Q: 1\nA:"), Response(" one"))
    talk, news = transcript.add(Generate("Q: 1\nA: one\nQ: 2\nA:"), Response(" two"))
    assert talk is not None
    assert [turn.text for turn in news] == ["\nQ: 2\nA:", " two"]
    transcript.add(Generate("Something else"), Response("x"))
    assert [talk.replies for talk in transcript.conversations] == [[0, 1], [2]]
    assert transcript.conversations[0].prompt == "Q: 1\nA: one\nQ: 2\nA:"


def test_requests_that_are_not_for_text_belong_to_none() -> None:
    transcript = Transcript()
    assert transcript.add(RollingLogLikelihood("a"), Response()) == (None, ())
    assert transcript.add(Embed("a"), Response()) == (None, ())
    add(transcript, "a", SYSTEM, QUESTION)
    assert transcript.conversations[0].replies == [2]


def test_the_work_grows_with_the_text_and_not_with_its_square() -> None:
    """Thousands of helpers with one opening, and a long conversation among them."""
    transcript = Transcript()
    for index in range(3_000):
        add(transcript, f"reply {index}", SYSTEM, user(f"question {index}"))
    turns: tuple[Message, ...] = (SYSTEM, QUESTION)
    for index in range(300):
        add(transcript, f"step {index}", *turns)
        turns = (*turns, reply(f"step {index}"), user(f"result {index}"))
    assert transcript.main is not None
    assert len(transcript.main.replies) == 300
    assert max(map(len, transcript._by_history.values())) == 1
