"""The command by which each of four systems evaluates the same questions by a chat server: ours,
lm_eval's, inspect_ai's and promptfoo's.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import peers
import remote
from remote import Setting

SYSTEMS = ("evalwright", "lm_eval", "inspect_ai", "promptfoo")
LATENCY = ("--latency", "0.05", "--sigma", "0")
"""Of the server that most measurements use: 50 ms."""
EXIT_CODES = (0, 100)
"""Of success; promptfoo ends with 100 where a test failed, which half of ours do."""


def promptfoo_bin() -> str:
    """The command of promptfoo; installs it if missing."""
    peers.PROMPTFOO.ensure()
    return str(peers.PROMPTFOO.command)


def environment(folder: Path, url: str) -> dict[str, str]:
    """No network but the loopback server, no state outside the folder."""
    inherited = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    return {
        **inherited,
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


def ensure_systems(systems: Sequence[str]) -> None:
    """Install those systems that are missing; ours always."""
    for name in ("evalwright", *systems):
        peers.PEERS[name].ensure()


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
