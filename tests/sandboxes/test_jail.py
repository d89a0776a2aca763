"""What a jail does. Attacks from inside: test_jail_attacks.py."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from evalwright.sandboxes import jail
from evalwright.sandboxes.backends import backend_of, started
from evalwright.sandboxes.jail import JailBackend
from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
from evalwright.sandboxes.protocol import (
    Executed,
    Sandbox,
    SandboxFailed,
    SandboxLimits,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)
from support.jails import (
    LIMITS,
    SETTINGS,
    bash,
    in_jail,
    living,
    needs_jail,
    python,
    run_bash,
)
from support.patience import within_growing_seconds

pytestmark = needs_jail


def test_a_command_has_output_errors_and_exit_code(tmp_path: Path) -> None:
    executed = run_bash(tmp_path, "echo out; echo err >&2; exit 3")
    assert executed.exit_code == 3
    assert executed.stdout == b"out\n"
    assert executed.stderr == b"err\n"
    assert executed.ended_by == ""
    assert executed.dropped_bytes == 0
    assert executed.seconds > 0


def test_a_signal_is_an_exit_code(tmp_path: Path) -> None:
    assert run_bash(tmp_path, "kill -TERM $$").exit_code == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("command", "exit_code", "message"),
    [
        (["no-such-program"], 127, b"no-such-program: command not found\n"),
        (["/work"], 126, b"/work: Permission denied\n"),
        (["./text"], 126, b"./text: Permission denied\n"),
        ([], 126, b"a command has at least one word, and no NUL\n"),
        (["echo", "a\0b"], 126, b"a command has at least one word, and no NUL\n"),
        (["echo", "x" * 4_000_000], 126, b"echo: Argument list too long\n"),
    ],
)
def test_what_cannot_be_run_says_so(
    tmp_path: Path, command: list[str], exit_code: int, message: bytes
) -> None:
    async def act(sandbox: Sandbox) -> Executed:
        await sandbox.write("text", b"no program")
        return await sandbox.exec(command)

    executed = in_jail(tmp_path, act)
    assert (executed.exit_code, executed.stderr) == (exit_code, message)


def test_folder_environment_and_input(tmp_path: Path) -> None:
    settings = SandboxSettings(
        folder="/home/x", environment={"A": "1", "B": "2"}, limits=LIMITS
    )

    async def act(sandbox: Sandbox) -> None:
        executed = await sandbox.exec(
            ["bash", "-c", 'pwd; echo "$A $B $HOME"; cat'],
            stdin="täxt".encode(),
            environment={"B": "3"},
        )
        assert executed.stdout == "/home/x\n1 3 /root\ntäxt".encode()
        elsewhere = await sandbox.exec(["pwd"], folder="/tmp")
        assert elsewhere.stdout == b"/tmp\n"
        nowhere = await sandbox.exec(["pwd"], folder="none")
        assert nowhere.exit_code == 126
        assert nowhere.stderr == b"/home/x/none: No such file or directory\n"

    in_jail(tmp_path, act, settings)


def test_large_input_and_output_come_through_whole(tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    limits = SandboxLimits(output_kb=4096)

    async def act(sandbox: Sandbox) -> Executed:
        return await sandbox.exec(["cat"], stdin=content)

    executed = in_jail(tmp_path, act, SandboxSettings(limits=limits))
    assert executed.stdout == content


def test_input_that_nobody_reads_is_dropped(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> Executed:
        return await sandbox.exec(["true"], stdin=bytes(3_000_000))

    assert in_jail(tmp_path, act).exit_code == 0


def test_files_are_written_and_read(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        await sandbox.write("a/b/c.txt", b"content")
        assert await sandbox.read("/work/a/b/c.txt", 100) == b"content"
        assert await sandbox.read("a/b/c.txt", 3) == b"con"
        await sandbox.write("a/b/c.txt", b"new")
        assert await sandbox.read("a/b/c.txt", 100) == b"new"
        await sandbox.write(
            "/usr/local/bin/hello", b"#!/bin/sh\necho hi", is_executable=True
        )
        assert (await sandbox.exec(["hello"])).stdout == b"hi\n"
        large = os.urandom(5_000_000)
        await sandbox.write("/tmp/large", large)
        assert await sandbox.read("/tmp/large", 10_000_000) == large
        assert (
            await bash(sandbox, "stat -c %s:%a /tmp/large")
        ).stdout == b"5000000:644\n"

    in_jail(tmp_path, act)


def test_each_start_is_empty_and_apart(tmp_path: Path) -> None:
    async def whole() -> None:
        async def run(number: int) -> bytes:
            async with started(SETTINGS, tmp_path) as sandbox:
                await sandbox.write("mine", str(number).encode())
                executed = await bash(
                    sandbox, "ls /work /tmp; cat /work/*; ls /proc | grep -c '^[0-9]'"
                )
                return executed.stdout

        outputs = await asyncio.gather(*[run(number) for number in range(16)])
        for number, output in enumerate(outputs):
            assert output.startswith(f"/tmp:\n\n/work:\nmine\n{number}".encode())

    asyncio.run(whole())


def test_commands_run_at_the_same_time(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        await bash(sandbox, "mkfifo /tmp/there /tmp/back")
        first, second = await asyncio.gather(
            bash(sandbox, "echo ping > /tmp/there; cat /tmp/back"),
            bash(sandbox, "cat /tmp/there; echo pong > /tmp/back"),
        )
        assert (first.stdout, second.stdout) == (b"pong\n", b"ping\n")

    in_jail(tmp_path, act)


def test_what_a_command_leaves_behind_goes_on(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        script = "python3 -m http.server 80 & echo started"
        executed = await bash(sandbox, script)
        assert executed.stdout == b"started\n"
        ask = "import urllib.request as u\nfor _ in range(1000):\n  try: print(u.urlopen('http://localhost:80').status); break\n  except OSError: __import__('time').sleep(0.1)"
        assert (await python(sandbox, ask)).stdout == b"200\n"
        assert (await python(sandbox, ask)).stdout == b"200\n"

    in_jail(tmp_path, act)


def test_a_timeout_ends_the_command_and_what_it_started_only(tmp_path: Path) -> None:
    def check(seconds: float) -> None:
        async def act(sandbox: Sandbox) -> None:
            await bash(sandbox, "sleep 1234 >/dev/null 2>&1 &")
            script = "setsid sleep 2345 & (sleep 3456 &) ; echo before; sleep 4567"
            executed = await bash(sandbox, script, seconds=seconds)
            assert executed.ended_by == "seconds"
            assert executed.exit_code == 128 + signal.SIGKILL
            assert executed.stdout == b"before\n"
            assert await living(sandbox) == ["sleep\0001234\0"]

        in_jail(tmp_path, act)

    within_growing_seconds(check)


def test_who_gives_up_waiting_ends_the_command(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(bash(sandbox, "sleep 1234"), 0.3)
        assert await living(sandbox) == []

    in_jail(tmp_path, act)


def test_output_keeps_beginning_and_end(tmp_path: Path) -> None:
    executed = run_bash(tmp_path, "echo start; yes | head -c 1000000; echo end")
    assert executed.stdout.startswith(b"start\ny\n")
    assert executed.stdout.endswith(b"y\nend\n")
    assert len(executed.stdout) == 64 << 10
    assert executed.dropped_bytes == 1_000_010 - (64 << 10)


def test_too_much_memory_ends_the_command(tmp_path: Path) -> None:
    program = "import mmap\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, 2 << 30, 4096): m[i] = 1"

    async def act(sandbox: Sandbox) -> None:
        executed = await python(sandbox, program)
        assert (executed.ended_by, executed.exit_code) == ("memory", 137)
        assert (await bash(sandbox, "echo on")).stdout == b"on\n"

    in_jail(tmp_path, act)


def test_python_has_its_library_and_nothing_that_was_installed(tmp_path: Path) -> None:
    modules = "import ctypes, sqlite3, ssl, bz2, lzma, zoneinfo, multiprocessing"
    names = "import os, sys; print(sys.version_info[:2], os.listdir(sys.path[-1]))"
    executed = in_jail(tmp_path, lambda sandbox: python(sandbox, f"{modules}\n{names}"))
    assert executed.exit_code == 0, executed.stderr
    assert executed.stdout.decode().startswith(str(sys.version_info[:2]))


def test_a_snapshot_has_the_files(tmp_path: Path) -> None:
    script = textwrap.dedent(r"""
        mkdir -p deep/er/folder empty '/tmp/with
        newline' "$(printf '\xff\xfe')"
        echo one > deep/er/folder/file
        ln -s deep/er link; ln -s /no/where broken; ln deep/er/folder/file hard
        printf '#!/bin/sh\necho run' > program; chmod 750 program
        mkfifo pipe
        truncate -s 20M holes; printf x | dd of=holes bs=1 seek=10000000 conv=notrunc 2>/dev/null
        echo secret > closed; chmod 000 closed; mkdir shut; echo in > shut/in; chmod 000 shut
        echo "127.0.0.1 changed" >> /etc/hosts; rm /etc/protocols
        mkdir /usr/local/share; echo local > /usr/local/share/x
        printf name > "$(python3 -c 'print("n" * 255)')"
        touch -h -d '2001-02-03 04:05:06' deep/er/folder/file pipe link broken empty
    """)
    look = r"""
        export LC_ALL=C
        find / -xdev \( -path /proc -o -path /dev \) -prune -o -printf '%p %y %m %s %T@ %l %n\n' | sed 's/\([0-9]\{9\}\)\.[0-9]* /\1 /' | sort | grep -v '^/ '
        cat deep/er/folder/file hard /etc/hosts; ./program; md5sum holes; stat -c %b holes; [ hard -ef deep/er/folder/file ] && echo same
    """

    async def make(sandbox: Sandbox) -> tuple[bytes, Snapshot]:
        executed = await bash(sandbox, script)
        assert executed.stderr == b""
        executed = await bash(sandbox, look)
        return executed.stdout, await sandbox.snapshot()

    async def restore(sandbox: Sandbox) -> tuple[bytes, Snapshot]:
        executed = await bash(sandbox, look)
        return executed.stdout, await sandbox.snapshot()

    before, snapshot = in_jail(tmp_path, make)
    after, second = in_jail(tmp_path, restore, snapshot=snapshot)
    assert after.decode("utf-8", "replace") == before.decode("utf-8", "replace")
    assert b"same" in after
    assert second == snapshot
    assert snapshot.n_bytes < 50_000
    stored = list((tmp_path / "sandboxes" / "jail").iterdir())
    assert [path.name for path in stored] == [f"{snapshot.reference}.tar.gz"]
    assert stored[0].stat().st_mode & 0o077 == 0
    assert stored[0].parent.stat().st_mode & 0o077 == 0


def test_what_was_removed_stays_removed(tmp_path: Path) -> None:
    async def make(sandbox: Sandbox) -> Snapshot:
        await bash(sandbox, "rm -rf /etc/passwd /home /tmp /var /work")
        return await sandbox.snapshot()

    async def look(sandbox: Sandbox) -> Executed:
        return await sandbox.exec(["ls", "/etc/passwd", "/home", "/var"], folder="/")

    executed = in_jail(tmp_path, look, snapshot=in_jail(tmp_path, make))
    assert executed.stdout.decode().split() == ["/var:", "tmp"]


def test_a_damaged_or_missing_snapshot_is_said(tmp_path: Path) -> None:
    snapshot = in_jail(tmp_path, lambda sandbox: sandbox.snapshot())
    path = tmp_path / "sandboxes" / "jail" / f"{snapshot.reference}.tar.gz"
    content = path.read_bytes()
    damages = [
        content[:-20],
        content[: len(content) // 2],
        b"",
        b"x" + content[1:],
        content[:200] + bytes([content[200] ^ 1]) + content[201:],
        content + b"more",
    ]
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(SnapshotMissing, match=snapshot.reference):
            in_jail(tmp_path, lambda sandbox: bash(sandbox, "true"), snapshot=snapshot)
        assert not path.exists()  # the next run would take it for the state again
    for put in (os.mkfifo, Path.mkdir, lambda place: place.symlink_to("/etc/hosts")):
        put(path)
        with pytest.raises(SnapshotMissing, match="Run the sample again"):
            in_jail(tmp_path, lambda sandbox: bash(sandbox, "true"), snapshot=snapshot)
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(SnapshotMissing, match="Run the sample again"):
        in_jail(tmp_path, lambda sandbox: bash(sandbox, "true"), snapshot=snapshot)
    elsewhere = Snapshot("jail", "../../../../etc/passwd", 1)
    with pytest.raises(SnapshotMissing):
        in_jail(tmp_path, lambda sandbox: bash(sandbox, "true"), snapshot=elsewhere)


def test_a_door_leads_to_this_process(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> bytes:
        door, address = await sandbox.listen()

        async def answer(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
            )
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, sock=door)
        program = f"import urllib.request as u; print(u.urlopen({address!r}).read())"
        async with server:
            executed = await python(sandbox, program)
        return executed.stdout

    assert in_jail(tmp_path, act) == b"b'hello'\n"


def test_a_plan_is_put_in(tmp_path: Path) -> None:
    files = [PlannedFile("/work/make", b"#!/bin/sh\necho made > out", True)]
    plan = SandboxPlan(SETTINGS, files, "./make")

    async def act(sandbox: Sandbox) -> bytes:
        await plan.prepare(sandbox)
        return await sandbox.read("out", 100)

    assert in_jail(tmp_path, act) == b"made\n"
    wrong = SandboxPlan(SETTINGS, [], "echo no >&2; exit 4")
    with pytest.raises(SandboxFailed, match=r"exit code 4.*no"):
        in_jail(tmp_path, wrong.prepare)


def test_a_stopped_jail_says_so(tmp_path: Path) -> None:
    async def whole() -> None:
        sandbox = await JailBackend().start(SETTINGS, tmp_path / "a" / "b")
        waiting = asyncio.create_task(bash(sandbox, "sleep 1234"))
        await bash(sandbox, "true")
        await sandbox.stop()
        await sandbox.stop()
        with pytest.raises(SandboxFailed, match="stopped"):
            await waiting
        with pytest.raises(SandboxFailed, match="stopped"):
            await sandbox.exec(["true"])
        with pytest.raises(SandboxFailed, match="stopped"):
            await sandbox.snapshot()

    asyncio.run(whole())


def test_folders_of_the_machine_are_shown_read_only(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("content")
    settings = SandboxSettings(limits=LIMITS, options={"read_only": [str(shown)]})
    home = tmp_path / "home"
    executed = run_bash(
        home, f"cat {shown}/file; echo x > {shown}/file; rm {shown}/file", settings
    )
    assert executed.stdout == b"content"
    assert b"Read-only file system" in executed.stderr
    assert (shown / "file").read_text() == "content"


@pytest.mark.parametrize(
    "folder", ["/", "/proc/self", "/sys", "/dev", "/etc", "{home}", "{home}/runs", "{home}/..", "/no/such"]
)  # fmt: skip
def test_some_folders_are_never_shown(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    path = folder.format(home=home)
    settings = SandboxSettings(limits=LIMITS, options={"read_only": [path]})
    with pytest.raises(SandboxFailed, match=r"does not show|cannot show"):
        run_bash(home, "true", settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SandboxSettings(image="x@sha256:0"), "no images"),
        (SandboxSettings(network=True), "no network"),
        (SandboxSettings(options={"privileged": True}), "no option privileged"),
        (SandboxSettings(options={"read_only": "/x"}), "list of folders"),
        (SandboxSettings(folder="work"), "absolute path"),
    ],
)
def test_what_a_jail_cannot_be_is_said(settings: SandboxSettings, message: str) -> None:
    assert message in backend_of("jail").refuses(settings)


KILLED = """
import asyncio, sys
from pathlib import Path
from evalwright.sandboxes.jail import JailBackend
from evalwright.sandboxes.protocol import SandboxSettings

async def main():
    sandbox = await JailBackend().start(SandboxSettings(), Path(sys.argv[1]))
    await sandbox.exec(["bash", "-c", "setsid sleep 9753.%s & true" % sys.argv[2]])
    print("ready", flush=True)
    await sandbox.exec(["sleep", "9753.%s" % sys.argv[2]])

asyncio.run(main())
"""


def test_everything_ends_with_a_killed_process(tmp_path: Path) -> None:
    mark = str(os.getpid())
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), mark], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"ready\n"
        assert _sleeping(mark)
        process.kill()
    for _ in range(5000):
        if not _sleeping(mark):
            return
        signal.sigtimedwait([], 0.02)
    raise AssertionError("processes of the jail are still there")


def _sleeping(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes() == f"sleep\0009753.{mark}\0".encode():
                return True
        except OSError:
            continue
    return False


def test_reading_what_is_no_file_is_said(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        for path, message in (
            ("/work", "folder"),
            ("none", "No such file"),
            ("/work/none/none", "No such file"),
            ("x" * 300, "name too long"),
            ("a\0b", "NUL"),
            ("", "not empty"),
        ):
            with pytest.raises(SandboxPathError, match=message):
                await sandbox.read(path, 10)

    in_jail(tmp_path, act)


def test_a_machine_without_namespaces_is_told_what_to_do(tmp_path: Path) -> None:
    """Inside a jail there are none."""
    source = Path(jail.__file__).parents[2]
    options = {"read_only": [str(source)]}
    settings = SandboxSettings(limits=LIMITS, options=options)
    program = (
        f"import sys; sys.path.insert(0, {str(source)!r})\n"
        "from evalwright.sandboxes.jail import JailBackend\n"
        "from evalwright.sandboxes.protocol import SandboxSettings\n"
        "print(JailBackend().refuses(SandboxSettings()))"
    )
    executed = in_jail(
        tmp_path / "home", lambda sandbox: python(sandbox, program), settings
    )
    refusal = executed.stdout.decode().strip()
    assert refusal.startswith("This machine cannot give a jail: this root has neither")
    assert "kernel.apparmor_restrict_unprivileged_userns" in refusal
    assert refusal.endswith(
        "Use a container instead: `backend: docker` or `backend: podman`."
    )
