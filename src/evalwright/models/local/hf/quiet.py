"""Keeps third-party libraries from writing over the run's own output: their progress bars, log lines and warnings."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger("evalwright.models.local.hf")


def verbose() -> bool:
    """Whether the person asked to see everything: the logger `evalwright` is at DEBUG."""
    return logger.isEnabledFor(logging.DEBUG)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers and huggingface_hub within the block, and leave their settings as they were.

    Only libraries that are imported already are touched.
    """
    if verbose():
        yield
        return
    undo = [_silence_transformers(), _silence_hub()]
    try:
        with warnings.catch_warnings():
            for library in (
                "transformers",
                "huggingface_hub",
                "torch",
                "tokenizers",
                "accelerate",
                "peft",
                "bitsandbytes",
            ):
                warnings.filterwarnings("ignore", module=rf"{library}(\..*)?")
            yield
    finally:
        for restore in undo:
            restore()


def _silence_transformers() -> Any:
    if "transformers" not in sys.modules:
        return _nothing
    from transformers.utils import logging as library

    level, bars = library.get_verbosity(), library.is_progress_bar_enabled()
    library.set_verbosity_error()
    library.disable_progress_bar()

    def restore() -> None:
        library.set_verbosity(level)
        if bars:
            library.enable_progress_bar()

    return restore


def _silence_hub() -> Any:
    if "huggingface_hub" not in sys.modules:
        return _nothing
    from huggingface_hub import utils

    bars, level = not utils.are_progress_bars_disabled(), utils.logging.get_verbosity()
    utils.disable_progress_bars()
    utils.logging.set_verbosity_error()

    def restore() -> None:
        utils.logging.set_verbosity(level)
        if bars:
            utils.enable_progress_bars()

    return restore


def _nothing() -> None:
    pass
