"""The environment of a run: versions, platform and commit.

It never contains a user name, a host name, a path or a secret.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

from evalwright.core.installed import version_of

_LIBRARIES = (
    "aiohttp",
    "numpy",
    "scipy",
    "tokenizers",
    "onnxruntime",
    "torch",
    "transformers",
    "datasets",
)


def environment() -> dict[str, Any]:
    """Describe the environment: Python, platform, processors, library versions and git commit.

    The commit is that of the working folder, None where there is none.
    """
    versions = {name: version_of(name) for name in _LIBRARIES}
    libraries = {name: version for name, version in versions.items() if version}
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "processors": os.cpu_count(),
        "libraries": libraries,
        "git_commit": _git_commit(),
    }


def _git_commit() -> str | None:
    try:
        completed = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() or None if completed.returncode == 0 else None
