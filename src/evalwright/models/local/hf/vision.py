"""Prompts with images: the model's own processor makes tokens and pixels from the rendered text.

Only the first frame of an image is used, rotated as its EXIF data say. Such prompts are answered
one by one, by transformers' own loop.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import torch

from evalwright.core.errors import ConfigurationError, MissingExtra, Rejected
from evalwright.core.images import Image
from evalwright.core.requests import Generate, images_of
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.tokens import RenderPrompt

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


@dataclass(frozen=True, slots=True)
class Vision:
    """A loaded processor. `render` returns the prompt as text, and the rules of its tokens."""

    processor: Any
    model: Any
    device: str
    render: RenderPrompt

    def inputs(self, request: Generate) -> dict[str, Any]:
        """Make the model's inputs for a request.

        Raises:
            Rejected: an image cannot be decoded, or the processor refuses.
        """
        text, rules = self.render(request.prompt, request.tools)
        pictures = [_decode(image) for image in images_of(request)]
        try:
            with quiet():
                processed = self.processor(
                    text=[text],
                    images=pictures,
                    return_tensors="pt",
                    add_special_tokens=rules.add_special_tokens,
                )
        except Exception as error:  # a processor can raise any exception
            reason = " ".join(str(error).split())[:300]
            raise Rejected(
                f"The model's processor does not take this prompt with {len(pictures)}"
                f" images: {reason or type(error).__name__}."
            ) from error
        inputs = {
            name: tensor.to(self.device)
            for name, tensor in processed.items()
            if torch.is_tensor(tensor)
        }
        number = self.model.dtype  # the pixels' number format
        return {
            name: tensor.to(number) if tensor.is_floating_point() else tensor
            for name, tensor in inputs.items()
        }


def load_processor(source: Checkpoint, arguments: Mapping[str, Any]) -> Any:
    """Load the processor of a checkpoint.

    Raises:
        ConfigurationError: it cannot be loaded.
        MissingExtra: a library that it needs is not installed.
    """
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise MissingExtra("A model that sees images", "hf", "pillow") from None
    from transformers import AutoProcessor

    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return AutoProcessor.from_pretrained(source.where, **arguments)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ConfigurationError(
            f"The processor of '{source.where}', which images need, cannot be loaded:"
            f" {reason or type(error).__name__}."
        ) from error


def _decode(image: Image) -> Any:
    """Decode an image to RGB."""
    from PIL import Image as Pictures
    from PIL import ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Pictures.open(BytesIO(image.data), formats=_FORMATS) as picture:
                return ImageOps.exif_transpose(picture).convert("RGB")
    except Exception as error:  # a damaged file can raise any exception
        raise Rejected(
            f"The image '{image.source}' cannot be decoded:"
            f" {' '.join(str(error).split())[:200] or type(error).__name__}."
        ) from None
