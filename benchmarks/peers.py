"""Environments of the peers that we are measured against, each with its pinned release and nothing
else.
"""

from __future__ import annotations

import subprocess
import sys
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
    def python(self) -> Path:
        """The interpreter of its environment."""
        return FOLDER / self.name / "bin" / "python"

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.python.parent

    def ensure(self) -> None:
        """Make the environment if it is not there."""
        if (FOLDER / self.name / "ready").exists():
            return
        print(f"Installing {self.name} in an environment of its own ...", flush=True)
        subprocess.run(
            [sys.executable, "-m", "venv", str(FOLDER / self.name)], check=True
        )
        for install in self.installs:
            subprocess.run(
                [str(self.python), "-m", "pip", "install", "--quiet", *install],
                check=True,
            )
        (FOLDER / self.name / "ready").touch()


LM_EVAL = Peer("lm_eval", (("torch==2.13.0",), ("lm_eval[api,hf]==0.4.13",)))
INSPECT = Peer("inspect_ai", (("inspect_ai==0.3.285", "openai"),))
OURS = Peer("evalwright", ((str(HERE.parent),),))
