"""Where a model's files lie, what its small files say, and what names it by content. No torch, no transformers, no weights.

A name is a local folder where such a path exists or where it begins with '.', '/' or '~'; else it is a hub repository, of
which only the small files are fetched here. Both raise ConfigurationError, in a sentence, for what is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.local.hf.hub import open_repository

NOT_READ = (".md", ".txt.bak", ".png", ".jpg", ".pdf")
"""Endings of files in a model folder that change no answer."""
TRAINING_STATE = ("optimizer", "scheduler", "rng_state", "scaler", "trainer_state", "training_args")
ADAPTER_CONFIG = "adapter_config.json"
"""The file that makes a folder an adapter of the library peft."""
_CACHED_FROM = 1 << 20
_SETTLED_AFTER = 2.0


@dataclass(frozen=True, slots=True)
class Source:
    """A model or tokenizer, found.

    where: what transformers loads from, a path or a repository id. revision: of a repository, its commit, else None.
    local: no network is needed, or there is none: a folder, or a repository in the hub's local cache. config,
    tokenizer_config: the files of these names ({} where there is none). templates: chat templates by name, "default" first.
    identity: what goes into the fingerprint. subfolder: of a repository, where its files lie in one. adapter: what
    adapter_config.json says, {} where there is none.
    """

    where: str
    revision: str | None
    local: bool
    identity: Mapping[str, Any]
    config: Mapping[str, Any] = field(default_factory=dict)
    tokenizer_config: Mapping[str, Any] = field(default_factory=dict)
    templates: Mapping[str, str] = field(default_factory=dict)
    subfolder: str | None = None
    adapter: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path | None:
        """The folder, where the model is one."""
        return Path(self.where) if self.revision is None else None

    @property
    def quantisation(self) -> Any:
        """The quantisation that the checkpoint declares, or None."""
        return self.config.get("quantization_config")


def find_source(
    name: str, revision: str | None, *, needs: str = "config.json", subfolder: str | None = None
) -> Source:
    """The folder or hub repository of that name, which must hold the file `needs`, in `subfolder` where that is given."""
    if subfolder is not None and (Path(subfolder).is_absolute() or ".." in Path(subfolder).parts):
        raise ConfigurationError(f"subfolder={subfolder!r} must be a folder inside the model's own.")
    folder = _folder(name, revision)
    if folder is not None:
        return _local(folder / (subfolder or "."), needs)
    return _hub(name, revision, needs, subfolder)


def weight_files(folder: Path) -> list[Path]:
    """The files that hold weights in a model folder."""
    return sorted(
        path for path in folder.iterdir() if path.suffix in (".safetensors", ".bin", ".pt", ".gguf")
    )


def parameter_count(folder: Path) -> int | None:
    """How many parameters the folder's safetensors files hold, read from their headers; None for other formats."""
    total = 0
    for path in folder.glob("*.safetensors"):
        try:
            with path.open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(min(size, 100_000_000)))
        except (OSError, ValueError):
            return None
        for name, tensor in header.items():
            if name != "__metadata__":
                count = 1
                for extent in tensor["shape"]:
                    count *= extent
                total += count
    return total or None


def context_length(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> int | None:
    """How many tokens the model takes in, as its files say; None where they say nothing."""
    text = config.get("text_config")
    for part in (text if isinstance(text, Mapping) else {}, config):
        for key in ("n_positions", "max_position_embeddings", "n_ctx"):
            if isinstance(part.get(key), int):
                return int(part[key])
    longest = tokenizer_config.get("model_max_length")
    # Tokenizers without a limit say 1e30.
    return int(longest) if isinstance(longest, (int, float)) and 0 < longest < 1e9 else None


def _folder(name: str, revision: str | None) -> Path | None:
    path = Path(name).expanduser()
    if revision is not None:
        whole = Path(f"{name}@{revision}").expanduser()
        if whole.exists():  # a folder with '@' in its name
            return whole
    if path.exists() or name.startswith((".", "/", "~")) or "\\" in name:
        if revision is not None:
            raise ConfigurationError(f"The model folder '{name}' has no revisions: leave out '{revision}'.")
        return path
    return None


def _local(folder: Path, needs: str) -> Source:
    if not folder.exists():
        raise ConfigurationError(f"There is no model folder '{folder}'. Check the path.")
    if not folder.is_dir():
        raise ConfigurationError(
            f"'{folder}' is a file; a transformers model is a folder with config.json, weights and a tokenizer."
        )
    if not (folder / needs).is_file():
        raise ConfigurationError(_lacks(f"The folder '{folder}'", needs, folder / ADAPTER_CONFIG))
    tokenizer_config = _read_json(folder / "tokenizer_config.json")
    extra = {}
    for path in sorted(folder.glob("additional_chat_templates/*.jinja")):
        extra[path.stem] = path.read_text(encoding="utf-8")
    jinja = folder / "chat_template.jinja"
    return Source(
        where=str(folder),
        revision=None,
        local=True,
        identity={"content": content_hash(folder)},
        config=_read_json(folder / "config.json"),
        tokenizer_config=tokenizer_config,
        templates=_templates(
            tokenizer_config,
            _read_json(folder / "chat_template.json"),
            jinja.read_text(encoding="utf-8") if jinja.is_file() else None,
        )
        | extra,
        adapter=_read_json(folder / ADAPTER_CONFIG),
    )


def _hub(name: str, revision: str | None, needs: str, subfolder: str | None) -> Source:
    inside = f"{subfolder.strip('/')}/" if subfolder else ""
    files = open_repository(name, revision, inside + needs)
    if files.path(inside + needs) is None:
        at = f" at revision '{revision}'" if revision else ""
        raise ConfigurationError(
            _lacks(f"The hub repository '{name}'{at}", inside + needs, files.path(inside + ADAPTER_CONFIG))
        )
    config, tokenizer_config, legacy, adapter = (
        _read_json(path) if (path := files.path(inside + file)) else {}
        for file in ("config.json", "tokenizer_config.json", "chat_template.json", ADAPTER_CONFIG)
    )
    jinja = files.path(inside + "chat_template.jinja")
    return Source(
        where=name,
        revision=files.commit,
        local=files.offline,
        identity={"repository": name, "revision": files.commit}
        | ({"subfolder": subfolder} if subfolder else {}),
        config=config,
        tokenizer_config=tokenizer_config,
        templates=_templates(tokenizer_config, legacy, jinja.read_text(encoding="utf-8") if jinja else None),
        subfolder=subfolder,
        adapter=adapter,
    )


def _lacks(what: str, needs: str, adapter: Path | None) -> str:
    """Why a place is no model, or no adapter. adapter: where its adapter_config.json would be, or is."""
    if needs.endswith(ADAPTER_CONFIG):
        return f"{what} has no {needs}, so it is not an adapter of the library peft."
    base = _read_json(adapter).get("base_model_name_or_path") if adapter is not None else None
    if base is not None:
        return (
            f"{what} has no {needs}: it is an adapter. Name its base model ('{base}', as its own file says) as the model, "
            f"and the adapter as -M peft=..."
        )
    return f"{what} has no {needs}, so it is not a transformers model."


def _templates(
    tokenizer_config: Mapping[str, Any], legacy: Mapping[str, Any], jinja: str | None
) -> dict[str, str]:
    """All chat templates by name; the later forms win over the earlier ones, as in transformers."""
    out: dict[str, str] = {}
    for declared in (tokenizer_config.get("chat_template"), legacy.get("chat_template"), jinja):
        if isinstance(declared, str) and declared:
            out["default"] = declared
        elif isinstance(declared, list):
            out |= {entry["name"]: entry["template"] for entry in declared if isinstance(entry, Mapping)}
    return out


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"The model's file '{path}' cannot be read as JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"The model's file '{path}' does not hold a JSON object.")
    return data


# --- names by content -----------------------------------------------------------------------------------------------


def content_hash(folder: Path) -> str:
    """A hash over the names and contents of the folder's files; training state, pictures and Markdown are left out."""
    whole = hashlib.blake2b(digest_size=16)
    files = [path for path in folder.iterdir() if path.is_file() and _is_read(path.name)]
    for path in sorted([*files, *folder.glob("additional_chat_templates/*.jinja")]):
        whole.update(f"{path.relative_to(folder).as_posix()}\0{_file_hash(path)}\n".encode())
    return whole.hexdigest()


def _is_read(name: str) -> bool:
    return not name.startswith((".", *TRAINING_STATE)) and not name.endswith(NOT_READ)


def _file_hash(path: Path) -> str:
    """The hash of one file; that of a large file is kept under `$EVALWRIGHT_HOME` by its path, size and time."""
    status = path.stat()
    if status.st_size < _CACHED_FROM:
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
    key = [str(path.resolve()), status.st_size, status.st_mtime_ns]
    home = Path(os.environ.get("EVALWRIGHT_HOME", ".evalwright")) / "hashes"
    note = home / f"{hashlib.blake2b(str(key[0]).encode(), digest_size=16).hexdigest()}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["key"] == key:
            return str(known["hash"])
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    # A file written a moment ago may change again within the clock's step, so it is not settled yet.
    if time.time() - status.st_mtime > _SETTLED_AFTER:
        with suppress(OSError):
            _write_note(note, {"key": key, "hash": found})
    return found


def _write_note(note: Path, data: Mapping[str, Any]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=note.parent, suffix=".part")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(data, file)
    Path(temporary).replace(note)
