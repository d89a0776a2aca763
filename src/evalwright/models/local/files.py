"""The small files beside a model's weights, and names by content.

No torch, no transformers, no weights.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.private import home_folder, ordinary, private_folder

NOT_READ = (".md", ".txt.bak", ".png", ".jpg", ".pdf")
"""Endings of files in a model folder that change no answer."""
TRAINING_STATE = (
    "optimizer",
    "scheduler",
    "rng_state",
    "scaler",
    "trainer_state",
    "training_args",
)
_CACHED_FROM = 1 << 20
_SETTLED_AFTER = 2.0


def read_json(path: Path | None, kind: type = dict) -> Any:
    """What a small file says; an empty one of its kind where there is none.

    Raises ConfigurationError.
    """
    if path is None or not path.is_file():
        return kind()
    try:
        data = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The model's file '{path}' cannot be read as JSON: {error}."
        ) from error
    if not isinstance(data, kind):
        shape = "object" if kind is dict else "list"
        raise ConfigurationError(f"The model's file '{path}' is not a JSON {shape}.")
    return data


def templates(*declared: Any) -> dict[str, str]:
    """All chat templates by name, from texts and lists of named ones; the later forms win over the
    earlier ones.
    """
    out: dict[str, str] = {}
    for each in declared:
        if isinstance(each, str) and each:
            out["default"] = each
        elif isinstance(each, list):
            out |= {
                entry["name"]: entry["template"]
                for entry in each
                if isinstance(entry, Mapping)
            }
    return out


def context_length(
    config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> int | None:
    """How many tokens the model takes in, as its files say; None where they say nothing."""
    text = config.get("text_config")
    for part in (text if isinstance(text, Mapping) else {}, config):
        for key in ("n_positions", "max_position_embeddings", "n_ctx"):
            if isinstance(part.get(key), int):
                return int(part[key])
    longest = tokenizer_config.get("model_max_length")
    # Tokenizers without a limit say 1e30.
    return (
        int(longest)
        if isinstance(longest, (int, float)) and 0 < longest < 1e9
        else None
    )


def weight_files(folder: Path) -> list[Path]:
    """The files that hold weights in a model folder."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in (".safetensors", ".bin", ".pt", ".gguf")
    )


def parameter_count(folder: Path) -> int | None:
    """How many parameters the folder's safetensors files hold, read from their headers; None for
    other formats.
    """
    total = 0
    for path in folder.glob("*.safetensors"):
        try:
            with ordinary(path).open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                header = from_json(file.read(min(size, 100_000_000)))
        except (OSError, ValueError):
            return None
        total += sum(
            math.prod(tensor["shape"])
            for name, tensor in header.items()
            if name != "__metadata__"
        )
    return total or None


def content_hash(folder: Path) -> str:
    """A hash over the names and contents of the folder's files; training state, pictures and
    Markdown are left out.

    Weights that an index names are hashed wherever they lie.
    """
    whole = hashlib.blake2b(digest_size=16)
    files = {
        path.name: path
        for path in folder.iterdir()
        if not path.name.startswith((".", *TRAINING_STATE))
        and not path.name.endswith(NOT_READ)
        if path.exists() and not path.is_dir()
    }
    more = folder.glob("additional_chat_templates/*.jinja")
    files |= {path.relative_to(folder).as_posix(): path for path in more}
    for index in folder.glob("*.index.json"):
        shards = read_json(index).get("weight_map")
        named = (
            {str(name) for name in shards.values()}
            if isinstance(shards, Mapping)
            else set()
        )
        files |= {name: folder / name for name in named if (folder / name).exists()}
    for name, path in sorted(files.items(), key=lambda pair: folder / pair[0]):
        whole.update(f"{name}\0{file_hash(path)}\n".encode())
    return whole.hexdigest()


def file_state(path: Path) -> list[int]:
    """What changes with a file's content: also where its size and time are put back, the time of
    its last change is not.
    """
    status = path.stat()
    return [
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    ]


def file_hash(path: Path) -> str:
    """The BLAKE2b hash of one file; that of a large file is kept in the home folder by its path and
    state.

    Raises ConfigurationError for a pipe or a device: whatever loads the model would wait for it
    without end.
    """
    try:
        state = file_state(ordinary(path))
    except OSError as error:
        raise ConfigurationError(
            f"The model's file '{path}' cannot be read: {error.strerror}."
        ) from None
    if state[0] < _CACHED_FROM:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    key = [str(path.resolve()), *state]
    home = home_folder() / "hashes"
    note = (
        home
        / f"{hashlib.blake2b(str(key[0]).encode(), digest_size=16).hexdigest()}.json"
    )
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = from_json(note.read_text(encoding="utf-8"))
        if known["key"] == key:
            return str(known["hash"])
    with path.open("rb") as file:
        found = hashlib.file_digest(
            file, lambda: hashlib.blake2b(digest_size=16)
        ).hexdigest()
    # A file written a moment ago may change again within the clock's step, so it is not settled
    # yet.
    if (
        time.time() - max(state[1:3]) / 1e9 > _SETTLED_AFTER
        and file_state(path) == state
    ):
        with suppress(OSError):
            _write_note(note, {"key": key, "hash": found})
    return found


def _write_note(note: Path, data: Mapping[str, Any]) -> None:
    private_folder(note.parent)
    handle, temporary = tempfile.mkstemp(dir=note.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(data, file)
    Path(temporary).replace(note)


def special_tokens(tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    """Special tokens as text by their role ("bos_token"), for templates and lookups."""
    found = {}
    for role in ("bos_token", "eos_token", "pad_token", "unk_token"):
        value = tokenizer_config.get(role)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[role] = text
    return found


def special_token_ids(
    folder: Path | None, tokenizer_config: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Special tokens by role ("bos_token"), each as [text, id], as far as a tokenizer's folder
    says.
    """
    if folder is None or not (folder / "tokenizer.json").is_file():
        return {}
    added = read_json(folder / "tokenizer.json").get("added_tokens") or []
    ids = {
        token["content"]: token["id"] for token in added if isinstance(token, Mapping)
    }
    return {
        role: [text, ids[text]]
        for role, text in special_tokens(tokenizer_config).items()
        if text in ids
    }


def special_tokens_of(tokenizer: Any) -> dict[str, list[Any]]:
    """Those of a tokenizer of transformers, in the same form."""
    roles = ("bos_token", "eos_token", "pad_token", "unk_token")
    found = {
        role: (getattr(tokenizer, role, None), getattr(tokenizer, f"{role}_id", None))
        for role in roles
    }
    return {
        role: [str(text), int(place)]
        for role, (text, place) in found.items()
        if place is not None
    }
