"""Environments of the peers that we are measured against, each with its pinned release and nothing
else.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE / ".peers"


@dataclass(frozen=True)
class Peer:
    """One peer: the folder of its environment and what is installed there, in order."""

    name: str
    installs: tuple[tuple[str, ...], ...]

    @property
    def folder(self) -> Path:
        """The folder of its environment."""
        return FOLDER / self.name

    @property
    def python(self) -> Path:
        """The interpreter of its environment."""
        return self.folder / "bin" / "python"

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.python.parent

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"

    def ensure(self) -> None:
        """Make the environment if it is not there.

        Raises:
            SystemExit: something cannot be installed.
        """
        if (self.folder / "ready").exists():
            return
        print(f"Installing {self.name} in {self.folder} ...", file=sys.stderr)
        _run([sys.executable, "-m", "venv", str(self.folder)], self.name)
        for install in self.installs:
            pip = [str(self.python), "-m", "pip", "install", "--quiet"]
            _run([*pip, *install], self.name)
        (self.folder / "ready").touch()


@dataclass(frozen=True)
class NodePeer:
    """A peer for Node.js, from npm."""

    name: str
    version: str

    @property
    def folder(self) -> Path:
        """The folder of its packages."""
        return FOLDER / self.name

    @property
    def command(self) -> Path:
        """Its command."""
        return self.folder / "node_modules" / ".bin" / self.name

    def ensure(self) -> None:
        """Install it if it is not there.

        Raises:
            SystemExit: npm is missing, or it cannot be installed.
        """
        if self.command.exists():
            return
        if shutil.which("npm") is None:
            raise SystemExit(
                f"{self.name} needs npm, which is not installed (Node.js)."
            )
        print(f"Installing {self.name} in {self.folder} ...", file=sys.stderr)
        self.folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix"]
        _run([*install, str(self.folder), f"{self.name}@{self.version}"], self.name)


def _run(command: Sequence[str], name: str) -> None:
    """Run a step of an installation, with its output on standard error.

    Raises:
        SystemExit: it fails.
    """
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    if done.returncode:
        raise SystemExit(
            f"{name} could not be installed: `{' '.join(command)}` ended with exit code"
            f" {done.returncode}. What it printed stands above; run the benchmark again to"
            " try again."
        )


LM_EVAL = Peer("lm_eval", (("torch==2.13.0",), ("lm_eval[api,hf]==0.4.13",)))
INSPECT = Peer("inspect_ai", (("inspect_ai==0.3.285", "openai"),))
BFCL = Peer("bfcl", (("--no-deps", "bfcl-eval==2026.3.23"),))
AGENTS = Peer("agents", (("mini-swe-agent", "openai"),))
OURS = Peer("evalwright", ((str(HERE.parent),),))
PROMPTFOO = NodePeer("promptfoo", "0.121.20")

PEERS: dict[str, Peer | NodePeer] = {
    peer.name: peer for peer in (LM_EVAL, INSPECT, BFCL, AGENTS, OURS, PROMPTFOO)
}
"""All peers, by name."""
