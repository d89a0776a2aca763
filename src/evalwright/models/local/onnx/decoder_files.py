"""The files of an exported decoder model: the model file, its configuration, its tokenizer.

The layout is the common one: `model.onnx` (or `onnx/model.onnx`), `config.json`, `tokenizer.json`,
and optionally `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`. Weights
may be beside the model file (`model.onnx_data`). Reading these files loads no heavy library; the
tokenizer is opened by `open_tokenizer`.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.local.model_files import (
    file_hash,
    read_json,
    special_tokens,
    templates,
)

DEFAULT_MAX_LENGTH = 2048
"""Tokens of context if neither the configuration nor the user says how many."""

_LOCATION = re.compile(
    rb"\x0a\x08location\x12(?=([\x01-\x7f][^\x00]{1,127}))", re.DOTALL
)
"""The protobuf encoding of a location entry: its key, and its value after a length of one byte."""
_LENGTH_KEYS = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "max_sequence_length",
    "seq_length",
)


@dataclass(frozen=True, slots=True)
class ExportedFolder:
    """An exported model on disk. `files` has all files that can change an answer, by name."""

    folder: Path
    model_file: Path
    config: Mapping[str, Any]
    generation_config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    files: Mapping[str, Path]

    @property
    def size(self) -> int:
        """Bytes of the model file and the weights beside it."""
        return sum(
            path.stat().st_size
            for name, path in self.files.items()
            if name.startswith(("model", "weights/"))
        )

    @property
    def max_length(self) -> int:
        """Tokens of context, by the configuration, else the tokenizer's, else 2,048."""
        lengths = [self.config.get(key) for key in _LENGTH_KEYS]
        longest = self.tokenizer_config.get("model_max_length")
        # Tokenizer configurations state a very large number for no limit.
        lengths.append(
            longest if isinstance(longest, int) and longest < 10_000_000 else None
        )
        known_lengths = (
            length for length in lengths if isinstance(length, int) and length > 0
        )
        return next(known_lengths, DEFAULT_MAX_LENGTH)

    @property
    def chat_template(self) -> str | None:
        """The model's own chat template, if it has one; of several named ones, the default."""
        if path := self.files.get("chat_template.jinja"):
            return path.read_text(encoding="utf-8")
        return templates(self.tokenizer_config.get("chat_template")).get("default")

    def special_tokens(self) -> dict[str, str]:
        """Special tokens as text by their role ("bos_token"), for templates and lookups."""
        return special_tokens(self.tokenizer_config)

    def hashes(self) -> dict[str, str]:
        """Return a content hash for every file in `files`."""
        return {name: file_hash(path) for name, path in sorted(self.files.items())}


class JsonTokenizer:
    """A `tokenizer.json` as an `Encoder`: no padding, no truncation, no clean-up of spaces."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        # The library raises a bare Exception for a file that it cannot read.
        except Exception as error:
            raise ConfigurationError(
                f"'{path}' is not a tokenizer file: {error}"
            ) from None
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def encode(self, text: str, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a text."""
        ids: list[int] = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens
        ).ids
        return ids

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool) -> str:
        """Return the text of tokens."""
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=skip_special_tokens
        )
        return text

    def token(self, text: str | None) -> int | None:
        """Return the number of a token written as text; None if the vocabulary lacks it."""
        token_id: int | None = (
            None if text is None else self._tokenizer.token_to_id(text)
        )
        return token_id


def read_folder(name: str, file: str | None) -> ExportedFolder:
    """Read the exported model in a folder, or the one at `file` (relative to it).

    Raises:
        ConfigurationError: the folder, a model file or the tokenizer is missing.
        UnknownName: there is no such `file`.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise ConfigurationError(
            f"There is no folder '{name}'. An 'onnx/...' model is the path of a folder"
            " with an exported model in it (model.onnx, config.json, tokenizer.json)."
        )
    model_file = _model_file(folder, file)
    tokenizer = _find_file(folder, model_file, "tokenizer.json")
    if tokenizer is None:
        raise ConfigurationError(
            f"'{folder}' has no tokenizer.json, so text cannot be tokenised. Export the"
            " model together with its tokenizer."
        )
    weights = sorted(
        path
        for path in model_file.parent.glob(f"{escape(model_file.name)}*")
        if not path.is_dir()
    )
    files = {"model" + path.name[len(model_file.name) :]: path for path in weights}
    beside = {name: model_file.parent / name for name in _external_data(model_file)}
    files |= {
        f"weights/{name}": path for name, path in beside.items() if path not in weights
    }
    files["tokenizer.json"] = tokenizer
    for optional in (
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    ):
        if path := _find_file(folder, model_file, optional):
            files[optional] = path
    return ExportedFolder(
        folder=folder,
        model_file=model_file,
        config=read_json(files.get("config.json")),
        generation_config=read_json(files.get("generation_config.json")),
        tokenizer_config=read_json(files.get("tokenizer_config.json")),
        files=files,
    )


def _external_data(model_file: Path) -> list[str]:
    """List the weight files that a model file names: entries `location` of its tensors."""
    if model_file.stat().st_size == 0:
        return []
    with (
        model_file.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        names = {
            match[1][1 : 1 + match[1][0]].decode("utf-8", "replace")
            for match in _LOCATION.finditer(content)
        }
    return sorted(
        name for name in names if name and (model_file.parent / name).exists()
    )


def _model_file(folder: Path, file: str | None) -> Path:
    model_files = sorted(folder.glob("*.onnx")) + sorted(folder.glob("onnx/*.onnx"))
    names = [path.relative_to(folder).as_posix() for path in model_files]
    if file is not None:
        if (folder / file).is_file():
            return folder / file
        hint = (
            f"The folder has: {', '.join(names)}."
            if names
            else "The folder has no .onnx file at all."
        )
        raise UnknownName(f"file in '{folder}'", file, names, hint)
    for usual in ("model.onnx", "onnx/model.onnx"):
        if usual in names:
            return folder / usual
    if not model_files:
        raise ConfigurationError(
            f"'{folder}' has no .onnx file, neither directly nor in its folder 'onnx'."
        )
    if len(model_files) > 1:
        raise ConfigurationError(
            f"'{folder}' has several models ({', '.join(names)}); name one with -M"
            f" file={names[0]}."
        )
    return model_files[0]


def _find_file(folder: Path, model_file: Path, name: str) -> Path | None:
    """Find a file in the folder, or else in the folder of the model file."""
    return next(
        (path for path in (folder / name, model_file.parent / name) if path.is_file()),
        None,
    )
