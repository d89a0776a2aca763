"""The committed script and style of the explorer are those that its source gives."""

from __future__ import annotations

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "src" / "evalwright" / "reports" / "explorer" / "assets"


def test_the_committed_files_are_not_stale() -> None:
    web = ROOT / "web"
    found = [
        path
        for path in (web / "src").rglob("*")
        if path.suffix in (".ts", ".tsx", ".css")
    ]
    names = [path.relative_to(web).as_posix() for path in found]
    digest = hashlib.sha256()
    for name in sorted([*names, "package.json", "tsconfig.json", "vite.config.ts"]):
        digest.update(name.encode() + b"\0" + (web / name).read_bytes() + b"\0")
    recorded = (ASSETS / "sources.sha256").read_text().strip()
    assert recorded == digest.hexdigest(), (
        "web/ was changed: make explorer, and commit what it wrote"
    )
