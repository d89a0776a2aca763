"""The table of what HRET sends, looks for and takes: prompts, markers, data sets, parameters with
their defaults.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from evalwright.compat.hret.row_samples import Given


@cache
def tables() -> Given:
    """All of it, by its sections."""
    import tomllib

    text = (resources.files("evalwright.compat.hret") / "tables.toml").read_text(
        encoding="utf-8"
    )
    return tomllib.loads(text)
