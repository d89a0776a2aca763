"""`demo/small` and `demo/large`: two small transformers that come with the package, for a first
look without a download.

They are real models, run by the `onnx` backend. They were trained, on purpose, on part of the
answers of the bundled benchmark, so what they score says nothing about anything else; their cards
say how.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.core.errors import check_known
from evalwright.models.local.onnx.model import OnnxModel

EMBEDDED = Path(__file__).parent / "embedded"
"""A folder `demo-<name>` for each model."""

_PREFIX = "demo-"


def demo_names() -> list[str]:
    """The models that are there, sorted."""
    return sorted(
        path.parent.name.removeprefix(_PREFIX)
        for path in EMBEDDED.glob(f"{_PREFIX}*/model.onnx")
    )


def check_demo_name(name: str) -> None:
    """Raises UnknownName for a model that does not come with the package."""
    known = demo_names()
    check_known("demonstration model", [name], known)


def demo_model(
    name: str,
    *,
    threads: int | None = None,
    batch_size: int | None = None,
    max_length: int | None = None,
    chat_template: str | bool | None = None,
) -> OnnxModel:
    """Open an embedded model; the arguments are those of `OnnxModel`.

    Raises UnknownName for a name that is not there.
    """
    check_demo_name(name)
    given: dict[str, Any] = {"threads": threads, "batch_size": batch_size}
    model = OnnxModel(
        str(EMBEDDED / f"{_PREFIX}{name}"),
        max_length=max_length,
        chat_template=chat_template,
        **given,
    )
    model.name = f"demo/{name}"
    return model
