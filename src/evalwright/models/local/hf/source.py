"""Where a model's files lie, what its small files say, and what names it by content.

No torch, no transformers, no weights.

A name is a local folder where such a path exists or where it begins with '.', '/' or '~'; else it
is a hub repository, of which only the small files are fetched here. Both raise ConfigurationError,
in a sentence, for what is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, MissingExtra, ModelError
from evalwright.models.local.files import content_hash, read_json, templates
from evalwright.models.local.hf.quiet import quiet

ADAPTER_CONFIG = "adapter_config.json"
"""The file that makes a folder an adapter of the library peft."""

PROMPT_METHODS = (
    "PROMPT_TUNING",
    "MULTITASK_PROMPT_TUNING",
    "P_TUNING",
    "PREFIX_TUNING",
    "CPT",
)
"""Methods that put learnt tokens in front of every input instead of changing weights."""

PATIENCE = 15.0
"""Seconds to wait for the hub before its local cache is used."""


_READ_AS_TEXT = frozenset(
    ("dots3_note", "emu3", "llama4", "mllama", "qwen3_5", "qwen3_5_moe", "qwen4_exp")
)
"""Architectures of which transformers has a model for text alone, which is used."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model or tokenizer, found.

    where: what transformers loads from, a path or a repository id. revision: of a repository, its
    commit, else None. local: no network is needed, or there is none: a folder, or a repository in
    the hub's local cache. config, tokenizer_config: the files of these names ({} where there is
    none). templates: chat templates by name, "default" first. identity: what goes into the
    fingerprint. subfolder: of a repository, where its files lie in one. adapter: what
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
    def sees_images(self) -> bool:
        """Whether the model takes images beside text."""
        kind = self.config.get("model_type")
        return (
            isinstance(self.config.get("vision_config"), Mapping)
            and kind not in _READ_AS_TEXT
        )

    @property
    def folder(self) -> Path | None:
        """The folder, where the model is one."""
        return Path(self.where) if self.revision is None else None

    def require_unchanged(self) -> None:
        """Raise ModelError where the folder holds something else than when the fingerprint was made
        of it.
        """
        if (
            self.folder is not None
            and content_hash(self.folder) != self.identity["content"]
        ):
            raise ModelError(
                f"The files in '{self.where}' were changed after the run had begun. Run"
                " the same command again."
            )

    @property
    def quantisation(self) -> Any:
        """The quantisation that the checkpoint declares, or None."""
        return self.config.get("quantization_config")


def find_source(
    name: str,
    revision: str | None,
    *,
    needs: str = "config.json",
    subfolder: str | None = None,
) -> Checkpoint:
    """The folder or hub repository of that name, which must hold the file `needs`, in `subfolder`
    where that is given.
    """
    if subfolder is not None and (
        Path(subfolder).is_absolute() or ".." in Path(subfolder).parts
    ):
        raise ConfigurationError(
            f"subfolder={subfolder!r} must be a folder inside the model's own."
        )
    folder = _folder(name, revision)
    if folder is not None:
        return _local(folder / (subfolder or "."), needs)
    return _hub(name, revision, needs, subfolder)


def find_tokenizer(name: str | None, own: Checkpoint) -> Checkpoint:
    """The tokenizer `<folder or hub repository>[@revision]`; that of `own` where no name is given."""
    if name is None:
        return own
    where, _, revision = str(name).partition("@")
    return find_source(where, revision or None, needs="tokenizer_config.json")


def find_adapter(name: str) -> Checkpoint:
    """The adapter `<hub repository or folder>[@revision]`; nothing is loaded.

    Raises MissingExtra without peft, ConfigurationError for what is no adapter or one that cannot
    be used here.
    """
    require_peft(f"The adapter '{name}'")
    where, _, revision = name.partition("@")
    source = find_source(where, revision or None, needs=ADAPTER_CONFIG)
    method = str(source.adapter.get("peft_type", ""))
    if method in PROMPT_METHODS:
        raise ConfigurationError(
            f"The adapter '{name}' is of the kind {method}, which puts learned tokens"
            " in front of every input; only adapters that change weights (LoRA and"
            " similar) can be used."
        )
    return source


def require_peft(what: str) -> None:
    """Raise MissingExtra, with the command that installs it, where peft is not installed."""
    if find_spec("peft") is None:
        raise MissingExtra(what, "peft", "peft")


def check_embedded(name: str, source: Checkpoint) -> None:
    """A model's folder may hold an adapter too, which transformers adds by itself, but only where
    peft is installed.
    """
    if not source.adapter:
        return
    if source.folder is None:
        # Here transformers would load the base that the adapter names, in whatever state the hub
        # has it.
        base = source.adapter.get("base_model_name_or_path")
        raise ConfigurationError(
            f"The hub repository '{name}' is an adapter: name its base model ('{base}',"
            " as its own file says) as the model, and the adapter as -M peft=..."
        )
    require_peft(f"The model '{name}', whose folder holds an adapter,")


def code_elsewhere(*sources: Checkpoint) -> dict[str, str]:
    """The commits of other repositories whose code these sources name, by repository.

    Raises ConfigurationError.
    """
    found: dict[str, str] = {}
    for config in (
        one for source in sources for one in (source.config, source.tokenizer_config)
    ):
        named = config.get("auto_map")
        entries = list(named.values()) if isinstance(named, Mapping) else [named]
        for entry in [
            part
            for each in entries
            for part in (each if isinstance(each, list) else [each])
        ]:
            repository, elsewhere, _ = str(entry).partition("--")
            if elsewhere and repository not in found:
                found[repository] = open_repository(repository, None).commit
    return found


def _folder(name: str, revision: str | None) -> Path | None:
    path = Path(name).expanduser()
    if revision is not None:
        whole = Path(f"{name}@{revision}").expanduser()
        if whole.exists():  # a folder with '@' in its name
            return whole
    if path.exists() or name.startswith((".", "/", "~")) or "\\" in name:
        if revision is not None:
            raise ConfigurationError(
                f"The model folder '{name}' has no revisions: leave out '{revision}'."
            )
        return path
    return None


def _local(folder: Path, needs: str) -> Checkpoint:
    if not folder.exists():
        raise ConfigurationError(
            f"There is no model folder '{folder}'. Check the path."
        )
    if not folder.is_dir():
        raise ConfigurationError(
            f"'{folder}' is a file; a transformers model is a folder with config.json,"
            " weights and a tokenizer."
        )

    def path(name: str) -> Path | None:
        return folder / name if (folder / name).is_file() else None

    if path(needs) is None:
        raise ConfigurationError(
            _lacks(f"The folder '{folder}'", needs, path(ADAPTER_CONFIG))
        )
    found = _read(
        path,
        where=str(folder),
        revision=None,
        local=True,
        identity={"content": content_hash(folder)},
    )
    more = sorted(folder.glob("additional_chat_templates/*.jinja"))
    extra = {each.stem: each.read_text(encoding="utf-8") for each in more}
    return replace(found, templates={**found.templates, **extra})


def _hub(
    name: str, revision: str | None, needs: str, subfolder: str | None
) -> Checkpoint:
    inside = f"{subfolder.strip('/')}/" if subfolder else ""
    files = open_repository(name, revision, inside + needs)

    def path(file: str) -> Path | None:
        return files.path(inside + file)

    if path(needs) is None:
        at = f" at revision '{revision}'" if revision else ""
        raise ConfigurationError(
            _lacks(
                f"The hub repository '{name}'{at}", inside + needs, path(ADAPTER_CONFIG)
            )
        )
    identity = {"repository": name, "revision": files.commit} | (
        {"subfolder": subfolder} if subfolder else {}
    )
    return _read(
        path,
        where=name,
        revision=files.commit,
        local=files.offline,
        identity=identity,
        subfolder=subfolder,
    )


def _read(path: Callable[[str], Path | None], **given: Any) -> Checkpoint:
    """The source with what its small files say; the later forms of chat templates win, as in
    transformers.
    """
    tokenizer_config, legacy = (
        read_json(path(name))
        for name in ("tokenizer_config.json", "chat_template.json")
    )
    jinja = path("chat_template.jinja")
    return Checkpoint(
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
    """Why a place is no model, or no adapter. adapter: where its adapter_config.json would be, or
    is.
    """
    if needs.endswith(ADAPTER_CONFIG):
        return f"{what} has no {needs}, so it is not an adapter of the library peft."
    base = read_json(adapter).get("base_model_name_or_path")
    if base is not None:
        return (
            f"{what} has no {needs}: it is an adapter. Name its base model ('{base}',"
            " as its own file says) as the model, and the adapter as -M peft=..."
        )
    return f"{what} has no {needs}, so it is not a transformers model."


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository at one commit. listed: its files, None where only the cache can tell. offline:
    use the cache only.

    revision: as asked for. Files are fetched by it, because the cache then notes its commit for a
    time without network.
    """

    name: str
    commit: str
    revision: str | None
    listed: frozenset[str] | None
    offline: bool

    def path(self, file: str) -> Path | None:
        """The file on this machine, fetched if need be; None where the repository has none of that
        name.
        """
        from huggingface_hub import errors, hf_hub_download

        if self.listed is not None and file not in self.listed:
            return None
        try:
            with _sentences(self.name, self.commit), quiet():
                return Path(
                    hf_hub_download(
                        self.name,
                        file,
                        revision=self.revision,
                        local_files_only=self.offline,
                    )
                )
        except errors.EntryNotFoundError:
            return None


def open_repository(
    name: str, revision: str | None, needs: str = "config.json"
) -> _Repository:
    """Find a repository's commit. needs: the file that its local cache is known by, where there is
    no network.

    Raises ConfigurationError where neither the hub nor its local cache knows it.
    """
    try:
        from huggingface_hub import HfApi, errors, hf_hub_download
    except ImportError as error:
        raise MissingExtra("A transformers model", "hf", "huggingface_hub") from error

    unreachable: Exception
    with _sentences(name, revision), quiet():
        try:
            found = HfApi().model_info(name, revision=revision, timeout=PATIENCE)
        except (errors.HfHubHTTPError, errors.HFValidationError):
            raise
        except (
            Exception
        ) as error:  # the hub's client lets its HTTP library's errors through
            unreachable = error
        else:
            files = frozenset(sibling.rfilename for sibling in found.siblings or [])
            if not found.sha:
                raise ConfigurationError(
                    f"The hub does not say which commit of '{name}' is meant: name one"
                    " as its revision."
                )
            return _Repository(name, found.sha, revision, files, offline=False)
        try:
            cached = Path(
                hf_hub_download(name, needs, revision=revision, local_files_only=True)
            )
        except errors.EntryNotFoundError:
            raise ConfigurationError(
                f"The model '{name}' is not a folder here, is not in the hub's local"
                f" cache, and the hub cannot be reached ({type(unreachable).__name__})."
                f" A folder is given by its path: './{name}' in place of '{name}'."
            ) from unreachable
    # The cache keeps a commit's files in a folder of its name.
    commit = cached.parents[needs.count("/")].name
    return _Repository(name, commit, revision, None, offline=True)


@contextmanager
def _sentences(name: str, revision: str | None) -> Iterator[None]:
    """Say in a sentence what the hub's client says in classes."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise ConfigurationError(
            f"'{name}' is neither a folder here nor the name of a hub repository"
            " ('owner/name')."
        ) from error
    except errors.GatedRepoError as error:
        raise ConfigurationError(
            f"The hub repository '{name}' is gated: accept its terms on the hub and log"
            " in with 'hf auth login'."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigurationError(
            f"There is no repository '{name}' on the hub, or it needs a login, and no"
            f" folder of that name here. A folder is given by its path: './{name}' in"
            f" place of '{name}'."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigurationError(
            f"The hub repository '{name}' has no revision '{revision}'."
        ) from error
    except errors.EntryNotFoundError:
        raise
    except errors.HfHubHTTPError as error:
        status = (
            error.response.status_code if error.response is not None else "no status"
        )
        raise ConfigurationError(
            f"The hub answered {status} for '{name}'. Try again later."
        ) from error
