"""What every test shares: the command line, run in this process, leaves no trace in the next
test's environment.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support.stores import behind, each_store, server

__all__ = ["behind", "each_store", "server"]  # fixtures

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers share the cores already
# Bytecode is made once, and not by every worker and every process that a test starts.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

with pytest.MonkeyPatch.context() as _offline, suppress(ImportError):
    # Read once, when it is imported: in this process nothing waits for a hub that is not there.
    _offline.setenv("HF_HUB_OFFLINE", "1")
    import huggingface_hub.constants  # noqa: F401

settings.register_profile(
    "same everywhere",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile(
    "same everywhere"
)  # the same texts on every machine, however slow it is

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in the background deaf to Ctrl-C, and the commands that tests
    # interrupt would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Processes of `-n auto`: one more than processors, for nearly half of the time a test waits
    for a server, a process or a disk.
    """
    wanted = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    if wanted:
        return int(wanted)
    allowed: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    return (len(allowed(0)) if allowed else os.cpu_count() or 1) + 1


def pytest_collection() -> None:
    """What is imported and collected stays until the end: the garbage collector need not look
    through it again and again while it grows.
    """
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor while the tests run."""
    gc.enable()
    gc.collect()
    gc.freeze()


LONGEST_FILES = (
    "tests/test_docs.py",
    "tests/test_house.py",
    "tests/sandboxes/test_jail_attacks.py",
    "tests/trust/test_sandbox.py",
)
"""They start first: one that started last would leave the other processors without work."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest before the others, which keep their order."""
    ranks = {file: rank for rank, file in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: ranks.get(item.nodeid.partition("::")[0], len(ranks)))


@pytest.fixture(autouse=True, scope="session")
def _trust_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A person's trust file that lets the providers' keys, which tests make up, go to the tests'
    own servers. Each content of such a file is parsed once.
    """
    from evalwright.models import trust
    from evalwright.models.remote import providers

    @cache
    def parsed(content: bytes) -> dict[str, Any]:
        return tomllib.loads(content.decode())

    variables = {
        key
        for name in providers.names()
        for key in getattr(providers.find(name), "key", ())
    }
    keys = json.dumps(sorted({*variables, "MINE_API_KEY", "VECTARA_API_KEY"}))
    folder = tmp_path_factory.mktemp("config")
    (folder / "evalwright").mkdir()
    (folder / "evalwright" / "trust.toml").write_text(
        f'[keys]\n"127.0.0.1" = {keys}\nlocalhost = {keys}\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        parser = SimpleNamespace(load=lambda file: parsed(file.read()))
        patch.setattr(trust, "tomllib", parser)
        yield


@pytest.fixture(autouse=True, scope="session")
def _library_read_once() -> Iterator[None]:
    """What the bundled task files say of themselves is read once in this process, and not for
    the new home of each test.

    A stamp of each file is compared as ever, and the home gets its own copy.
    """
    from evalwright.tasks import index

    read_before: dict[str, Any] = {}
    read_cache = index._Cache.__init__
    save = index._Cache.save

    def read_with_library(cache: index._Cache) -> None:
        read_cache(cache)
        cache._changed = not read_before.keys() <= cache._files.keys()
        cache._files = {**read_before, **cache._files}

    def save_with_library(cache: index._Cache) -> None:
        save(cache)
        library = {
            path: entry
            for path, entry in cache._files.items()
            if path.startswith(f"{index.LIBRARY}")
        }
        read_before.update(library)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index._Cache, "__init__", read_with_library)
        patch.setattr(index._Cache, "save", save_with_library)
        yield


@pytest.fixture(autouse=True, scope="session")
def _git_asked_in_repositories() -> Iterator[None]:
    """Runs record the commit of the working folder: git is started where there may be one, and
    not thousands of times to say that a test's own folder is no repository.
    """
    from evalwright.runs import environment

    ask_git = environment._git_commit

    def commit() -> str | None:
        folders: tuple[Path, ...] = ()
        with suppress(FileNotFoundError):  # a working folder that was removed
            folders = (Path.cwd(), *Path.cwd().parents)
        may_be = any((folder / ".git").exists() for folder in folders)
        return ask_git() if may_be or "GIT_DIR" in os.environ else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "_git_commit", commit)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_disks() -> Iterator[None]:
    """No test cuts the power: what was handed to the system is there for every reader."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(autouse=True)
def _process_as_before() -> Iterator[None]:
    """Some things hold until a process ends, which is right for a command and wrong for the next
    test: the home that `--home` sets, the level of our log, which other systems' functions set
    (at DEBUG, libraries are not kept quiet), secrets, and a person's own providers and prices.
    """
    from evalwright.core import secrets
    from evalwright.models.remote.prices import price_table
    from evalwright.models.remote.providers import provider_table

    home = os.environ.get("EVALWRIGHT_HOME")
    logger = logging.getLogger("evalwright")
    level = logger.level
    learnt = [
        (module, name, getattr(module, name))
        for module, name in (
            (secrets, "_forms"),
            (secrets, "_bytes"),
            (provider_table, "_added"),
            (price_table, "_user_books"),
        )
    ]
    for module, name, content in learnt:
        copied = dict(content) if isinstance(content, dict) else content
        setattr(module, name, copied)

    yield

    for module, name, content in learnt:
        setattr(module, name, content)
    logger.setLevel(level)
    if home is None:
        os.environ.pop("EVALWRIGHT_HOME", None)
    else:
        os.environ["EVALWRIGHT_HOME"] = home


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder and, in it, the home: nothing of one test is there in the next."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path
