"""Small files of a hub repository at one commit, from the hub, or from its local cache where there is no network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.models.local.hf.quiet import quiet

PATIENCE = 15.0
"""Seconds to wait for the hub before its local cache is used."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one commit. listed: its files, None where only the cache can tell. offline: use the cache only.

    revision: as asked for. Files are fetched by it, because the cache then notes its commit for a time without network.
    """

    name: str
    commit: str
    revision: str | None
    listed: frozenset[str] | None
    offline: bool

    def path(self, file: str) -> Path | None:
        """The file on this machine, fetched if need be; None where the repository has none of that name."""
        from huggingface_hub import errors, hf_hub_download

        if self.listed is not None and file not in self.listed:
            return None
        try:
            with _sentences(self.name, self.commit), quiet():
                return Path(
                    hf_hub_download(self.name, file, revision=self.revision, local_files_only=self.offline)
                )
        except errors.EntryNotFoundError:
            return None


def open_repository(name: str, revision: str | None, needs: str = "config.json") -> Repository:
    """Find a repository's commit. needs: the file that its local cache is known by, where there is no network.

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
        except Exception as error:  # the hub's client lets its HTTP library's errors through
            unreachable = error
        else:
            files = frozenset(sibling.rfilename for sibling in found.siblings or [])
            return Repository(name, found.sha or revision or "main", revision, files, offline=False)
        try:
            cached = Path(hf_hub_download(name, needs, revision=revision, local_files_only=True))
        except errors.EntryNotFoundError:
            raise ConfigurationError(
                f"The model '{name}' is not a folder here, is not in the hub's local cache, and the hub cannot be reached "
                f"({type(unreachable).__name__}). A folder is given by its path, as in 'hf/./{name}'."
            ) from unreachable
    # The cache keeps a commit's files in a folder of its name.
    commit = cached.parents[needs.count("/")].name
    return Repository(name, commit, revision, None, offline=True)


@contextmanager
def _sentences(name: str, revision: str | None) -> Iterator[None]:
    """Say in a sentence what the hub's client says in classes."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise ConfigurationError(
            f"'{name}' is neither a folder here nor the name of a hub repository ('owner/name')."
        ) from error
    except errors.GatedRepoError as error:
        raise ConfigurationError(
            f"The hub repository '{name}' is gated: accept its terms on the hub and log in with 'hf auth login'."
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigurationError(
            f"There is no repository '{name}' on the hub, or it needs a login, and no folder of that name here. A folder "
            f"is given by its path, as in 'hf/./{name}'."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ConfigurationError(f"The hub repository '{name}' has no revision '{revision}'.") from error
    except errors.EntryNotFoundError:
        raise
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no status"
        raise ConfigurationError(f"The hub answered {status} for '{name}'. Try again later.") from error
