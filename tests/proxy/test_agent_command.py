"""`agent-command`: programs in a sandbox ask the model under test; what is recorded, replayed,
limited and refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright import ModelSpec, Run, evaluate, load_task
from evalwright.core.errors import EvalwrightError
from evalwright.core.requests import Message, prompt_payload
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.proxy.program_limits import ProgramMeter
from evalwright.runs.live import LiveFile
from evalwright.runs.transcripts import read_transcript
from evalwright.sandboxes.backends import refusal_of, started
from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
from evalwright.sandboxes.protocol import SandboxSettings, Snapshot
from strategies.asking import asked, strategy
from support.agent_programs import MESSAGES_AGENT, URLLIB_AGENT, steps
from support.patience import within_growing_seconds
from support.scripted_chat import ScriptedChat, scripted_chat

needs_jail = pytest.mark.skipif(
    bool(refusal_of(SandboxSettings())), reason="this system has no jail"
)
pytestmark = needs_jail
ASK = """
import sys
sys.path[:0] = ["/agent"]
from agent import ask

def say(text, **fields):
    return ask([{"role": "user", "content": text}], **fields)["content"]
"""
"""Before a program of a test that asks by itself."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-provider-itself")


def task(
    folder: Path,
    program: str = URLLIB_AGENT,
    run: str = "python3 /agent/program.py",
    rows: Sequence[Mapping[str, Any]] = ({"id": "a", "q": "Write a file."},),
    **keys: Any,
) -> Any:
    """A task whose agent is a program."""
    strategy = keys.pop("strategy", {})
    definition = {
        "task": "acting",
        "dataset": {"rows": [dict(row) for row in rows]},
        "prompt": {"user": "{{ q }}"},
        "sandbox": "jail",
        "files": {"/agent/agent.py": URLLIB_AGENT, "/agent/program.py": program},
        "strategy": {"name": "agent-command", "run": run, **strategy},
        "scorers": ["exact-match"],
        **keys,
    }
    file = folder / "acting.yaml"
    file.write_text(yaml.safe_dump(definition), encoding="utf-8")
    return load_task(str(file))


def run_of(
    acting: Any, server: ScriptedChat, folder: Path, name: str = "run", **settings: Any
) -> Run:
    (run,) = evaluate(
        acting,
        ModelSpec("openai/tested", {"base_url": server.url}),
        name=name,
        out=folder / "runs",
        home=folder / "home",
        **settings,
    )
    return run


def record_of(run: Run) -> SampleRecord:
    (record,) = run.samples()
    return record


def answered(folder: Path, server: ScriptedChat, *args: Any, **keys: Any) -> Any:
    """The answer of a task's only sample."""
    record = record_of(run_of(task(folder, *args, **keys), server, folder))
    assert record.answer is not None, record.failure
    return record.answer


def rows(run: Run) -> list[Any]:
    """The lines of a run without what differs from one run to the next."""
    lines = (run.folder / "samples.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        record.pop("timing", None)
        record["scores"].pop("effort", None)  # it has the program's seconds
        record.get("strategy", {}).pop("seconds", None)
        record.get("strategy", {}).get("sandbox", {}).pop("snapshot", None)
    return records


def test_a_program_acts_and_its_conversation_is_rebuilt(tmp_path: Path) -> None:
    with scripted_chat(steps("echo hi > a; cat a", "ls")) as server:
        answer = answered(tmp_path, server)
    assert answer.text == "Done."
    assert [turn.role for turn in answer.prompt] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert answer.prompt[1].text == "Write a file."
    assert answer.prompt[3].text == "0\nhi\n"
    assert [tool.name for tool in answer.tools] == ["bash"]
    assert [response.text for response in answer.responses] == ["", "", "Done."]
    strategy = answer.strategy
    assert strategy["name"] == "agent-command"
    assert strategy["steps"] == 3
    assert strategy["ended"] == "exit"
    assert strategy["exit_code"] == 0
    assert strategy["stdout"] == "Done.\n"
    assert [call["name"] for call in strategy["tool_calls"]] == ["bash", "bash"]
    assert strategy["sandbox"]["snapshot"]["backend"] == "jail"
    assert strategy["attempts"] == 1
    assert "started_anew" not in strategy
    assert "conversations" not in strategy
    assert [body["model"] for body in server.bodies] == ["tested"] * 3


def test_nothing_of_the_host_is_in_the_programs_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET_OF_THE_HOST", "x")
    program = ASK + "import os, json\nsay('x')\nprint(json.dumps(dict(os.environ)))"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program)
    environment = json.loads(answer.text)
    assert "SOME_SECRET_OF_THE_HOST" not in environment
    assert "sk-of-the-provider-itself" not in answer.text
    assert environment["OPENAI_BASE_URL"].startswith("http://127.0.0.1:")
    assert environment["TASK_PROMPT"] == "Write a file."
    assert environment["PYTHONHASHSEED"] == "0"


def test_anthropics_messages_and_the_prompt_as_input(tmp_path: Path) -> None:
    with scripted_chat(lambda messages: f"reply {len(messages)}") as server:
        answer = answered(tmp_path, server, MESSAGES_AGENT)
    assert answer.text == "reply 3"
    assert [turn.text for turn in answer.prompt] == ["Write a file.", "reply 1", "On."]


def test_equal_requests_are_draws_and_are_replayed_in_order(tmp_path: Path) -> None:
    program = ASK + "print([say('x', temperature=1) for _ in range(3)])"
    replies = iter("abcdefghij")
    with scripted_chat(lambda messages: next(replies)) as server:
        acting = task(tmp_path, program)
        first = run_of(acting, server, tmp_path, "first")
        second = run_of(acting, server, tmp_path, "second")
        assert len(server.bodies) == 3
    assert record_of(first).answer.text == "['a', 'b', 'c']"  # type: ignore[union-attr]
    assert rows(first) == rows(second)


def test_samples_and_repeats_share_no_replies(tmp_path: Path) -> None:
    program = ASK + "print(say('x', temperature=1))"
    replies = iter("abcdefghij")
    samples = [{"id": "1", "q": "same"}, {"id": "2", "q": "same"}]
    with scripted_chat(lambda messages: next(replies)) as server:
        acting = task(tmp_path, program, rows=samples, answer={"draws": 2})
        run = run_of(acting, server, tmp_path)
        texts = sorted(record.answer.text for record in run.samples() if record.answer)
    assert texts == ["a", "b", "c", "d"]


def test_whoever_watches_is_told_the_number_of_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []
    monkeypatch.setattr(LiveFile, "add", lambda file, event: events.append(event))
    with scripted_chat(steps("echo hi")) as server:
        answer = answered(tmp_path, server)
    assert {event["attempt"] for event in events} == {answer.strategy["attempts"]}


def test_a_program_that_differs_says_from_which_request_on(tmp_path: Path) -> None:
    program = ASK + (
        "say('first')\nsay(open('/agent/varies').read())\nprint(say('last'))"
    )
    samples = [{"id": "a", "q": "x"}]
    with scripted_chat(lambda messages: "ok") as server:
        for content, n_paid in (("one", 3), ("two", 4), ("two", 4)):
            acting = task(tmp_path, program, rows=samples)
            definition = yaml.safe_load((tmp_path / "acting.yaml").read_text())
            definition["files"]["/agent/varies"] = content
            (tmp_path / "acting.yaml").write_text(yaml.safe_dump(definition))
            acting = load_task(str(tmp_path / "acting.yaml"))
            run = run_of(acting, server, tmp_path, f"{content}-{len(server.bodies)}")
            strategy = record_of(run).answer.strategy  # type: ignore[union-attr]
            assert len(server.bodies) == n_paid
            if content == "one":
                assert "started_anew" not in strategy
            elif len(server.bodies) == 4 and strategy.get("started_anew"):
                assert strategy["attempts"] == 2
                (anew,) = strategy["started_anew"]
                assert anew["after_calls"] == 1
                assert "from its request 2 on" in anew["why"]
    assert strategy["attempts"] == 2
    assert "started_anew" not in strategy


@pytest.mark.parametrize("limits", [{"messages": 2}, {"tokens": 40}])
def test_a_limit_ends_the_program_and_is_the_models(
    tmp_path: Path, limits: Mapping[str, Any]
) -> None:
    with scripted_chat(steps(*["echo on >> log"] * 9)) as server:
        answer = answered(tmp_path, server, limits=dict(limits))
        assert len(server.bodies) == 2
    assert answer.strategy["ended"] == next(iter(limits))
    assert answer.strategy["steps"] == 2
    assert "HTTP Error 403" in answer.strategy["stderr"]
    assert answer.strategy["sandbox"]["snapshot"]


def test_a_program_that_does_not_hear_of_the_limit_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ASK + (
        "import time, urllib.error\nprint('begun')\n"
        "while True:\n"
        "    try:\n        say('x', temperature=1)\n"
        "    except urllib.error.HTTPError as error:\n"
        "        print(error.read().decode())\n        time.sleep(0.1)\n"
    )

    def check(seconds: float) -> None:
        grace = "evalwright.proxy.agent_command.LIMIT_GRACE_SECONDS"
        monkeypatch.setattr(grace, seconds)
        folder = tmp_path / f"{seconds:g}"
        folder.mkdir()
        with scripted_chat(lambda messages: "ok") as server:
            answer = answered(folder, server, program, limits={"messages": 2})
        assert answer.strategy["ended"] == "messages"
        assert answer.text.startswith("begun")
        assert "The limit of 2 messages of this task is reached" in answer.text
        assert answer.strategy["exit_code"] == 128 + 15

    within_growing_seconds(check, (1.0, 20.0, 120.0))


def test_time_of_the_program_itself_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first reply, nearly all of its time has passed."""
    close = ProgramMeter.close

    def close_late(meter: ProgramMeter, response: Response | None) -> None:
        meter._program_seconds += 299.9
        close(meter, response)

    monkeypatch.setattr(ProgramMeter, "close", close_late)
    program = ASK + "import time\nsay('x')\ntime.sleep(600)"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, limits={"seconds": 300})
    assert answer.strategy["ended"] == "seconds"
    assert answer.strategy["exit_code"] == 128 + 15
    assert len(answer.responses) == 1


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        ("no-such-agent --task x", "cannot be started (exit code 127)"),
        ("echo wrong key >&2; exit 3", "ended with the exit code 3 and never asked"),
        ("true", "ended with the exit code 0 and never asked the model"),
    ],
)
def test_a_program_that_never_asks_is_missing(
    tmp_path: Path, run: str, sentence: str
) -> None:
    with scripted_chat(lambda messages: "ok") as server:
        record = record_of(run_of(task(tmp_path, run=run), server, tmp_path))
    assert record.failure is not None
    assert record.failure.party == "task"
    assert sentence in record.failure.message


def test_a_request_that_cannot_be_carried_is_said(tmp_path: Path) -> None:
    program = ASK + "say('x', logit_bias={'5': 3})"
    with scripted_chat(lambda messages: "ok") as server:
        record = record_of(run_of(task(tmp_path, program), server, tmp_path))
    assert record.failure is not None
    assert "The field 'logit_bias' cannot be carried" in record.failure.message


def test_a_program_that_fails_after_it_asked_is_scored(tmp_path: Path) -> None:
    program = ASK + "print(say('x'), flush=True)\nraise SystemExit(3)"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program)
    assert answer.text == "ok"
    assert answer.strategy["exit_code"] == 3
    assert answer.strategy["ended"] == "exit"


def test_a_request_that_fails_for_good_is_missing(tmp_path: Path) -> None:
    """The server is gone: no fault of the model."""
    program = ASK + "print(say('x'))"
    with scripted_chat(lambda messages: "ok") as server:
        gone = ScriptedChat(server.url)
    acting = task(tmp_path, program)
    spec = ModelSpec("openai/tested", {"base_url": gone.url, "max_attempts": 1})
    (run,) = evaluate(
        acting, spec, name="gone", out=tmp_path / "runs", home=tmp_path / "home"
    )
    record = record_of(run)
    assert record.failure is not None
    assert record.failure.kind == "connection failed"


def test_the_names_of_the_model_can_be_a_list(tmp_path: Path) -> None:
    program = ASK + (
        "import urllib.error\n"
        "print(say('x', model='gpt-4o'))\n"
        "try:\n    say('y', model='gpt-4')\n"
        "except urllib.error.HTTPError as error:\n    print(error.code, error.read().decode())"
    )
    names = {"models": ["gpt-4o", "helper"]}
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, strategy=names)
    assert answer.text.startswith("ok\n404")
    assert "Did you mean 'gpt-4o'?" in answer.text


def test_the_token_opens_this_sample_alone(tmp_path: Path) -> None:
    program = ASK + (
        "import os, urllib.error\n"
        "print(say('x'))\n"
        "base = os.environ['OPENAI_BASE_URL']\n"
        "key = os.environ['OPENAI_API_KEY']\n"
        "for address, token in ((base.replace('/v1', '/t/other/v1'), key), (base, 'sk-x')):\n"
        "    os.environ['OPENAI_BASE_URL'] = address\n"
        "    os.environ['OPENAI_API_KEY'] = token\n"
        "    try:\n        print(say('y'))\n"
        "    except urllib.error.HTTPError as error:\n        print(error.code)\n"
    )
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program)
        assert len(server.bodies) == 1
    assert answer.text == "ok\n403\n401"


def test_conversations_beside_the_main_one_are_recorded(tmp_path: Path) -> None:
    program = ASK + (
        "from agent import solve\n"
        "print(say('Name this.'))\nprint(solve('Do it.'))\nprint(say('Check it.'))"
    )
    with scripted_chat(steps("echo 1", "echo 2")) as server:
        answer = answered(tmp_path, server, program)
    assert [turn.role for turn in answer.prompt][:2] == ["system", "user"]
    assert len(answer.responses) == 5
    assert answer.responses[-1].text == "Done."
    beside = answer.strategy["conversations"]
    assert [talk["turns"][0][1] for talk in beside] == ["Name this.", "Check it."]
    assert [talk["responses"] for talk in beside] == [[0], [1]]
    assert [call["step"] for call in answer.strategy["tool_calls"]] == [2, 3]
    shown = read_transcript(
        {
            "prompt": prompt_payload(answer.prompt, recorded=True),
            "responses": [response.as_dict() for response in answer.responses],
            "strategy": answer.strategy,
        }
    )
    assert shown is not None
    commands = [[use.arguments for use in step.uses] for step in shown.steps]
    assert ["echo 1" in str(commands[0]), "echo 2" in str(commands[1])] == [True, True]
    assert (len(shown.steps), shown.steps[-1].text) == (3, "Done.")


@pytest.mark.parametrize("path", ["/work/answer.txt", "/work/none.txt"])
def test_the_answer_can_be_a_file(tmp_path: Path, path: str) -> None:
    program = ASK + "open('/work/answer.txt', 'w').write(say('x') + '!')\nprint('log')"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, strategy={"answer": path})
    assert answer.text == ("ok!" if path == "/work/answer.txt" else "")


def test_a_prompt_of_any_size_is_in_a_file(tmp_path: Path) -> None:
    program = ASK + (
        "import os\nprint(len(open(os.environ['TASK_PROMPT_FILE']).read()),"
        " 'TASK_PROMPT' in os.environ, say('x'))"
    )
    samples = [{"id": "a", "q": "x" * 300_000}]
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, rows=samples)
    assert answer.text == "300000 False ok"


def test_many_connections_and_large_bodies_leave_the_others_alone(
    tmp_path: Path,
) -> None:
    program = ASK + (
        "import os, socket\nfrom urllib.parse import urlsplit\n"
        "address = urlsplit(os.environ['OPENAI_BASE_URL'])\n"
        "place = (address.hostname, address.port)\n"
        "head = ('POST /v1/chat/completions HTTP/1.1\\r\\nHost: ' + address.netloc +"
        " '\\r\\nAuthorization: Bearer ' + os.environ['OPENAI_API_KEY'] +"
        " '\\r\\nContent-Type: application/json\\r\\nContent-Length: 49000000\\r\\n\\r\\n')\n"
        "held = []\n"
        "for _ in range(100):\n"
        "    client = socket.create_connection(place)\n"
        "    client.sendall(head.encode())\n"
        "    held.append(client)\n"
        "refused = 0\n"
        "for client in held[3:]:\n"
        "    try:\n        refused += not client.recv(9) or 1\n"
        "    except ConnectionResetError:\n        refused += 1\n"
        "for client in held:\n    client.close()\n"
        "print(refused, say('x'))"
    )
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program)
    assert answer.text == "97 ok"


def test_the_command_is_a_template_over_the_row(tmp_path: Path) -> None:
    samples = [{"id": "a", "q": "x", "flag": "--fast"}]
    program = ASK + "import sys\nprint(sys.argv[1:], say('x'))"
    run = "python3 /agent/program.py {{ flag }}"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, run=run, rows=samples)
    assert answer.text == "['--fast'] ok"


def test_long_output_is_cut_at_its_beginning(tmp_path: Path) -> None:
    program = ASK + "print('x' * 50_000)\nprint(say('x'))"
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program)
    assert answer.text.startswith("[30,004 characters before]")
    assert answer.text.endswith("x\nok")


def test_a_client_that_leaves_and_asks_again_pays_once(tmp_path: Path) -> None:
    program = ASK + (
        "import http.client, os, json\nfrom urllib.parse import urlsplit\n"
        "address = urlsplit(os.environ['OPENAI_BASE_URL'])\n"
        "body = json.dumps({'model': os.environ['TASK_MODEL'],"
        " 'messages': [{'role': 'user', 'content': 'x'}]})\n"
        "head = {'Content-Type': 'application/json',"
        " 'Authorization': 'Bearer ' + os.environ['OPENAI_API_KEY']}\n"
        "client = http.client.HTTPConnection(address.hostname, address.port)\n"
        "client.request('POST', '/v1/chat/completions', body, head)\n"
        "client.close()\nprint(say('x'))"
    )
    with scripted_chat(lambda messages: "ok", seconds=0.3) as server:
        answer = answered(tmp_path, server, program)
        assert len(server.bodies) == 1
    assert len(answer.responses) == 1


@pytest.mark.parametrize(
    ("strategy", "keys", "sentence"),
    [
        ({"run": ""}, {}, "needs the option 'run'"),
        ({"run": 3}, {}, "The option 'run' of 'agent-command' is text, not 3"),
        ({"models": "gpt"}, {}, "'models' of 'agent-command' is a list of names"),
        ({"modle": "x"}, {}, "modle"),
        ({}, {"sandbox": None, "files": None}, "sandbox"),
        ({}, {"answer": {"temperature": 0.5}}, "`answer.temperature` has no effect"),
        ({}, {"answer": {"max_tokens": 5}}, "`answer.max_tokens` has no effect"),
        ({}, {"prompt": {"user": ["a", "b"]}}, "the task has several user turns"),
    ],
)
def test_wrong_settings_are_said_before_anything_runs(
    tmp_path: Path,
    strategy: Mapping[str, Any],
    keys: Mapping[str, Any],
    sentence: str,
) -> None:
    with pytest.raises(EvalwrightError, match=sentence):
        task(tmp_path, strategy=dict(strategy), **keys)


def test_the_key_of_tokens_is_private(tmp_path: Path) -> None:
    program = ASK + "print(say('x'))"
    with scripted_chat(lambda messages: "ok") as server:
        answered(tmp_path, server, program)
    key_file = tmp_path / "home" / "agent-command.key"
    assert key_file.stat().st_mode & 0o077 == 0


def test_a_program_that_hides_is_ended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes another process into the file by which it is found, and hears no signal."""
    monkeypatch.setattr("evalwright.proxy.sandboxed_program.END_SECONDS", 3.0)
    monkeypatch.setattr("evalwright.proxy.agent_command.LIMIT_GRACE_SECONDS", 0.1)
    program = ASK + (
        "import signal, time, urllib.error\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "open('/tmp/.agent-command/process', 'w').write('1')\n"
        "while True:\n"
        "    try:\n        say('x', temperature=1)\n"
        "    except urllib.error.HTTPError:\n        time.sleep(0.05)\n"
    )
    with scripted_chat(lambda messages: "ok") as server:
        answer = answered(tmp_path, server, program, limits={"messages": 2})
        assert len(server.bodies) == 2
    assert answer.strategy["ended"] == "messages"
    assert answer.strategy["exit_code"] == 137
    assert answer.strategy["sandbox"]["snapshot"]


def test_a_budget_ends_the_program_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    with scripted_chat(steps("echo 1", "echo 2", "echo 3")) as server:
        acting = task(tmp_path)
        run = run_of(acting, server, tmp_path, "small", budget="2 requests")
        assert len(server.bodies) == 2
        assert not [record for record in run.samples() if record.answer is not None]
        whole = run_of(acting, server, tmp_path, "whole", budget="9 requests")
        assert len(server.bodies) == 4
    assert record_of(whole).answer.text == "Done."  # type: ignore[union-attr]


def test_an_ask_that_keeps_nothing_is_enough(tmp_path: Path) -> None:
    """As of a simulated model: no store, no model to look at, no log of actions."""
    plan = SandboxPlan(
        SandboxSettings(), [PlannedFile("/agent/agent.py", URLLIB_AGENT.encode())]
    )
    acting = strategy(
        "agent-command",
        {"run": "python3 /agent/agent.py"},
        sandbox=lambda sample: plan,
        render=lambda sample: (Message("user", sample.input),),
    )
    answer, requests = asked(acting, lambda role, request: "Forty-two.")
    assert answer.text == "Forty-two."
    assert [role for role, _ in requests] == ["target"]
    assert answer.strategy["attempts"] == 1


def test_the_state_that_it_left_is_kept(
    tmp_path: Path,
) -> None:
    """Scorers begin with it."""
    with scripted_chat(steps("echo hi > /work/a.txt")) as server:
        answer = answered(tmp_path, server)
    snapshot = Snapshot.from_dict(answer.strategy["sandbox"]["snapshot"])

    async def read() -> bytes:
        home = tmp_path / "home"
        async with started(SandboxSettings(), home, snapshot) as sandbox:
            return await sandbox.read("/work/a.txt", 100)

    assert asyncio.run(read()) == b"hi\n"


def test_what_it_left_is_scored_with_files_that_it_never_saw(tmp_path: Path) -> None:
    hidden = "grep -q hi /work/a.txt && echo right"
    scorers = [{"command": {"run": "bash /tests/check.sh", "files": {}}}, "effort"]
    scorers[0]["command"]["files"] = {"/tests/check.sh": hidden}  # type: ignore[index]
    commands = ("cat /tests/check.sh", "echo hi > /work/a.txt")
    with scripted_chat(steps(*commands)) as server:
        acting = task(tmp_path, scorers=scorers, metrics=["accuracy"])
        record = record_of(run_of(acting, server, tmp_path))
    assert record.answer is not None
    assert "No such file" in record.answer.prompt[3].text  # type: ignore[union-attr]
    assert record.scores["command"].value == 1.0
    assert record.scores["effort"].parts["steps"] == 3
