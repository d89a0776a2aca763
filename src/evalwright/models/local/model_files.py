"""Reads the small files beside a model's weights, and hashes content.

It loads no torch, no transformers and no weights.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.file_hashes import hash_file
from evalwright.core.private import check_ordinary

IGNORED_SUFFIXES = (".md", ".txt.bak", ".png", ".jpg", ".pdf")
"""Suffixes of files in a model folder that cannot change an answer."""
TRAINING_STATE = (
    "optimizer",
    "scheduler",
    "rng_state",
    "scaler",
    "trainer_state",
    "training_args",
)


def read_json(path: Path | None, kind: type = dict) -> Any:
    """Read a small JSON file; an empty object if there is no file.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    if path is None or not path.is_file():
        return kind()
    try:
        content = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The model's file '{path}' cannot be read as JSON: {error}."
        ) from error
    if not isinstance(content, kind):
        shape = "object" if kind is dict else "list"
        raise ConfigurationError(f"The model's file '{path}' is not a JSON {shape}.")
    return content


def templates(*declared: Any) -> dict[str, str]:
    """Collect all chat templates by name, from texts and lists of named ones; later ones win."""
    by_name: dict[str, str] = {}
    for declaration in declared:
        if isinstance(declaration, str) and declaration:
            by_name["default"] = declaration
        elif isinstance(declaration, list):
            by_name |= {
                template["name"]: template["template"]
                for template in declaration
                if isinstance(template, Mapping)
            }
    return by_name


def context_length(
    config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> int | None:
    """Return the tokens of the model's context, as its files say; None if they do not."""
    text = config.get("text_config")
    for part_config in (text if isinstance(text, Mapping) else {}, config):
        for key in ("n_positions", "max_position_embeddings", "n_ctx"):
            if isinstance(part_config.get(key), int):
                return int(part_config[key])
    longest = tokenizer_config.get("model_max_length")
    # Tokenizers without a limit state 1e30.
    return (
        int(longest)
        if isinstance(longest, (int, float)) and 0 < longest < 1e9
        else None
    )


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files in a model folder."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in (".safetensors", ".bin", ".pt", ".gguf")
    )


def parameter_count(folder: Path) -> int | None:
    """Count the parameters, from the headers of safetensors files; None for other formats."""
    total = 0
    for path in folder.glob("*.safetensors"):
        try:
            with check_ordinary(path).open("rb") as file:
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
    """Hash a model's files, to name it by its content.

    Training state, pictures and Markdown are left out. Weights that an index names are hashed
    wherever they are.

    Args:
        folder: the folder with the files, or one file.

    Returns:
        32 hexadecimal digits; those of large files are cached in the home folder.

    Raises:
        ConfigurationError: a file cannot be read.
    """
    if folder.is_file():
        return file_hash(folder)
    digest = hashlib.blake2b(digest_size=16)
    files = {
        path.name: path
        for path in folder.iterdir()
        if not path.name.startswith((".", *TRAINING_STATE))
        and not path.name.endswith(IGNORED_SUFFIXES)
        if path.exists() and not path.is_dir()
    }
    chat_templates = folder.glob("additional_chat_templates/*.jinja")
    files |= {path.relative_to(folder).as_posix(): path for path in chat_templates}
    for index in folder.glob("*.index.json"):
        shards = read_json(index).get("weight_map")
        named = (
            {str(name) for name in shards.values()}
            if isinstance(shards, Mapping)
            else set()
        )
        files |= {name: folder / name for name in named if (folder / name).exists()}
    for name, path in sorted(files.items(), key=lambda pair: folder / pair[0]):
        digest.update(f"{name}\0{file_hash(path)}\n".encode())
    return digest.hexdigest()


def file_hash(path: Path) -> str:
    """Return the BLAKE2b hash of a file; a large file's is noted with its path and state.

    Raises:
        ConfigurationError: it cannot be read, or is a pipe or a device, for which a loader would
            wait for ever.
    """
    try:
        return hash_file(path)
    except OSError as error:
        raise ConfigurationError(
            f"The model's file '{path}' cannot be read: {error.strerror}."
        ) from None


def special_tokens(tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    """Return special tokens as text by their role ("bos_token"), for templates and lookups."""
    tokens = {}
    for role in ("bos_token", "eos_token", "pad_token", "unk_token"):
        token = tokenizer_config.get(role)
        text = token.get("content") if isinstance(token, dict) else token
        if isinstance(text, str):
            tokens[role] = text
    return tokens


def special_token_ids(
    folder: Path | None, tokenizer_config: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Return special tokens by role ("bos_token"), as [text, id], from a tokenizer's folder."""
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
    """Return special tokens of a transformers tokenizer by role, each as [text, id]."""
    roles = ("bos_token", "eos_token", "pad_token", "unk_token")
    tokens = {
        role: (getattr(tokenizer, role, None), getattr(tokenizer, f"{role}_id", None))
        for role in roles
    }
    return {
        role: [str(text), int(token_id)]
        for role, (text, token_id) in tokens.items()
        if token_id is not None
    }
