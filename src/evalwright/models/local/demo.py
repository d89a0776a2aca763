"""`demo/small` and `demo/large`: two small built-in transformers, for a first look offline.

They are real models, run by the `onnx` backend. They were deliberately trained on part of the
answers of the bundled benchmark, so their scores say nothing about anything else; their model cards
say how.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.core.errors import check_known
from evalwright.models.local.onnx.onnx_model import OnnxModel

EMBEDDED = Path(__file__).parent / "embedded"
"""A folder `demo-<name>` for each model."""

_PREFIX = "demo-"


def demo_names() -> list[str]:
    """Return the names of the embedded models, sorted."""
    return sorted(
        path.parent.name.removeprefix(_PREFIX)
        for path in EMBEDDED.glob(f"{_PREFIX}*/model.onnx")
    )


def check_demo_name(name: str) -> None:
    """Raise UnknownName for a model that does not come with the package."""
    names = demo_names()
    check_known("demonstration model", [name], names)


def demo_model(
    name: str,
    *,
    threads: int | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    chat_template: str | bool | None = None,
) -> OnnxModel:
    """Open an embedded model; the arguments are those of `OnnxModel`.

    Raises:
        UnknownName: there is no such model.
    """
    check_demo_name(name)
    options: dict[str, Any] = {"threads": threads, "batch_size": batch_size}
    model = OnnxModel(
        str(EMBEDDED / f"{_PREFIX}{name}"),
        max_length=max_length,
        chat_template=chat_template,
        **options,
    )
    model.name = f"demo/{name}"
    return model
