"""Keeps libraries from writing progress bars, log lines and warnings into the output.

It also pauses the garbage collector while they are imported.
"""

from __future__ import annotations

import gc
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

logger = logging.getLogger("evalwright.models.local.hf")

_LIBRARIES = (
    "transformers",
    "huggingface_hub",
    "torch",
    "tokenizers",
    "accelerate",
    "peft",
    "bitsandbytes",
)


def verbose() -> bool:
    """Return whether the user wants to see everything: the logger `evalwright` is at DEBUG."""
    return logger.isEnabledFor(logging.DEBUG)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers and huggingface_hub within the block.

    Only libraries that are already imported are changed; their settings are restored afterwards.
    """
    if verbose():
        yield
        return
    with ExitStack() as undo:
        if "transformers" in sys.modules:
            from transformers.utils import logging as transformers

            bars = transformers.is_progress_bar_enabled()
            _hush(
                undo,
                transformers,
                bars,
                transformers.disable_progress_bar,
                transformers.enable_progress_bar,
            )
        if "huggingface_hub" in sys.modules:
            from huggingface_hub import utils as hub

            bars = not hub.are_progress_bars_disabled()
            _hush(
                undo,
                hub.logging,
                bars,
                hub.disable_progress_bars,
                hub.enable_progress_bars,
            )
        undo.enter_context(warnings.catch_warnings())
        for library in _LIBRARIES:
            warnings.filterwarnings("ignore", module=rf"{library}(\..*)?")
        yield


def _hush(undo: ExitStack, logs: Any, bars: bool, disable: Any, enable: Any) -> None:
    """Turn off one library's log and progress bars until `undo` closes."""
    undo.callback(logs.set_verbosity, logs.get_verbosity())
    logs.set_verbosity_error()
    if bars:
        undo.callback(enable)
        disable()


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause garbage collection within the block.

    The thousands of classes that torch and transformers create are not garbage.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
