"""What a newcomer decides by, beside lm_eval, inspect_ai and promptfoo.

    python -m benchmarks peers_newcomer [--only requests,killed,verdict,viewer,mistakes]
        [--systems evalwright,lm_eval,inspect_ai,promptfoo]

    requests  CPU per request and requests a second, 128 at once, from a server that takes 50 ms
    killed    the table of `python -m benchmarks killed`
    verdict   what each prints about two models on the same 60 questions
    viewer    a log of 10,000 samples, until its viewer shows a row
    mistakes  ten typical mistakes: exit code, traceback, last line

The results are in docs/peers.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from measuring import (
    Table,
    add_numbers,
    free_port,
    measure_command,
    option_parser,
    served,
    take_turns,
)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import peers
from killed import measure_killed
from overhead import inspect_ai, questions
from peer_commands import (
    COMMANDS,
    EXIT_CODES,
    LATENCY,
    SYSTEMS,
    ensure_systems,
    environment,
    promptfoo_bin,
)
from remote import Setting, fetch_books, serving
from support import openai_server

FEW_REQUESTS = 20
MANY_REQUESTS = 2_000
VERDICT_QUESTIONS = 60
VIEWER_SAMPLES = 10_000
MISTAKE_TIMEOUT_S = 60
STACK = re.compile(r"Traceback \(most recent call last\)|^\s+at .+:\d+:\d+\)?$", re.M)


def finish(command: Sequence[str], folder: Path, url: str) -> float:
    """Run a command to its end; returns its CPU seconds."""
    return measure_command(command, folder, environment(folder, url), EXIT_CODES).cpu


# -- requests --------------------------------------------------------------------------


def measure_requests(systems: Sequence[str], repeats: int) -> None:
    """Print CPU per request and requests a second; start-up is taken off."""
    with serving(*LATENCY) as server:
        setting = Setting(f"{server}/v1", 128, limit_announced=True)

        def measure(name: str) -> tuple[float, float]:
            few, _ = measure_one(name, server, setting, FEW_REQUESTS)
            many, rate = measure_one(name, server, setting, MANY_REQUESTS)
            return 1000 * (many - few) / (MANY_REQUESTS - FEW_REQUESTS), rate

        figures = take_turns(
            {name: partial(measure, name) for name in systems}, repeats
        )
    table = Table(["system", "CPU ms a request", "requests/s, 128 at once"])
    for name, of_system in figures.items():
        cpus, rates = zip(*of_system, strict=True)
        table.add(name, f"{median(cpus):.2f}", f"{median(rates):,.0f}")


def measure_one(
    name: str, server: str, setting: Setting, count: int
) -> tuple[float, float]:
    """CPU seconds of one evaluation in a fresh folder, and requests a second."""
    fetch_books(server, "reset")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        questions(folder / "questions.jsonl", count)
        cpu = finish(COMMANDS[name](folder, setting), folder, setting.url)
    counts = fetch_books(server, "counts")
    assert counts["answered"] >= count, f"{name}: {counts}"
    return cpu, counts["answered"] / (counts["last"] - counts["first"])


# -- verdict ---------------------------------------------------------------------------


def answer_as_model(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """`strong` is right on 45 of the 60 questions, `weak` on 36, both on 30."""
    number = int(re.findall(r"What is (\d+)", body["messages"][-1]["content"])[0])
    right = number < 45 if body["model"] == "strong" else 15 <= number < 51
    text = ("4" if number % 2 else str(number)) if right else "none"
    reply["choices"][0]["message"]["content"] = text
    return reply


def show_verdicts(systems: Sequence[str]) -> None:
    """Print the end of what each system prints about the two models."""
    for name in systems:
        with (
            openai_server.serving(edit=answer_as_model, log=False) as server,
            tempfile.TemporaryDirectory() as place,
        ):
            folder = Path(place)
            questions(folder / "questions.jsonl", VERDICT_QUESTIONS)
            setting = Setting(server.url, 8, limit_announced=True)
            for command in verdict_commands(name, folder, setting):
                finish(command, folder, server.url)
            output = (folder / "output.log").read_text(errors="replace")
        print(f"\n== {name}\n{output[-3500:]}", flush=True)


def verdict_commands(name: str, folder: Path, setting: Setting) -> list[list[str]]:
    """The commands by which two models are run, and compared where there is one for it."""
    commands = COMMANDS[name](folder, setting)
    if name == "evalwright":
        program, run, task, *_ = commands
        models = ["--model", "openai/strong", "--model", "openai/weak"]
        address = ["-M", f"base_url={setting.url}", "--name", "two", "--quiet"]
        compare = [program, "compare", "two-openai-strong", "two-openai-weak"]
        return [[program, run, task, *models, *address], compare]
    if name == "lm_eval":
        return [
            [word.replace("model=measured", f"model={model}") for word in commands]
            for model in ("strong", "weak")
        ]
    if name == "inspect_ai":
        inspect = str(peers.INSPECT.bin / "inspect")
        command = [inspect, "eval", "sums.py", "--model", "openai/strong,openai/weak"]
        return [[*command, "--display", "plain", "-M", "responses_api=false"]]
    config = json.loads((folder / "promptfooconfig.yaml").read_text())
    (provider,) = config["providers"]
    config["providers"] = [
        {**provider, "id": f"openai:chat:{model}"} for model in ("strong", "weak")
    ]
    (folder / "promptfooconfig.yaml").write_text(json.dumps(config))
    return [[word for word in commands if word != "--no-table"]]


# -- viewer ----------------------------------------------------------------------------


def measure_viewers(systems: Sequence[str]) -> None:
    """Print how long each viewer takes until it shows a row of a log of 10,000 samples."""
    table = Table(["system", "log", "until a row is seen"])
    for name in systems:
        if name == "lm_eval":
            table.add(name, "has no viewer of its own", "")
            continue
        with (
            serving("--latency", "0") as server,
            tempfile.TemporaryDirectory() as place,
        ):
            folder = Path(place)
            setting = Setting(f"{server}/v1", 64, limit_announced=True)
            questions(folder / "questions.jsonl", VIEWER_SAMPLES)
            command = COMMANDS[name](folder, setting)
            if name == "inspect_ai":
                command = inspect_ai(folder)  # its instant model, which is quicker
            if name == "promptfoo":
                command += ["-o", "out.html"]
            finish(command, folder, setting.url)
            show_viewer(name, folder, setting, table)
            if name == "promptfoo":
                page = folder / "out.html"
                shown = asyncio.run(seconds_until_row(page.as_uri(), name))
                size = page.stat().st_size / 1e6
                table.add(f"{name} -o out.html", f"{size:.1f} MB", f"{shown:.1f} s")


def show_viewer(name: str, folder: Path, setting: Setting, table: Table) -> None:
    """Write the viewer's file where there is one, start its server where not, open it."""
    began = time.monotonic()
    if name == "evalwright":
        (run,) = (path.parent.name for path in (folder / "runs").glob("*/run.json"))
        program = str(peers.OURS.bin / "evalwright")
        finish([program, "view", run, "--html", "seen.html"], folder, setting.url)
        page = folder / "seen.html"
        form = f"one file, {page.stat().st_size / 1e6:.1f} MB"
        add_viewer(name, f"{page.as_uri()}#/run/{run}/samples", form, began, table)
        return
    port = free_port()
    command = {
        "inspect_ai": f"{peers.INSPECT.bin}/inspect view --log-dir logs --port {port}",
        "promptfoo": f"{promptfoo_bin()} view --no --port {port}",
    }[name]
    address = f"http://127.0.0.1:{port}/"
    variables = environment(folder, setting.url)
    with served(shlex.split(command), folder, address, variables):
        add_viewer(name, address, "a server", began, table)


def add_viewer(name: str, address: str, form: str, began: float, table: Table) -> None:
    """Open a viewer three times, and print its row."""
    prepared = time.monotonic() - began
    seconds = [asyncio.run(seconds_until_row(address, name)) for _ in range(3)]
    table.add(name, f"{form}, {prepared:.1f} s", f"{median(seconds):.1f} s")


ROW_SHOWN = "document.body ? document.body.innerText.match(/What is \\d+ \\+/g)?.length ?? 0 : 0"
NAVIGATE = {
    "inspect_ai": "[...document.querySelectorAll('[role=row], tr, a')]"
    ".find(x => /sums/.test(x.innerText))?.click()",
}


async def seconds_until_row(address: str, name: str) -> float:
    """Seconds until a question is seen in a fresh browser."""
    from support.browser import open_tab

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with open_tab(Path(profile)) as tab:
            await tab.send("Page.enable")
            began = time.monotonic()
            await tab.send("Page.navigate", url=address)
            while not await tab.evaluate(ROW_SHOWN):
                await asyncio.sleep(0.05)
                if name in NAVIGATE:
                    await tab.evaluate(NAVIGATE[name])
                if time.monotonic() - began > 120:
                    text = await tab.evaluate("document.body.innerText")
                    raise RuntimeError(f"{name} shows no row: {text[:500]}")
            return time.monotonic() - began


# -- mistakes --------------------------------------------------------------------------


def write_mistakes(system: str, folder: Path) -> None:
    """The files that a system's mistakes need, each a copy of a good one with one change."""
    questions(folder / "questions.jsonl", 3)
    (folder / "empty.csv").write_text("")
    COMMANDS[system](folder, Setting("http://127.0.0.1:9/v1", 4, limit_announced=True))
    if system == "promptfoo":
        write_promptfoo_mistakes(folder)
        return
    file_name, target = {
        "evalwright": ("sums.yaml", "ours_{}.yaml"),
        "lm_eval": ("sums.yaml", "lm/{}.yaml"),
        "inspect_ai": ("sums.py", "inspect_{}.py"),
    }[system]
    good = (folder / file_name).read_text()
    (folder / "lm").mkdir(exist_ok=True)
    for name, replacements in CHANGES[system].items():
        text = good
        for old, new in replacements:
            text = text.replace(old, new)
        if system == "lm_eval":
            text = text.replace("task: sums", f"task: lm_{name}")
        (folder / target.format(name)).write_text(text)


GONE = (("questions.jsonl", "gone.jsonl"),)
EMPTY = ("questions.jsonl", "empty.csv")
FIELDS = "questions.jsonl', sample_fields=FieldSpec(input='inptu')"
CHANGES: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    "evalwright": {
        "good": (),
        "gone": GONE,
        "empty": (EMPTY,),
        "column": (("{{ input }}", "{{ inptu }}"),),
        "key": (("scorers:", "scorrs:"),),
    },
    "lm_eval": {
        "good": (),
        "gone": GONE,
        "empty": (EMPTY, ("json", "csv")),
        "column": (("{{input}}", "{{inptu}}"),),
        "key": (("metric_list", "metric_lst"),),
    },
    "inspect_ai": {
        "good": (),
        "gone": GONE,
        "empty": (EMPTY, ("json_dataset", "csv_dataset")),
        "column": (
            ("dataset import", "dataset import FieldSpec,"),
            ("questions.jsonl'", FIELDS),
        ),
        "key": (("scorer=match()", "scorrer=match()"),),
    },
}
"""By system and file: what is replaced in a good one."""


def write_promptfoo_mistakes(folder: Path) -> None:
    """Write promptfoo's configurations, which are JSON."""
    port = json.loads((folder / "promptfooconfig.yaml").read_text())
    config = port | {"providers": ["echo"]}  # its instant model
    misspelt = [{"vars": {"input": "1"}, "assert": [{"type": "equalz", "value": "4"}]}]
    for name, changed in {
        "good": config,
        "port": port,
        "model": config | {"providers": ["opnai:chat:gpt-4o-mini"]},
        "assert": config | {"tests": misspelt},
        "gone": config | {"tests": "file://gone.csv"},
        "key": {("promts" if key == "prompts" else key): config[key] for key in config},
        "no_key": config | {"providers": ["openai:chat:gpt-4o-mini"]},
        "empty": config | {"tests": "file://empty.csv"},
        "column": config | {"prompts": ["{{inptu}}"]},
        "extra": config | {"providers": ["bedrock:amazon.nova-lite-v1:0"]},
    }.items():
        (folder / f"{name}.yaml").write_text(json.dumps(changed))


MISTAKES: dict[str, dict[str, str]] = {
    "evalwright": {
        "unknown model": "ours_good.yaml --model opnai/gpt-4o-mini",
        "unknown task": "factul-choice GOOD",
        "missing file": "ours_gone.yaml GOOD",
        "bad key": "ours_key.yaml GOOD",
        "missing API key": "ours_good.yaml --model openai/gpt-4o-mini",
        "wrong port": "ours_good.yaml --model openai/x -M base_url=http://127.0.0.1:9/v1",
        "empty CSV": "ours_empty.yaml GOOD",
        "wrong column": "ours_column.yaml GOOD",
        "bad option": "ours_good.yaml GOOD --limti 3",
        "missing extra": "ours_good.yaml --model hf/gpt2",
    },
    "lm_eval": {
        "unknown model": "--tasks lm_good --model opnai",
        "unknown task": "--tasks mmluu GOOD",
        "missing file": "--tasks lm_gone GOOD",
        "bad key": "--tasks lm_key GOOD",
        "missing API key": "--tasks lm_good --model openai-chat-completions"
        " --apply_chat_template --model_args model=gpt-4o-mini",
        "wrong port": "--tasks lm_good --model local-chat-completions --apply_chat_template"
        " --model_args model=x,base_url=http://127.0.0.1:9/v1/chat/completions",
        "empty CSV": "--tasks lm_empty GOOD",
        "wrong column": "--tasks lm_column GOOD",
        "bad option": "--tasks lm_good GOOD --limti 3",
        "missing extra": "--tasks lm_good --model hf --model_args pretrained=gpt2",
    },
    "inspect_ai": {
        "unknown model": "inspect_good.py --model opnai/gpt-4o-mini",
        "unknown task": "smus.py GOOD",
        "missing file": "inspect_gone.py GOOD",
        "bad key": "inspect_key.py GOOD",
        "missing API key": "inspect_good.py --model openai/gpt-4o-mini",
        "wrong port": "inspect_good.py --model openai/x"
        " --model-base-url http://127.0.0.1:9/v1",
        "empty CSV": "inspect_empty.py GOOD",
        "wrong column": "inspect_column.py GOOD",
        "bad option": "inspect_good.py GOOD --limti 3",
        "missing extra": "inspect_good.py --model hf/gpt2",
    },
    "promptfoo": {
        "unknown model": "model.yaml",
        "unknown task": "assert.yaml",
        "missing file": "gone.yaml",
        "bad key": "key.yaml",
        "missing API key": "no_key.yaml",
        "wrong port": "port.yaml",
        "empty CSV": "empty.yaml",
        "wrong column": "column.yaml",
        "bad option": "good.yaml --limti 3",
        "missing extra": "extra.yaml",
    },
}
"""By system and mistake: the arguments. GOOD: a model that answers."""
GOOD_MODELS = {
    "evalwright": "--model scripted/constant -M text=4",
    "lm_eval": "--model dummy",
    "inspect_ai": "--model mockllm/model",
    "promptfoo": "",
}


def mistakes(system: str) -> dict[str, str]:
    """Return the ten commands, by mistake."""
    programs = {
        "evalwright": f"{peers.OURS.bin}/evalwright run",
        "lm_eval": f"{peers.LM_EVAL.bin}/lm_eval run --include_path lm",
        "inspect_ai": f"{peers.INSPECT.bin}/inspect eval --display plain",
        "promptfoo": f"{peers.PROMPTFOO.command} eval --no-progress-bar --no-table -c",
    }
    program = programs[system]
    good = GOOD_MODELS[system]
    return {
        mistake: f"{program} {arguments.replace('GOOD', good)}"
        for mistake, arguments in MISTAKES[system].items()
    }


def show_mistakes(systems: Sequence[str]) -> None:
    """Print what each system makes of each mistake."""
    columns = ("system", "mistake", "exit code, seconds", "stack trace", "last lines")
    table = Table(columns)
    n_stacks: dict[str, int] = {}
    for system in systems:
        stacks = 0
        for words, command in mistakes(system).items():
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
                folder = Path(place)
                write_mistakes(system, folder)
                code, output, seconds = try_mistake(command, words, folder)
            has_stack = bool(STACK.search(output))
            stacks += has_stack
            end = " / ".join(output.strip().splitlines()[-3:])[-400:]
            trace = "yes" if has_stack else ""
            table.add(system, words, f"{code}, {seconds:.0f} s", trace, end)
        n_stacks[system] = stacks
    print(f"\nOf 10 with a stack trace: {n_stacks}")


def try_mistake(command: str, words: str, folder: Path) -> tuple[str, str, float]:
    """Run one; returns the exit code, the output and the seconds."""
    variables = environment(folder, "http://127.0.0.1:9/v1")
    if words == "missing API key":
        del variables["OPENAI_API_KEY"], variables["OPENAI_BASE_URL"]
    began = time.monotonic()
    process = subprocess.Popen(
        shlex.split(command),
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        data, _ = process.communicate(timeout=MISTAKE_TIMEOUT_S)
        code = str(process.returncode)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        data, _ = process.communicate()
        code = "none (stopped)"
    return code, data.decode(errors="replace"), time.monotonic() - began


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--only", default="requests,killed,verdict,viewer,mistakes")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    add_numbers(parser, repeats=3)
    options = parser.parse_args(words)
    systems = options.systems.split(",")
    ensure_systems(systems)
    parts = {
        "requests": lambda: measure_requests(systems, options.repeats),
        "killed": lambda: measure_killed(systems),
        "verdict": lambda: show_verdicts(systems),
        "viewer": lambda: measure_viewers(systems),
        "mistakes": lambda: show_mistakes(systems),
    }
    for name in options.only.split(","):
        parts[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
