"""`tool-loop` and `single-draw` with tools: what is sent, what is carried out, what is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import tool
from evalwright.core.errors import ConfigurationError, Failure, RequestFailed
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response
from evalwright.core.samples import Sample
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.runs.records import record_from, record_row
from evalwright.strategies.registry import bind
from evalwright.strategies.sampling import Sampling
from evalwright.tools.task_tools import TaskTools
from evalwright.tools.toolbox import Toolbox, ToolOutput, ToolSource
from strategies.asking import asked, setup, strategy
from support.acting import act, after, interrupted
from support.acting import calls as acting_calls

done: list[str] = []


@tool
def note(text: str) -> str:
    """Write a note."""
    done.append(text)
    return f"noted {text}"


LOOK = ToolDefinition("look")
TOOLS = TaskTools([LOOK], [note])


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    done.clear()


def calls(*named: tuple[str, str], text: str = "", **fields: Any) -> Response:
    return Response(
        text,
        finish_reason="tool_calls",
        tool_calls=tuple(
            ToolCall(name, arguments, f"c{index}")
            for index, (name, arguments) in enumerate(named)
        ),
        **fields,
    )


class Replies:
    """Replies one after another, and the requests that got them."""

    def __init__(self, *replies: Response | str | Exception) -> None:
        self.replies = list(replies)

    def __call__(self, role: str, request: Any) -> Response | str:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def loop(options: dict[str, Any] | None = None, **settings: Any) -> Any:
    return strategy("tool-loop", options, **{"tools": TOOLS, **settings})


def test_calls_are_carried_out_until_a_reply_has_none() -> None:
    first = calls(
        ("note", '{"text": "a"}'),
        ("note", '{"text": 3}'),
        text="<think>hm</think>Let me note.",
    )
    answer, sent = asked(loop(), Replies(first, calls(("nope", "{}")), "Noted."))
    assert done == ["a"]
    assert answer.text == "Noted."
    requests = [request for _, request in sent]
    assert all(
        isinstance(request, Generate) and request.tools == (LOOK, note.definition)
        for request in requests
    )
    turns = answer.prompt
    assert isinstance(turns, tuple)
    assert isinstance(requests[-1], Generate) and requests[-1].prompt == turns
    assert [turn.role for turn in turns] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    assert (turns[1].content, turns[1].reasoning, turns[1].tool_calls) == (
        "Let me note.",
        "hm",
        first.tool_calls,
    )
    assert (turns[2].content, turns[2].tool_call_id, turns[2].is_error) == (
        "noted a",
        "c0",
        False,
    )
    assert (turns[3].tool_call_id, turns[3].is_error) == ("c1", True)
    assert "There is no tool 'nope'" in turns[5].text
    assert answer.strategy["ended"] == "answer" and answer.strategy["steps"] == 3
    assert [(call["step"], call["name"], call["is_error"]) for call in answer.strategy["tool_calls"]] == [
        (0, "note", False), (0, "note", True), (1, "nope", True)
    ]  # fmt: skip
    assert all(call["seconds"] >= 0 for call in answer.strategy["tool_calls"])
    assert answer.tools == ()  # the task's definition lists them


def test_the_last_step_still_calls() -> None:
    again = calls(("note", '{"text": "a"}'))
    answer, sent = asked(loop({"max_steps": 2}), Replies(again, again))
    assert len(sent) == 2
    assert done == ["a"]
    assert answer.strategy["ended"] == "max_steps"
    assert answer.tool_calls == again.tool_calls
    assert answer.outcome == "answered" and answer.text == ""


def test_user_turns_follow_the_loops() -> None:
    one_call = calls(("note", '{"text": "a"}'))
    turns = lambda sample: ("And now?",)  # noqa: E731
    answer, sent = asked(loop(turns=turns), Replies(one_call, "One.", one_call, "Two."))
    assert done == ["a", "a"]
    assert answer.text == "Two."
    assert [turn.text for turn in answer.prompt if isinstance(turn, Message) and turn.role == "user"] == [
        "What is 6 * 7?", "And now?"
    ]  # fmt: skip
    assert [call["step"] for call in answer.strategy["tool_calls"]] == [0, 2]
    assert len(sent) == 4


def test_a_conversation_ends_with_a_reply_that_is_none() -> None:
    turns = lambda sample: ("And now?",)  # noqa: E731
    answer, sent = asked(
        loop(turns=turns), Replies(Response("", finish_reason="length"))
    )
    assert len(sent) == 1 and answer.outcome == "cut"
    answer, sent = asked(
        loop({"max_steps": 1}, turns=turns), Replies(calls(("look", "{}")))
    )
    assert len(sent) == 1 and answer.strategy["ended"] == "max_steps"


def test_a_fault_of_the_model_keeps_what_came_before() -> None:
    empty = RequestFailed(Failure("empty reply", "model", "Nothing came."))
    answer, _ = asked(loop(), Replies(calls(("note", '{"text": "a"}')), empty))
    assert answer.outcome == "empty"
    assert len(answer.prompt) == 3 and len(answer.responses) == 2
    overloaded = RequestFailed(Failure("overloaded", "provider", "Try later."))
    with pytest.raises(RequestFailed):
        asked(loop(), Replies(calls(("note", '{"text": "a"}')), overloaded))


def test_a_call_that_is_demanded_is_demanded_once() -> None:
    sampling = Sampling(
        temperature=0.7, tool_choice="required", parallel_tool_calls=False
    )
    _, sent = asked(
        loop(sampling=sampling), Replies(calls(("note", '{"text": "a"}')), "Done.")
    )
    assert [request.tool_choice for _, request in sent] == ["required", "auto"]  # type: ignore[union-attr]
    assert [request.parallel_tool_calls for _, request in sent] == [False, False]  # type: ignore[union-attr]


def test_scripted_results_run_nothing() -> None:
    results = [
        {"name": "note", "result": "scripted"},
        {"name": "look", "result": "seen"},
    ]
    answer, _ = asked(
        loop({"results": results}),
        Replies(calls(("note", '{"text": "a"}'), ("look", "{}")), "Done."),
    )
    assert done == []
    assert [turn.text for turn in answer.prompt if isinstance(turn, Message) and turn.role == "tool"] == [
        "scripted", "seen"
    ]  # fmt: skip


def test_tools_of_rows_are_recorded_with_the_answer() -> None:
    own = ToolDefinition.of("own", "Its own.", {"type": "object", "properties": {}})
    tools = TaskTools([LOOK], row_definitions=lambda sample: [own])
    for name in ("tool-loop", "single-draw"):
        answer, sent = asked(strategy(name, tools=tools), Replies("Done."))
        assert answer.tools == (LOOK, own)
        assert isinstance(sent[0][1], Generate) and sent[0][1].tools == (LOOK, own)


def test_the_calls_of_a_single_draw_are_its_answer() -> None:
    one = strategy("single-draw", tools=TOOLS)
    answer, sent = asked(one, Replies(calls(("note", '{"text": "a"}'))))
    assert done == [] and len(sent) == 1
    assert answer.tool_calls[0].name == "note"
    assert answer.strategy == {}
    voted = strategy("self-consistency", {"n": 2}, tools=TOOLS)
    answer, sent = asked(voted, lambda role, request: "42")
    assert all(isinstance(request, Generate) and request.tools for _, request in sent)


def test_a_record_comes_back_with_its_calls_and_their_seconds() -> None:
    from evalwright.core.samples import SampleRecord

    answer, _ = asked(loop(), Replies(calls(("note", '{"text": "a"}')), "Done."))
    record = SampleRecord("t", 0, 0, Sample("1"), answer, {})
    row = json.loads(json.dumps(record_row(record)))
    assert record_from(row) == record
    assert "seconds" not in json.dumps(row["strategy"])
    assert row["timing"]["tool_calls"] == [answer.strategy["tool_calls"][0]["seconds"]]


@pytest.mark.parametrize(
    ("options", "settings", "sentence"),
    [
        ({}, {"tools": None}, "needs tools"),
        ({"max_steps": 0}, {}, "'max_steps' of 'tool-loop' is a whole number"),
        ({"max_steps": True}, {}, "max_steps"),
        ({"call_seconds": float("inf")}, {}, "call_seconds"),
        ({"result_chars": 1.5}, {}, "result_chars"),
    ],
)
def test_options_that_cannot_be(options: Any, settings: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        loop(options, **settings)


def test_a_row_with_wrong_results_or_tools_is_said_before_anything_is_sent() -> None:
    wrong_results = loop({"results": [{"name": "note"}]})
    assert "has no `result`" in wrong_results.lacks(Sample("1"))
    twice = TaskTools([LOOK], row_definitions=lambda sample: [LOOK])
    for name in ("tool-loop", "single-draw"):
        made: Any = bind(name, setup(tools=twice))
        assert "Two tools have the name 'look'" in made.lacks(Sample("1"))
        choosy = setup(tools=TOOLS, sampling=Sampling(tool_choice="nobody"))
        made = bind(name, choosy)
        assert "none of" in made.lacks(Sample("1"))


def test_of_one_reply_so_many_calls_are_carried_out() -> None:
    many = calls(*(("note", f'{{"text": "{n}"}}') for n in range(1_000)))
    answer, sent = asked(loop(), Replies(many, "Noted."))
    assert len(done) == 128
    assert not isinstance(answer.prompt, str)
    results = [message for message in answer.prompt if message.role == "tool"]
    assert len(results) == 1_000
    assert results[127].text == "noted 127" and not results[127].is_error
    assert "was not carried out" in results[128].text and results[128].is_error
    assert answer.text == "Noted." and len(sent) == 2


# -- what is stored of calls


def test_a_call_is_carried_out_once(tmp_path: Path) -> None:
    script = after(
        acting_calls(("note", {"text": "a"})),
        acting_calls(("note", {"text": "b"})),
        "c",
    )
    with pytest.raises(RequestFailed):
        act(loop(), interrupted(1, script), tmp_path)
    assert done == ["a"]
    resumed = act(loop(), script, tmp_path)
    assert done == ["a", "b"] and resumed.results == ["noted a", "noted b"]
    assert [call.get("replayed") for call in resumed.calls] == [True, None]
    again = act(loop(), script, tmp_path)
    assert done == ["a", "b"] and again.asked == []
    assert again.answer.prompt == resumed.answer.prompt
    act(loop(), script, tmp_path, draw=1)  # a repeat has effects of its own
    act(loop(), script, tmp_path, task="another")
    assert done == ["a", "b"] * 3


def test_a_tool_with_other_code_is_called_anew(tmp_path: Path) -> None:
    script = after(acting_calls(("note", {"text": "a"})), "b")
    act(loop(), script, tmp_path)

    def other(text: str) -> str:
        """Write a note."""
        done.append(f"other {text}")
        return f"noted {text}"

    changed = TaskTools([LOOK], [tool(name="note")(other)])
    act(loop(tools=changed), script, tmp_path)
    assert done == ["a", "other a"]
    assert note.fingerprint != tool(name="note")(other).fingerprint


def test_a_call_that_was_begun_is_said_to_be_carried_out_again(tmp_path: Path) -> None:
    class Killed(BaseException):
        """Stands for the end of the process."""

    ends: list[bool] = [True]

    @tool
    def risky(text: str) -> str:
        """Do it."""
        done.append(text)
        return "done"

    function = risky.function

    async def ended(text: str) -> str:
        function(text)
        if ends.pop() if ends else False:
            raise Killed
        return "done"

    risky.function, risky.is_async = ended, True  # type: ignore[assignment]
    script = after(acting_calls(("risky", {"text": "a"})), "b")
    made = loop(tools=TaskTools(functions=[risky]))
    with pytest.raises(Killed):
        act(made, script, tmp_path)
    resumed = act(made, script, tmp_path)
    assert done == ["a", "a"] and resumed.calls[0]["again"] is True
    once_more = act(made, script, tmp_path)
    assert done == ["a", "a"] and once_more.calls[0]["again"] is True


class Counter(ToolSource):
    """Counts, as a server whose session has a state of its own does."""

    label = "the counter"
    effects = "session"

    def __init__(self) -> None:
        self.count = 0

    async def start(self) -> list[ToolDefinition]:
        return [ToolDefinition("count")]

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        self.count += 1
        return ToolOutput(str(self.count))


class CounterTools(TaskTools):
    """Tools whose only source is a new counter for each conversation."""

    def toolbox(self, sample: Sample, *_: Any, **bounds: Any) -> Toolbox:
        bounds.pop("sandbox", None)
        return Toolbox([Counter()], **bounds)


def test_a_session_that_is_gone_starts_the_sample_anew(tmp_path: Path) -> None:
    count = acting_calls(("count", {}))
    script = after(count, count, "two")
    made = loop(tools=CounterTools([ToolDefinition("count")]))
    with pytest.raises(RequestFailed):
        act(made, interrupted(1, script), tmp_path)
    resumed = act(made, script, tmp_path)
    assert resumed.results == ["1", "2"]
    [given_up] = resumed.answer.strategy["started_anew"]
    assert "the session with the counter ended after 1 call" in given_up["why"]
    again = act(made, script, tmp_path)
    assert again.asked == [] and again.results == ["1", "2"]
    assert again.answer.strategy["started_anew"] == [given_up]
