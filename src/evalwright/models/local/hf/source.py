"""Finds a model's files, reads the small ones, and identifies the model by content.

It loads no torch, no transformers and no weights. A name is a local folder if such a path exists or
if it begins with '.', '/' or '~'; else it is a hub repository, of which only the small files are
fetched here. If they are missing, a ConfigurationError says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, MissingExtra, ModelError
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.model_files import content_hash, read_json, templates

ADAPTER_CONFIG = "adapter_config.json"
"""The file that makes a folder an adapter of the library peft."""

PROMPT_METHODS = (
    "PROMPT_TUNING",
    "MULTITASK_PROMPT_TUNING",
    "P_TUNING",
    "PREFIX_TUNING",
    "CPT",
)
"""Adapter methods that prepend learnt tokens to every input instead of changing weights."""

HUB_TIMEOUT_SECONDS = 15.0
"""Seconds to wait for the hub before its local cache is used."""


_TEXT_ONLY_TYPES = frozenset(
    ("dots3_note", "emu3", "llama4", "mllama", "qwen3_5", "qwen3_5_moe", "qwen4_exp")
)
"""Architectures for which transformers has a text-only model, which is used."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The location and small files of a model or tokenizer.

    Attributes:
        where: what transformers loads from, a path or a repository id.
        revision: a repository's commit, else None.
        local: whether no network is needed (or there is none): a folder, or a repository in the
            hub's local cache.
        identity: what goes into the fingerprint.
        config: config.json, {} if there is none.
        tokenizer_config: tokenizer_config.json, {} if there is none.
        templates: chat templates by name, "default" first.
        subfolder: folder within a repository, if its files are in one.
        adapter: adapter_config.json, {} if there is none.
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
        model_type = self.config.get("model_type")
        return (
            isinstance(self.config.get("vision_config"), Mapping)
            and model_type not in _TEXT_ONLY_TYPES
        )

    @property
    def folder(self) -> Path | None:
        """The folder, if the model is one."""
        return Path(self.where) if self.revision is None else None

    def require_unchanged(self) -> None:
        """Raise ModelError if the folder has changed since the fingerprint was made."""
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
    """Find the folder or hub repository of that name, which must contain the file `needs`.

    The file must be in `subfolder`, if that is set.
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


def find_tokenizer(name: str | None, default: Checkpoint) -> Checkpoint:
    """Find the tokenizer `<folder or hub repository>[@revision]`; `default` if there is no name."""
    if name is None:
        return default
    where, _, revision = str(name).partition("@")
    return find_source(where, revision or None, needs="tokenizer_config.json")


def find_adapter(name: str) -> Checkpoint:
    """Find the adapter `<hub repository or folder>[@revision]`; nothing is loaded.

    Raises:
        MissingExtra: peft is not installed.
        ConfigurationError: it is not an adapter, or one that cannot be used here.
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


def require_peft(user: str) -> None:
    """Raise MissingExtra if peft is not installed."""
    if find_spec("peft") is None:
        raise MissingExtra(user, "peft", "peft")


def check_embedded(name: str, source: Checkpoint) -> None:
    """Check a model with an adapter in its folder, which transformers adds if peft is installed."""
    if not source.adapter:
        return
    if source.folder is None:
        # Otherwise transformers would load the base that the adapter names, in its current state on
        # the hub.
        base = source.adapter.get("base_model_name_or_path")
        raise ConfigurationError(
            f"The hub repository '{name}' is an adapter: name its base model ('{base}',"
            " as its own file says) as the model, and the adapter as -M peft=..."
        )
    require_peft(f"The model '{name}', whose folder holds an adapter,")


def code_elsewhere(*sources: Checkpoint) -> dict[str, str]:
    """Return the commits of other repositories whose code these sources name, by repository.

    Raises:
        ConfigurationError: a commit cannot be found.
    """
    commits: dict[str, str] = {}
    for config in (
        file_config
        for source in sources
        for file_config in (source.config, source.tokenizer_config)
    ):
        named = config.get("auto_map")
        declarations = list(named.values()) if isinstance(named, Mapping) else [named]
        for reference in [
            reference
            for declared in declarations
            for reference in (declared if isinstance(declared, list) else [declared])
        ]:
            repository, elsewhere, _ = str(reference).partition("--")
            if elsewhere and repository not in commits:
                commits[repository] = open_repository(repository, None).commit
    return commits


def _folder(name: str, revision: str | None) -> Path | None:
    path = Path(name).expanduser()
    if revision is not None:
        full_path = Path(f"{name}@{revision}").expanduser()
        if full_path.exists():  # a folder with '@' in its name
            return full_path
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
            _missing_file_message(f"The folder '{folder}'", needs, path(ADAPTER_CONFIG))
        )
    source = _read(
        path,
        where=str(folder),
        revision=None,
        local=True,
        identity={"content": content_hash(folder)},
    )
    template_files = sorted(folder.glob("additional_chat_templates/*.jinja"))
    extra = {
        template.stem: template.read_text(encoding="utf-8")
        for template in template_files
    }
    return replace(source, templates={**source.templates, **extra})


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
            _missing_file_message(
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


def _read(path: Callable[[str], Path | None], **location: Any) -> Checkpoint:
    """Read a source's small files; later forms of chat templates win, as in transformers."""
    tokenizer_config, legacy = (
        read_json(path(name))
        for name in ("tokenizer_config.json", "chat_template.json")
    )
    jinja = path("chat_template.jinja")
    return Checkpoint(
        **location,
        config=read_json(path("config.json")),
        tokenizer_config=tokenizer_config,
        templates=templates(
            tokenizer_config.get("chat_template"),
            legacy.get("chat_template"),
            jinja.read_text(encoding="utf-8") if jinja else None,
        ),
        adapter=read_json(path(ADAPTER_CONFIG)),
    )


def _missing_file_message(subject: str, needs: str, adapter: Path | None) -> str:
    """Return why something is not a model, or not an adapter.

    `adapter` is the path of adapter_config.json, if there is one.
    """
    if needs.endswith(ADAPTER_CONFIG):
        return f"{subject} has no {needs}, so it is not an adapter of the library peft."
    base = read_json(adapter).get("base_model_name_or_path")
    if base is not None:
        return (
            f"{subject} has no {needs}: it is an adapter. Name its base model ('{base}',"
            " as its own file says) as the model, and the adapter as -M peft=..."
        )
    return f"{subject} has no {needs}, so it is not a transformers model."


@dataclass(frozen=True, slots=True)
class HubRepository:
    """A repository of the hub at one commit.

    Files are fetched by the requested `revision`, because the cache then remembers its commit for
    times without network.

    Attributes:
        name: the repository's id.
        commit: the commit.
        revision: the revision as requested.
        listed: its files; None if only the cache can tell.
        offline: whether only the cache is used.
    """

    name: str
    commit: str
    revision: str | None
    listed: frozenset[str] | None
    offline: bool

    def path(self, file: str) -> Path | None:
        """Return the path of a file, fetched if needed; None if the repository has no such file."""
        from huggingface_hub import errors, hf_hub_download

        if self.listed is not None and file not in self.listed:
            return None
        try:
            with _hub_errors_as_sentences(self.name, self.commit), quiet():
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
) -> HubRepository:
    """Find a model repository of the hub, to name it by its commit.

    Args:
        name: its id.
        revision: a branch, tag or commit; None for the main branch.
        needs: the file by which its local cache is recognised without network.

    Returns:
        The repository: its `commit`, and its files as `listed`.

    Raises:
        ConfigurationError: neither the hub nor its local cache has the repository.
        MissingExtra: the hub's library is not installed.
    """
    try:
        from huggingface_hub import HfApi, errors, hf_hub_download
    except ImportError as error:
        raise MissingExtra("A transformers model", "hf", "huggingface_hub") from error

    unreachable: Exception
    with _hub_errors_as_sentences(name, revision), quiet():
        try:
            model_info = HfApi().model_info(
                name, revision=revision, timeout=HUB_TIMEOUT_SECONDS
            )
        except (errors.HfHubHTTPError, errors.HFValidationError):
            raise
        except (
            Exception
        ) as error:  # the hub's client lets errors of its HTTP library through
            unreachable = error
        else:
            files = frozenset(
                sibling.rfilename for sibling in model_info.siblings or []
            )
            if not model_info.sha:
                raise ConfigurationError(
                    f"The hub does not say which commit of '{name}' is meant: name one"
                    " as its revision."
                )
            return HubRepository(name, model_info.sha, revision, files, offline=False)
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
    # The cache keeps a commit's files in a folder with its name.
    commit = cached.parents[needs.count("/")].name
    return HubRepository(name, commit, revision, None, offline=True)


@contextmanager
def _hub_errors_as_sentences(name: str, revision: str | None) -> Iterator[None]:
    """Turn the hub client's errors into sentences."""
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
