"""Local tables in the column shape of the Korean benchmarks on the hub: our own rows, whose
facts are right, in `tests/data/hret`.

One file a benchmark: its repository, its split, and rows by configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "data" / "hret"


def table(key: str) -> Mapping[str, Any]:
    """`repository`, `split` and `tables` of a benchmark."""
    benchmark: Mapping[str, Any] = json.loads(
        (FOLDER / f"{key}.json").read_text(encoding="utf-8")
    )
    return benchmark


def write_tables(key: str, folder: Path) -> Path:
    """The tables as files, one for each configuration, named after it."""
    target = folder / key
    target.mkdir(parents=True)
    for name, rows in table(key)["tables"].items():
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (target / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return target


def hub_of_tables() -> dict[str, dict[str, dict[str, Any]]]:
    """All tables as a hub: rows by repository, configuration and split."""
    hub = {}
    for path in FOLDER.glob("*.json"):
        benchmark = table(path.stem)
        hub[benchmark["repository"]] = {
            name: {benchmark["split"]: rows}
            for name, rows in benchmark["tables"].items()
        }
    return hub
