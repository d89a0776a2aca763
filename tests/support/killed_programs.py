"""Agents of others on six small tasks, killed with all that runs and started again.

The model's server counts what it receives, by task and number of turns: a request whose reply was
stored at a kill is never to come again.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from support.agent_programs import REACT_AGENT, SDK_AGENT, URLLIB_AGENT
from support.command import environment, stored_requests
from support.scripted_chat import ScriptedChat

Request = tuple[str, int]
"""A request of a sequential agent: the task, and how many turns it has."""
MARK = re.compile(r"task-\d")
PROBE = "probe"
"""What an agent asks to see whether the model answers, with no task in it."""
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
WORK = (
    ("echo hello > a.txt", "cat a.txt", "wc -c < a.txt"),
    ("seq 1 20 > numbers", "sort -rn numbers | head -3", "rm numbers", "ls"),
    ("mkdir -p src", "printf 'a = 1\\n' > src/a.py", "python3 -m py_compile src/a.py"),
    ("python3 -c 'print(2 ** 20)'", "python3 -c 'print({1, 2, \"x\"})'"),
    ("id -u", "hostname", "pwd", 'echo "$HOME"', "ls /work"),
    ("false", "no-such-command", "echo wrong >&2; exit 3"),
)
"""What the model does, task by task; all of it repeats itself."""


@dataclass(frozen=True)
class Program:
    """An agent of somebody else.

    Attributes:
        run: the line that starts it.
        packages: the folder of packages that it needs; "" for none.
        environment: its variables.
        last: the command by which the model ends it; "" for a text.
        submits: whether the model ends it by the tool `submit`.
        in_texts: whether the model acts by texts instead of calls.
        moves: whether it works in a folder with a random name, so that `pwd` never repeats itself.
    """

    run: str
    packages: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    last: str = ""
    submits: bool = False
    in_texts: bool = False
    moves: bool = False


def programs(packages: str) -> dict[str, Program]:
    """The agents by name; `packages` is a folder with what they need."""
    with_packages = {"PYTHONPATH": packages}
    mini = {
        **with_packages,
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_CONFIGURED": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    return {
        "urllib": Program("python3 /agent/urllib_agent.py"),
        "openai": Program(
            "python3 /agent/sdk_agent.py", packages, with_packages, in_texts=True
        ),
        "mini-swe-agent": Program(
            'python3 -m minisweagent -m openai/target -y --exit-immediately -t "$TASK_PROMPT"',
            packages,
            mini,
            SUBMIT,
        ),
        "inspect-react": Program(
            "cd /agent && python3 -c 'from inspect_ai._cli.main import main; main()'"
            " eval react.py --model openai/target --display none",
            packages,
            with_packages,
            submits=True,
            moves=True,
        ),
    }


def write_task(folder: Path, program: Program) -> Path:
    """Write the task file of a program."""
    rows = [
        {"id": f"task-{index}", "q": f"This is task-{index}. Do what is needed."}
        for index in range(len(WORK))
    ]
    options = {"read_only": [program.packages]} if program.packages else {}
    definition = {
        "task": "programs",
        "dataset": {"rows": rows},
        "prompt": {"user": "{{ q }}"},
        "sandbox": {
            "backend": "jail",
            "options": options,
            "environment": dict(program.environment),
        },
        "files": {
            "/agent/urllib_agent.py": URLLIB_AGENT,
            "/agent/sdk_agent.py": SDK_AGENT,
            "/agent/react.py": REACT_AGENT,
        },
        "strategy": {"name": "agent-command", "run": program.run},
        "scorers": ["exact-match"],
    }
    file = folder / "programs.yaml"
    file.write_text(yaml.safe_dump(definition), encoding="utf-8")
    return file


def model_of(program: Program) -> Any:
    """What the model replies: the commands of the task, then the end."""

    def reply(messages: Sequence[Mapping[str, Any]]) -> str | Mapping[str, str]:
        task = _task_of(json.dumps(messages))
        if task == PROBE:
            return "hello, world"
        commands = [*WORK[int(task[-1])]]
        if program.moves:
            commands = [command for command in commands if command != "pwd"]
        if program.last:
            commands.append(program.last)
        n_replies = sum(message["role"] == "assistant" for message in messages)
        if n_replies >= len(commands):
            done = {"name": "submit", "arguments": json.dumps({"answer": "Done."})}
            return done if program.submits else "Done."
        if program.in_texts:
            return f"RUN {commands[n_replies]}"
        arguments = json.dumps({"command": commands[n_replies]})
        return {"name": "bash", "arguments": arguments}

    return reply


def _task_of(text: str) -> str:
    match = MARK.search(text)
    return PROBE if match is None else match[0]


def received(server: ScriptedChat) -> Counter[Request]:
    """How often each request came."""
    with server.lock:
        bodies = list(server.bodies)
    tasks = [_task_of(json.dumps(body)) for body in bodies]
    return Counter(
        (task, len(body["messages"]))
        for task, body in zip(tasks, bodies, strict=True)
        if task != PROBE
    )


def stored(home: Path) -> set[Request]:
    """The requests whose replies are in the store."""
    requests = [json.loads(text) for _, text in stored_requests(home)]
    named = {
        (_task_of(json.dumps(request["generate"])), len(request["generate"]))
        for request in requests
        if "generate" in request
    }
    return {(task, n_turns) for task, n_turns in named if task != PROBE}


def start(folder: Path, server: ScriptedChat, name: str) -> subprocess.Popen[str]:
    """Start the command, with a home of its own, as the head of a group."""
    model = ["--model", "openai/tested", "-M", f"base_url={server.url}"]
    settings = ["--name", name, "--quiet"]
    if _needs_trust(folder):
        settings += ["--trust", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", "evalwright", "run", "programs.yaml", *model, *settings],
        cwd=folder,
        env=environment(
            {"OPENAI_API_KEY": "sk-of-the-provider", "EVALWRIGHT_HOME": name}
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _needs_trust(folder: Path) -> bool:
    """Whether the task lets packages of this machine in."""
    definition = yaml.safe_load((folder / "programs.yaml").read_text(encoding="utf-8"))
    return bool(definition["sandbox"]["options"])


def finish(folder: Path, server: ScriptedChat, name: str) -> str:
    """Run the command to its end; return what it printed."""
    process = start(folder, server, name)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output
    return output


def kill_and_resume(
    folder: Path, server: ScriptedChat, kills: int, chance: random.Random
) -> dict[Request, int]:
    """Kill the command at random moments, and run it to its end.

    Returns:
        For each request that was stored at a kill, how often it had come then.
    """
    known: dict[Request, int] = {}
    home = folder / "killed"
    for _ in range(kills):
        process = start(folder, server, "killed")
        enough = len(server.bodies) + chance.randrange(1, 8)
        until = time.monotonic() + 300
        while len(server.bodies) < enough and process.poll() is None:
            assert time.monotonic() < until, "it never asked"
            time.sleep(0.005)
        time.sleep(chance.uniform(0.0, 2 * server.seconds))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(2 * server.seconds)  # the server sees what was still on its way
        times = received(server)
        for request in stored(home):
            known.setdefault(request, times[request])
    finish(folder, server, "killed")
    return known


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    """The lines of a run, without times, and without the snapshot's name, which has some in it."""
    text = (folder / "runs" / name / "samples.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row.pop("timing", None)
        strategy = row.get("strategy", {})
        strategy.pop("seconds", None)
        strategy.get("sandbox", {}).pop("snapshot", None)
        parts = row["scores"].get("effort", {}).get("parts", {})
        for name in [name for name in parts if "seconds" in name]:
            del parts[name]
    return rows
