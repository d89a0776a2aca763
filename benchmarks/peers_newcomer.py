"""What a newcomer decides by, beside lm_eval, inspect_ai and promptfoo.

    python -m benchmarks peers_newcomer [--peers FOLDER]
        [--only requests,killed,verdict,viewer,mistakes]
        [--systems evalwright,lm_eval,inspect_ai,promptfoo]

    requests  CPU per request and requests a second, 128 at once, from a server that takes 50 ms
    killed    how many requests N questions take when the run is killed half-way and started again
    verdict   what each prints about two models on the same 60 questions
    viewer    a log of 10,000 samples, until its viewer shows a row
    mistakes  ten typical mistakes: exit code, traceback, last line

FOLDER has an environment for each system, made if missing: three of Python (peers.py) and one of
npm. The results are in docs/peers.md.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from measuring import Table, option_parser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import peers
import remote
from overhead import inspect_ai, questions
from remote import Setting, fetch_books, serving

SYSTEMS = ("evalwright", "lm_eval", "inspect_ai", "promptfoo")
LATENCY = ("--latency", "0.05", "--sigma", "0")
FEW_REQUESTS = 20
MANY_REQUESTS = 2_000
KILLED_QUESTIONS = 400
VERDICT_QUESTIONS = 60
VIEWER_SAMPLES = 10_000
MISTAKE_TIMEOUT_S = 60
STACK = re.compile(r"Traceback \(most recent call last\)|^\s+at .+:\d+:\d+\)?$", re.M)


# -- the four systems ------------------------------------------------------------------


def promptfoo_bin() -> str:
    """The command of promptfoo; installs it if missing."""
    peers.PROMPTFOO.ensure()
    return str(peers.PROMPTFOO.command)


def environment(folder: Path, url: str) -> dict[str, str]:
    """No network but the loopback server, no state outside the folder."""
    kept = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    return {
        **kept,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "not-a-key",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / ".promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    }


def promptfoo(folder: Path, setting: Setting, model: str = "measured") -> list[str]:
    """A config with one prompt, one provider and a CSV file of tests."""
    with (folder / "tests.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["input", "__expected"])
        for line in (folder / "questions.jsonl").open():
            row = json.loads(line)
            writer.writerow([row["input"], row["target"]])
    provider = {
        "id": f"openai:chat:{model}",
        "config": {"apiBaseUrl": setting.url, "max_tokens": 8, "temperature": 0},
    }
    config = {
        "prompts": ["{{input}}"],
        "providers": [provider],
        "tests": "file://tests.csv",
    }
    (folder / "promptfooconfig.yaml").write_text(json.dumps(config))
    command = [promptfoo_bin(), "eval", "-j", str(setting.at_once)]
    return [*command, "--no-table", "--no-progress-bar", "-o", "out.json"]


COMMANDS = {
    "evalwright": remote.evalwright,
    "lm_eval": remote.lm_eval,
    "inspect_ai": remote.inspect,
    "promptfoo": promptfoo,
}


def start(command: Sequence[str], folder: Path, url: str) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, with its output in a file."""
    with (folder / "output.log").open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment(folder, url),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def finish(command: Sequence[str], folder: Path, url: str) -> float:
    """Run a command to its end; returns its CPU seconds.

    promptfoo ends with 100 where a test failed, which half of ours do.
    """
    process = start(command, folder, url)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 100):
        raise RuntimeError(
            f"{shlex.join(command)} ended with {process.returncode}:\n"
            + (folder / "output.log").read_text()[-2000:]
        )
    return usage.ru_utime + usage.ru_stime


# -- requests --------------------------------------------------------------------------


def measure_requests(systems: Sequence[str], repeats: int) -> None:
    """Print CPU per request and requests a second; start-up is taken off."""
    rates: dict[str, list[float]] = {name: [] for name in systems}
    cpus: dict[str, list[float]] = {name: [] for name in systems}
    with serving(*LATENCY) as server:
        setting = Setting(f"{server}/v1", 128, limit_announced=True)
        for _ in range(repeats):
            for name in systems:
                few, _ = measure_one(name, server, setting, FEW_REQUESTS)
                many, rate = measure_one(name, server, setting, MANY_REQUESTS)
                rates[name].append(rate)
                cpus[name].append(1000 * (many - few) / (MANY_REQUESTS - FEW_REQUESTS))
    table = Table(["system", "CPU ms a request", "requests/s, 128 at once"])
    for name in systems:
        cpu = statistics.median(cpus[name])
        rate = statistics.median(rates[name])
        table.add(name, f"{cpu:.2f}", f"{rate:,.0f}")
    print(f"\nEach repeat: {cpus}, {rates}", flush=True)


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


# -- killed ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Restart:
    """How a killed run is started again. extra: added to both commands."""

    system: str
    words: str
    extra: tuple[str, ...] = ()
    resume: str = ""


INSPECT_RETRY = (
    "BIN/inspect eval-retry logs/*.eval --display none --log-dir logs"
    " --max-connections 16"
)
RESTARTS = (
    Restart("evalwright", "the same command"),
    Restart("lm_eval", "the same command"),
    Restart("lm_eval", "--use_cache", ("--use_cache", "cache/answers")),
    Restart("inspect_ai", "the same command"),
    Restart("inspect_ai", "inspect eval-retry", resume=INSPECT_RETRY),
    Restart("promptfoo", "the same command (its cache is on)"),
    Restart("promptfoo", "--resume", resume="PROMPTFOO eval --resume --no-table"),
)


def measure_killed(systems: Sequence[str]) -> None:
    """Print the requests in all for each way to start again."""
    print("\n| system | started again by | before the kill | in all | answers |")
    print("|---|---|---|---|---|")
    for restart in RESTARTS:
        if restart.system in systems:
            with serving(*LATENCY) as server, tempfile.TemporaryDirectory() as place:
                kill_and_restart(restart, server, Path(place))


def kill_and_restart(restart: Restart, server: str, folder: Path) -> None:
    """Kill a run when half of its requests were received, start it again, print the counts."""
    setting = Setting(f"{server}/v1", 16, limit_announced=True)
    questions(folder / "questions.jsonl", KILLED_QUESTIONS)
    command = [*COMMANDS[restart.system](folder, setting), *restart.extra]
    process = start(command, folder, setting.url)
    while fetch_books(server, "counts?short")["received"] < KILLED_QUESTIONS // 2:
        assert process.poll() is None, (folder / "output.log").read_text()[-2000:]
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.3)  # the server sees what was still on its way
    before = fetch_books(server, "counts?short")["received"]
    if restart.resume:
        script = restart.resume.replace("BIN", str(peers.INSPECT.bin))
        command = ["sh", "-c", script.replace("PROMPTFOO", promptfoo_bin())]
    (folder / "output.log").unlink()
    try:
        finish(command, folder, setting.url)
        end = (folder / "output.log").read_text(errors="replace").strip().splitlines()
    except RuntimeError as error:
        end = str(error).splitlines()
    received = fetch_books(server, "counts?short")["received"]
    print(
        f"| {restart.system} | {restart.words} | {before} | {received} |"
        f" {' / '.join(end[-3:])[:300]} |",
        flush=True,
    )


# -- verdict ---------------------------------------------------------------------------


class TwoModels(BaseHTTPRequestHandler):
    """`strong` is right on 45 of the 60 questions, `weak` on 36, both on 30."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = int(re.findall(r"What is (\d+)", body["messages"][-1]["content"])[0])
        right = number < 45 if body["model"] == "strong" else 15 <= number < 51
        text = ("4" if number % 2 else str(number)) if right else "none"
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        usage = {"prompt_tokens": 8, "completion_tokens": 1, "total_tokens": 9}
        reply = {"id": "1", "object": "chat.completion", "created": 1}
        reply |= {"model": body["model"], "choices": [choice], "usage": usage}
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def two_models() -> Iterator[str]:
    """A server with both models; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), TwoModels)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


def show_verdicts(systems: Sequence[str]) -> None:
    """Print the end of what each system prints about the two models."""
    for name in systems:
        with two_models() as url, tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            questions(folder / "questions.jsonl", VERDICT_QUESTIONS)
            setting = Setting(url, 8, limit_announced=True)
            for command in verdict_commands(name, folder, setting):
                finish(command, folder, url)
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
    server: subprocess.Popen[bytes] | None = None
    began = time.monotonic()
    if name == "evalwright":
        (run,) = (path.parent.name for path in (folder / "runs").glob("*/run.json"))
        program = str(peers.OURS.bin / "evalwright")
        finish([program, "view", run, "--html", "seen.html"], folder, setting.url)
        address = (folder / "seen.html").as_uri() + f"#/run/{run}/samples"
        form = f"one file, {(folder / 'seen.html').stat().st_size / 1e6:.1f} MB"
    else:
        port = 18_417
        command = {
            "inspect_ai": f"{peers.INSPECT.bin}/inspect view --log-dir logs --port {port}",
            "promptfoo": f"{promptfoo_bin()} view --no --port {port}",
        }[name]
        server = start(shlex.split(command), folder, setting.url)
        address = f"http://127.0.0.1:{port}/"
        form = "a server"
        wait_for_server(address)
    made = time.monotonic() - began
    try:
        shown = [asyncio.run(seconds_until_row(address, name)) for _ in range(3)]
    finally:
        if server is not None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
    seconds = ", ".join(f"{each:.1f}" for each in shown)
    table.add(name, f"{form}, {made:.1f} s", f"{seconds} s")


def wait_for_server(address: str) -> None:
    """Wait until the address answers."""
    import urllib.request

    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"nothing answers at {address}")


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


def write_mistakes(folder: Path) -> None:
    """The files that the mistakes need, each a copy of a good one with one change."""
    questions(folder / "questions.jsonl", 3)
    (folder / "empty.csv").write_text("")
    setting = Setting("http://127.0.0.1:9/v1", 4, limit_announced=True)
    good: dict[str, str] = {}
    for system, file in (
        ("evalwright", "sums.yaml"),
        ("lm_eval", "sums.yaml"),
        ("inspect_ai", "sums.py"),
        ("promptfoo", "promptfooconfig.yaml"),
    ):
        COMMANDS[system](folder, setting)
        good[system] = (folder / file).read_text()

    changes = (
        ("good", "", ""),
        ("gone", "questions.jsonl", "gone.jsonl"),
        ("empty", "questions.jsonl", "empty.csv"),
        ("column", "{{ input }}", "{{ inptu }}"),
        ("key", "scorers:", "scorrs:"),
    )
    for name, old, new in changes:
        (folder / f"ours_{name}.yaml").write_text(good["evalwright"].replace(old, new))

    (folder / "lm").mkdir()
    for name, old, new in (
        *changes[:2],
        ("empty", "json", "csv"),
        ("column", "{{input}}", "{{inptu}}"),
        ("key", "metric_list", "metric_lst"),
    ):
        text = good["lm_eval"].replace("task: sums", f"task: lm_{name}")
        text = text.replace("questions.jsonl", "empty.csv") if name == "empty" else text
        (folder / "lm" / f"{name}.yaml").write_text(text.replace(old, new))

    for name, old, new in (
        *changes[:2],
        ("empty", "json_dataset", "csv_dataset"),
        (
            "column",
            "questions.jsonl'",
            "questions.jsonl', sample_fields=FieldSpec(input='inptu')",
        ),
        ("key", "scorer=match()", "scorrer=match()"),
    ):
        text = good["inspect_ai"].replace(old, new)
        text = text.replace("questions.jsonl", "empty.csv") if name == "empty" else text
        text = text.replace("dataset import", "dataset import FieldSpec,")
        (folder / f"inspect_{name}.py").write_text(text)

    port = json.loads(good["promptfoo"])
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


def mistakes(system: str) -> dict[str, str]:
    """The ten commands, by mistake."""
    if system == "evalwright":
        command = f"{peers.OURS.bin}/evalwright run"
        good = "--model scripted/constant -M text=4"
        return {
            "unknown model": f"{command} ours_good.yaml --model opnai/gpt-4o-mini",
            "unknown task": f"{command} factul-choice {good}",
            "missing file": f"{command} ours_gone.yaml {good}",
            "bad key": f"{command} ours_key.yaml {good}",
            "missing API key": f"{command} ours_good.yaml --model openai/gpt-4o-mini",
            "wrong port": f"{command} ours_good.yaml --model openai/x"
            " -M base_url=http://127.0.0.1:9/v1",
            "empty CSV": f"{command} ours_empty.yaml {good}",
            "wrong column": f"{command} ours_column.yaml {good}",
            "bad option": f"{command} ours_good.yaml {good} --limti 3",
            "missing extra": f"{command} ours_good.yaml --model hf/gpt2",
        }
    if system == "lm_eval":
        command = f"{peers.LM_EVAL.bin}/lm_eval run --include_path lm"
        good = "--model dummy"
        server = "--model local-chat-completions --apply_chat_template --model_args"
        return {
            "unknown model": f"{command} --tasks lm_good --model opnai",
            "unknown task": f"{command} --tasks mmluu {good}",
            "missing file": f"{command} --tasks lm_gone {good}",
            "bad key": f"{command} --tasks lm_key {good}",
            "missing API key": f"{command} --tasks lm_good --model openai-chat-completions"
            " --apply_chat_template --model_args model=gpt-4o-mini",
            "wrong port": f"{command} --tasks lm_good {server} model=x,base_url=http://127.0.0.1:9/v1/chat/completions",
            "empty CSV": f"{command} --tasks lm_empty {good}",
            "wrong column": f"{command} --tasks lm_column {good}",
            "bad option": f"{command} --tasks lm_good {good} --limti 3",
            "missing extra": f"{command} --tasks lm_good --model hf --model_args pretrained=gpt2",
        }
    if system == "inspect_ai":
        command = f"{peers.INSPECT.bin}/inspect eval"
        good = "--model mockllm/model --display plain"
        address = "--model-base-url http://127.0.0.1:9/v1"
        plain = "--display plain"
        return {
            "unknown model": f"{command} inspect_good.py --model opnai/gpt-4o-mini --display plain",
            "unknown task": f"{command} smus.py {good}",
            "missing file": f"{command} inspect_gone.py {good}",
            "bad key": f"{command} inspect_key.py {good}",
            "missing API key": f"{command} inspect_good.py --model openai/gpt-4o-mini {plain}",
            "wrong port": f"{command} inspect_good.py --model openai/x {address} {plain}",
            "empty CSV": f"{command} inspect_empty.py {good}",
            "wrong column": f"{command} inspect_column.py {good}",
            "bad option": f"{command} inspect_good.py {good} --limti 3",
            "missing extra": f"{command} inspect_good.py --model hf/gpt2 --display plain",
        }
    command = f"{promptfoo_bin()} eval --no-progress-bar --no-table -c"
    return {
        "unknown model": f"{command} model.yaml",
        "unknown task": f"{command} assert.yaml",
        "missing file": f"{command} gone.yaml",
        "bad key": f"{command} key.yaml",
        "missing API key": f"{command} no_key.yaml",
        "wrong port": f"{command} port.yaml",
        "empty CSV": f"{command} empty.yaml",
        "wrong column": f"{command} column.yaml",
        "bad option": f"{command} good.yaml --limti 3",
        "missing extra": f"{command} extra.yaml",
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
                write_mistakes(folder)
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
    parser = option_parser(__doc__)
    parser.add_argument("--peers", type=Path, default=peers.FOLDER)
    parser.add_argument("--only", default="requests,killed,verdict,viewer,mistakes")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(words)
    peers.FOLDER = options.peers.resolve()
    systems = options.systems.split(",")
    for peer in (peers.OURS, peers.LM_EVAL, peers.INSPECT):
        if peer.name in systems or peer is peers.OURS:
            peer.ensure()
    parts = options.only.split(",")
    if "requests" in parts:
        measure_requests(systems, options.repeats)
    if "killed" in parts:
        measure_killed(systems)
    if "verdict" in parts:
        show_verdicts(systems)
    if "viewer" in parts:
        measure_viewers(systems)
    if "mistakes" in parts:
        show_mistakes(systems)
    return 0


if __name__ == "__main__":
    sys.exit(main())
