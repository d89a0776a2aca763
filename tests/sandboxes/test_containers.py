"""Containers of podman and, through its interface, of the real command line of docker."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.sandboxes import backends
from evalwright.sandboxes.backends import backend_of, refusal_of, started
from evalwright.sandboxes.container_engine import is_orphan, owner_name
from evalwright.sandboxes.containers import (
    ContainerBackend,
    DockerBackend,
    PodmanBackend,
    share_room,
)
from evalwright.sandboxes.protocol import (
    Sandbox,
    SandboxFailed,
    SandboxLimits,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)
from support.container_image import build_image, configure, why_no_containers

MB = 1_048_576


@pytest.fixture(scope="module", autouse=True)
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTAINERS_CONF", "")
        configure(tmp_path_factory.mktemp("podman"))
        yield


@pytest.fixture(scope="module")
def image(engines: None) -> str:
    reason = why_no_containers()
    if reason:
        pytest.skip(reason)
    return build_image()


@pytest.fixture(scope="module")
def docker_host(
    image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Docker's own command line on podman's interface, which speaks docker's protocol.

    Podman 4 cannot read the `commit` of a later docker, so that one goes to podman itself.
    """
    docker = shutil.which("docker")
    if docker is None:
        pytest.skip("docker's command line is not installed")
    folder = tmp_path_factory.mktemp("docker")
    address = f"unix://{folder}/engine.sock"
    script = folder / "docker"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = commit ] && exec podman "$@"\nexec {docker} "$@"\n'
    )
    script.chmod(0o755)
    service = subprocess.Popen(
        ["podman", "system", "service", "--time=0", address],
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (folder / "engine.sock").exists():
            assert service.poll() is None
            time.sleep(0.05)
        yield {"DOCKER_HOST": address, "PATH": f"{folder}:{os.environ['PATH']}"}
    finally:
        service.terminate()
        service.wait()


@pytest.fixture(params=["podman", "docker"])
def engine(
    request: pytest.FixtureRequest, image: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    name: str = request.param
    if name == "docker":
        for variable, text in request.getfixturevalue("docker_host").items():
            monkeypatch.setenv(variable, text)
    return name


def _settings(engine: str, image: str, **changes: Any) -> SandboxSettings:
    limits = changes.pop("limits", SandboxLimits(seconds=300, processes=64))
    return SandboxSettings(backend=engine, image=image, limits=limits, **changes)


@contextlib.asynccontextmanager
async def _container(
    engine: str,
    image: str,
    folder: Path,
    snapshot: Snapshot | None = None,
    **changes: Any,
) -> AsyncIterator[Sandbox]:
    async with started(_settings(engine, image, **changes), folder, snapshot) as box:
        yield box


def _text(content: bytes) -> str:
    return content.decode()


def test_commands_files_and_a_snapshot(engine: str, image: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with _container(
            engine, image, tmp_path, environment={"COLOUR": "green"}
        ) as box:
            await box.write("app.py", b"import sys\nprint(sys.stdin.read().upper())\n")
            executed = await box.exec(["python3", "app.py"], stdin=b"hello\nyou")
            assert executed.exit_code == 0
            assert executed.stdout == b"HELLO\nYOU\n"
            assert executed.stderr == b""
            assert executed.ended_by == ""
            assert executed.dropped_bytes == 0
            executed = await box.exec(
                ["sh", "-c", "echo $COLOUR $SIZE; pwd; echo bad >&2; exit 3"],
                environment={"SIZE": "7"},
            )
            assert executed.exit_code == 3
            assert executed.stdout == b"green 7\n/work\n"
            assert executed.stderr == b"bad\n"
            executed = await box.exec(["pwd"], folder="/tmp")
            assert executed.stdout == b"/tmp\n"
            executed = await box.exec(["no-such-program"])
            assert executed.exit_code == 127
            assert executed.stderr == b"no-such-program: command not found\n"
            executed = await box.exec(["pwd"], folder="/nowhere")
            assert executed.exit_code == 1
            assert executed.stderr == b"There is no folder /nowhere.\n"
            executed = await box.exec(["sh", "-c", "kill -9 $$"])
            assert executed.exit_code == 137
            assert executed.stderr == b""
            await box.write(
                "/work/a b/run", b"#!/bin/sh\necho ran\n", is_executable=True
            )
            assert (await box.exec(["/work/a b/run"])).stdout == b"ran\n"
            content = bytes(range(256)) * 4_000
            await box.write("binary", content)
            assert await box.read("/work/binary", 10 * MB) == content
            assert await box.read("binary", 5) == content[:5]
            first = await box.snapshot()
            await box.exec(["sh", "-c", "rm binary; echo later > late"])
        assert first.backend == engine
        async with _container(engine, image, tmp_path, first) as box:
            assert await box.read("binary", 10 * MB) == content
            executed = await box.exec(["ls", "/work"])
            assert executed.stdout == b"a b\napp.py\nbinary\n"
        assert backend_of(engine).has(tmp_path, first)
        _remove_image(first)
        assert not backend_of(engine).has(tmp_path, first)
        with pytest.raises(SnapshotMissing, match="not among the images"):
            async with _container(engine, image, tmp_path, first):
                pass

    asyncio.run(scenario())


def _archive_of_another() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("theirs")
        member.size, member.uid, member.gid = 4, 1000, 1000
        archive.addfile(member, io.BytesIO(b"text"))
    return stream.getvalue()


def _remove_image(snapshot: Snapshot) -> None:
    subprocess.run(
        ["podman", "rmi", "--force", snapshot.reference.removeprefix("sha256:")],
        check=True,
        capture_output=True,
    )


def test_paths_that_cannot_be_read_or_written(
    engine: str, image: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            await box.exec(["sh", "-c", "mkfifo pipe; ln -s /etc/passwd link; mkdir d"])
            for path, reason in {
                "none": "There is no file 'none'",
                "d": "'d' is a folder",
                "pipe": "no ordinary file",
                "": "cannot be empty",
                "a\0b": "zero byte",
            }.items():
                with pytest.raises(SandboxPathError, match=reason):
                    await box.read(path, 10)
            assert (await box.read("link", 4)) == b"root"
            for path, reason in {
                "d": "'d' is a folder",
                "/etc/passwd/x": "cannot be made",
                "/proc/x": "cannot be written",
            }.items():
                with pytest.raises(SandboxPathError, match=reason):
                    await box.write(path, b"x")
            # A link leads to a file of the container, not of this machine.
            target = tmp_path / "outside"
            await box.exec(["ln", "-s", str(target), "out"])
            with contextlib.suppress(SandboxPathError):
                await box.write("out", b"x")
            assert not target.exists()

    asyncio.run(scenario())


def test_limits_of_time_and_output(engine: str, image: str, tmp_path: Path) -> None:
    async def ended(box: Sandbox, seconds: float) -> None:
        executed = await box.exec(
            ["sh", "-c", "echo begun; sleep 1000 & sleep 1000"], seconds=seconds
        )
        assert executed.ended_by == "seconds"
        assert executed.exit_code == 137
        assert executed.stdout == b"begun\n"
        assert b"sleep" not in await _processes(box)

    async def scenario() -> None:
        limits = SandboxLimits(seconds=300, processes=64, output_kb=4)
        async with _container(engine, image, tmp_path, limits=limits) as box:
            try:
                await ended(box, 1)
            except AssertionError:  # too early on a machine that is busy
                await ended(box, 60)
            executed = await box.exec(
                ["sh", "-c", "seq 100000; echo problem >&2"], seconds=300
            )
            assert executed.exit_code == 0
            assert executed.stdout.startswith(b"1\n2\n")
            assert executed.stdout.endswith(b"99999\n100000\n")
            assert executed.stderr == b"problem\n"
            assert len(executed.stdout) + len(executed.stderr) == 4096
            assert executed.dropped_bytes == 588_895 + 8 - 4096

    asyncio.run(scenario())


async def _processes(box: Sandbox) -> bytes:
    executed = await box.exec(
        ["sh", "-c", "for f in /proc/[0-9]*/comm; do read -r c < $f; echo $c; done"]
    )
    # Our own idle shell waits in a `sleep`.
    return executed.stdout.replace(b"sleep\n", b"", 1)


def test_a_process_left_behind_goes_on_and_holds_nothing_up(
    engine: str, image: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            executed = await box.exec(
                ["sh", "-c", "sleep 1000 & echo started"], seconds=300
            )
            assert executed.stdout == b"started\n"
            assert executed.exit_code == 0
            assert executed.ended_by == ""
            assert b"sleep" in await _processes(box)

    asyncio.run(scenario())


def test_memory_and_processes(
    engine: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def scenario() -> None:
        limits = SandboxLimits(seconds=300, memory_mb=64, processes=20)
        async with _container(engine, image, tmp_path, limits=limits) as box:
            executed = await box.exec(["python3", "-c", "x = bytearray(10**9)"])
            assert executed.ended_by == "memory"
            assert executed.exit_code == 137
            bomb = "import os, time\nwhile True:\n    os.fork() or time.sleep(30)"
            executed = await box.exec(["python3", "-c", bomb], seconds=300)
            assert executed.ended_by == "processes"
            # Whatever it left, one that cannot be started ends that, and the next runs.
            executed = await box.exec(["sh", "-c", "echo fine"], seconds=300)
            if executed.exit_code:
                executed = await box.exec(["sh", "-c", "echo fine"], seconds=300)
            assert executed.stdout == b"fine\n"

    asyncio.run(scenario())
    assert list(folder.iterdir()) == []  # where podman would note that memory ran out


def test_the_disk_is_bounded(engine: str, image: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        limits = SandboxLimits(seconds=300, processes=64, disk_mb=20)
        async with _container(engine, image, tmp_path, limits=limits) as box:
            executed = await box.exec(
                ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=40"]
            )
            assert executed.ended_by == "disk"
            with pytest.raises(SandboxPathError, match="the disk is full"):
                await box.write("more", b"x" * MB)
            executed = await box.exec(["rm", "big"])
            assert executed.ended_by == ""
            await box.write("more", b"x" * MB)
            executed = await box.exec(
                ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=90"]
            )
            executed = await box.exec(["true"])
            assert executed.ended_by == "disk"

    asyncio.run(scenario())


def test_who_ends_the_container_from_inside_gains_nothing(
    engine: str, image: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            await box.write("kept", b"yes")
            await box.exec(["sh", "-c", "kill -9 -1; kill -9 2; kill -15 1; sleep 20"])
            executed = await box.exec(["cat", "kept"])
            if executed.exit_code:
                executed = await box.exec(["cat", "kept"])
            assert executed.stdout == b"yes"

    asyncio.run(scenario())


def test_who_removes_the_shell_has_that_as_the_outcome(
    engine: str, image: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            await box.exec(["rm", "-rf", "/usr/bin"])
            executed = await box.exec(["true"])
            assert executed.exit_code == 127
            assert b"no shell any more" in executed.stderr
            with pytest.raises(SandboxPathError):
                await box.read("/etc/passwd", 10)
            snapshot = await box.snapshot()
        async with _container(engine, image, tmp_path, snapshot) as box:
            await box.write("/tests/test.sh", b"exit 0")
            executed = await box.exec(["sh", "/tests/test.sh"])
            assert executed.exit_code == 127
        _remove_image(snapshot)

    asyncio.run(scenario())


def test_nothing_of_this_machine_is_inside(
    engine: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-host")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:word@127.0.0.1:9")

    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            executed = await box.exec(["env"])
            assert b"secret" not in executed.stdout
            assert b"PROXY" not in executed.stdout.upper()
            executed = await box.exec(["cat", "/proc/self/status"])
            status = dict(
                line.split(":\t") for line in _text(executed.stdout).splitlines()
            )
            assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
            assert status["NoNewPrivs"] == "1"
            executed = await box.exec(["ls", "/sys/class/net"])
            assert executed.stdout == b"lo\n"
            executed = await box.exec(["sh", "-c", "echo x > /run/evalwright/x"])
            assert executed.exit_code
            executed = await box.exec(["cat", "/proc/mounts"])
            assert str(tmp_path).encode() not in executed.stdout

    asyncio.run(scenario())


def test_the_door_leads_to_this_process_only(
    engine: str, image: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with _container(engine, image, tmp_path) as box:
            listener, address = await box.listen()

            async def answer(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter
            ) -> None:
                line = await reader.readline()
                writer.write(b"got " + line)
                writer.close()

            server = await asyncio.start_unix_server(answer, sock=listener)
            async with server:
                port = int(address.rpartition(":")[2])
                client = (
                    "import socket\n"
                    f"with socket.create_connection(('127.0.0.1', {port})) as s:\n"
                    "    s.sendall(b'word\\n')\n"
                    "    print(s.makefile().read())\n"
                )
                for _ in range(3):
                    executed = await box.exec(["python3", "-c", client])
                    assert executed.stdout == b"got word\n\n", executed
        with pytest.raises(OSError), socket.socket(socket.AF_UNIX) as late:
            late.connect(listener.getsockname() or "/nowhere")

    asyncio.run(scenario())


def test_containers_of_a_process_that_was_killed_are_removed(
    image: str, tmp_path: Path
) -> None:
    script = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from evalwright.sandboxes.backends import started\n"
        "from evalwright.sandboxes.protocol import SandboxSettings\n"
        "async def main():\n"
        f"    settings = SandboxSettings('podman', {image!r})\n"
        f"    async with started(settings, Path({str(tmp_path)!r})) as box:\n"
        "        print(box._name, flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False
    )
    name = killed.stdout.decode().strip()
    assert name, killed.stderr
    assert name in _containers()

    async def scenario() -> None:
        backend = PodmanBackend()
        settings = _settings("podman", image)
        async with await backend.start(settings, tmp_path) as box:
            names = _containers()
            assert name not in names
            assert box._name in names
        assert box._name not in _containers()

    asyncio.run(scenario())


def _containers() -> str:
    return subprocess.run(
        ["podman", "ps", "--all", "--format={{.Names}}"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout


def test_whose_container_it_is() -> None:
    mine = owner_name()
    assert not is_orphan(mine, "running")
    machine, pid, start = mine.split(".")
    assert is_orphan(f"{machine}.{pid}.{int(start) - 1}", "running")
    assert is_orphan(f"{machine}.nonsense", "running")
    assert not is_orphan(f"elsewhere.{pid}.{start}", "running")
    assert is_orphan(f"elsewhere.{pid}.{start}", "exited")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"image": ""}, "needs an image"),
        ({"image": "python:3.12"}, "podman image inspect"),
        ({"image": "--privileged"}, "cannot be the name"),
        ({"image": "a b"}, "cannot be the name"),
        ({"options": {"allow_tags": True}}, "Did you mean 'allow_tag'"),
        ({"options": {"allow_tag": "yes"}}, "true or false"),
        ({"options": {"user": "--privileged"}}, "'user'"),
        ({"options": {"user": 0}}, "'user'"),
        ({"folder": "work"}, "begins with '/'"),
        ({"environment": {"A=B --privileged": "x"}}, "cannot be a variable"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], reason: str) -> None:
    image = changes.pop("image", "python@sha256:" + "0" * 64)
    refusal = PodmanBackend().refuses(_settings("podman", image, **changes))
    assert reason in refusal
    assert refusal[-1] in ".?"


def test_an_engine_that_is_not_there_or_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _settings("docker", "sha256:" + "0" * 64)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "is not installed here" in DockerBackend().refuses(settings)
    program = tmp_path / "docker"
    program.write_text(
        "#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n"
    )
    program.chmod(0o755)
    refusal = DockerBackend().refuses(settings)
    assert "Cannot connect to the Docker daemon. Start Docker" in refusal

    monkeypatch.setattr(backends, "_backends", {})

    async def scenario() -> None:
        async with started(settings, tmp_path):
            pass

    with pytest.raises(SandboxFailed, match="Cannot connect"):
        asyncio.run(scenario())


def test_an_image_that_is_nowhere(image: str, tmp_path: Path) -> None:
    async def scenario(name: str) -> None:
        async with _container("podman", name, tmp_path):
            pass

    with pytest.raises(SandboxFailed, match="build the image here"):
        asyncio.run(scenario("sha256:" + "0" * 64))
    with pytest.raises(SandboxFailed, match="cannot be fetched"):
        asyncio.run(scenario("localhost:1/nothing@sha256:" + "0" * 64))


def test_backends_by_name() -> None:
    for name in ("docker", "podman"):
        backend = backend_of(name)
        assert isinstance(backend, ContainerBackend)
        assert backend.name == name
        assert refusal_of(SandboxSettings(backend=name))


def test_output_and_errors_share_their_room() -> None:
    assert share_room(b"a" * 10, b"b" * 2, 20) == (b"a" * 10, b"b" * 2)
    assert share_room(b"abcdefghij", b"xy", 6) == (b"abij", b"xy")
    assert share_room(b"xy", b"abcdefghij", 6) == (b"xy", b"abij")
    assert share_room(b"abcdefghij", b"klmnopqrst", 6) == (b"abj", b"klt")
