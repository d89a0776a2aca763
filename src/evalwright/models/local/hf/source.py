"""Where a model's files lie, what its small files say, and what names it by content. No torch, no transformers, no weights.

A name is a local folder where such a path exists or where it begins with '.', '/' or '~'; else it is a hub repository, of
which only the small files are fetched here. Both raise ConfigurationError, in a sentence, for what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.local.files import content_hash, read_json, templates
from evalwright.models.local.hf.hub import open_repository

ADAPTER_CONFIG = "adapter_config.json"
"""The file that makes a folder an adapter of the library peft."""


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


def find_tokenizer(name: str | None, own: Source) -> Source:
    """The tokenizer `<folder or hub repository>[@revision]`; that of `own` where no name is given."""
    if name is None:
        return own
    where, _, revision = str(name).partition("@")
    return find_source(where, revision or None, needs="tokenizer_config.json")


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

    def path(name: str) -> Path | None:
        return folder / name if (folder / name).is_file() else None

    if path(needs) is None:
        raise ConfigurationError(_lacks(f"The folder '{folder}'", needs, path(ADAPTER_CONFIG)))
    found = _read(
        path, where=str(folder), revision=None, local=True, identity={"content": content_hash(folder)}
    )
    more = sorted(folder.glob("additional_chat_templates/*.jinja"))
    extra = {each.stem: each.read_text(encoding="utf-8") for each in more}
    return replace(found, templates={**found.templates, **extra})


def _hub(name: str, revision: str | None, needs: str, subfolder: str | None) -> Source:
    inside = f"{subfolder.strip('/')}/" if subfolder else ""
    files = open_repository(name, revision, inside + needs)

    def path(file: str) -> Path | None:
        return files.path(inside + file)

    if path(needs) is None:
        at = f" at revision '{revision}'" if revision else ""
        raise ConfigurationError(
            _lacks(f"The hub repository '{name}'{at}", inside + needs, path(ADAPTER_CONFIG))
        )
    identity = {"repository": name, "revision": files.commit} | (
        {"subfolder": subfolder} if subfolder else {}
    )
    return _read(
        path, where=name, revision=files.commit, local=files.offline, identity=identity, subfolder=subfolder
    )


def _read(path: Callable[[str], Path | None], **given: Any) -> Source:
    """The source with what its small files say; the later forms of chat templates win, as in transformers."""
    tokenizer_config, legacy = (
        read_json(path(name)) for name in ("tokenizer_config.json", "chat_template.json")
    )
    jinja = path("chat_template.jinja")
    return Source(
        **given,
        config=read_json(path("config.json")),
        tokenizer_config=tokenizer_config,
        templates=templates(
            tokenizer_config.get("chat_template"),
            legacy.get("chat_template"),
            jinja.read_text(encoding="utf-8") if jinja else None,
        ),
        adapter=read_json(path(ADAPTER_CONFIG)),
    )


def _lacks(what: str, needs: str, adapter: Path | None) -> str:
    """Why a place is no model, or no adapter. adapter: where its adapter_config.json would be, or is."""
    if needs.endswith(ADAPTER_CONFIG):
        return f"{what} has no {needs}, so it is not an adapter of the library peft."
    base = read_json(adapter).get("base_model_name_or_path")
    if base is not None:
        return (
            f"{what} has no {needs}: it is an adapter. Name its base model ('{base}', as its own file says) as the model, "
            f"and the adapter as -M peft=..."
        )
    return f"{what} has no {needs}, so it is not a transformers model."
