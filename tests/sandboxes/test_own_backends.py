"""Backends of installed packages and of plug-ins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.sandboxes import backends
from evalwright.sandboxes.protocol import SandboxBackend, SandboxSettings

PACKAGE = """
from evalwright.extend.acting import SandboxBackend

print("imported")


class Cloud(SandboxBackend):
    def refuses(self, settings):
        return "The cloud is closed."

    async def start(self, settings, folder, snapshot=None):
        raise NotImplementedError


class Broken(Cloud):
    def __init__(self):
        raise OSError("no key")


nothing = 5
"""
POINTS = """
[evalwright.sandboxes]
cloud = cloudy:Cloud
broken = cloudy:Broken
number = cloudy:nothing
absent = cloudy:Absent
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cloudy.py").write_text(PACKAGE)
    metadata = tmp_path / "cloudy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: cloudy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "cloudy", raising=False)  # of the test before
    monkeypatch.setattr(backends, "_backends", {})
    monkeypatch.setattr(backends.registry, "_found", {})


def test_an_installed_package_offers_a_backend(
    package: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert backends.registry.names() == [
        *("absent", "broken", "cloud", "docker", "jail", "number", "podman")
    ]
    assert capsys.readouterr().out == ""  # a name alone imports nothing
    settings = SandboxSettings(backend="cloud")
    assert backends.refusal_of(settings) == "The cloud is closed."
    assert backends.backend_of("cloud") is backends.backend_of("cloud")
    assert backends.backend_of("cloud").name == "cloud"
    assert capsys.readouterr().out == "imported\n"


def test_a_backend_that_cannot_be_loaded_is_a_mistake_of_the_user(
    package: None,
) -> None:
    with pytest.raises(ConfigurationError, match=r"'broken' cannot be loaded.*no key"):
        backends.backend_of("broken")
    with pytest.raises(ConfigurationError, match="no class that extends"):
        backends.backend_of("number")
    with pytest.raises(ConfigurationError, match="'absent' cannot be loaded"):
        backends.backend_of("absent")
    with pytest.raises(UnknownName, match="'cloud'"):
        backends.backend_of("clouds")


def test_a_plug_in_registers_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_backends", {})
    monkeypatch.setattr(backends.registry, "_found", {})

    class Mine(SandboxBackend):
        def refuses(self, settings: SandboxSettings) -> str:
            return "No."

        async def start(self, *_: object) -> None:  # type: ignore[override]
            raise NotImplementedError

    backends.register_backend("mine", Mine)
    assert backends.refusal_of(SandboxSettings(backend="mine")) == "No."
    with pytest.raises(ConfigurationError, match="no class that extends"):
        backends.register_backend("text", "Mine")  # type: ignore[arg-type]
