"""What programs in a jail try against the machine, other jails, and those who ask what became of
them.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.sandboxes import containers, jail
from evalwright.sandboxes.backends import started
from evalwright.sandboxes.protocol import (
    Executed,
    Sandbox,
    SandboxFailed,
    SandboxLimits,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
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
    run_python,
)
from support.patience import within_growing_seconds

pytestmark = needs_jail

SECRET = "sk-secret-of-the-machine-91b2"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text(SECRET)
    path.chmod(0o644)
    for folder in path.parents[:3]:
        folder.chmod(0o755)
    return path


# Files of the machine.


@pytest.mark.parametrize(
    "path",
    [
        "{file}",
        "/work/../../../..{file}",
        "/proc/1/root{file}",
        "/proc/1/cwd{file}",
        "/proc/self/root{file}",
        "/proc/self/root/..{file}",
        "/proc/self/cwd/../..{file}",
        "/proc/thread-self/root{file}",
        "/dev/fd/../../../..{file}",
        "/usr/bin/../..{file}",
        "/opt/python/lib/../../..{file}",
    ],
)
def test_no_path_leads_to_the_machine(
    tmp_path: Path, secret_file: Path, path: str
) -> None:
    target = path.format(file=secret_file)

    async def act(sandbox: Sandbox) -> Executed:
        await bash(sandbox, f"ln -s '{target}' link; ln -s / root")
        for asked in (target, "link", f"root{target}"):
            with pytest.raises(SandboxPathError):
                await sandbox.read(asked, 1000)
        return await bash(sandbox, f"cat '{target}' link root{secret_file}")

    executed = in_jail(tmp_path, act)
    assert SECRET.encode() not in executed.stdout
    assert executed.exit_code == 1


def test_the_machine_cannot_be_seen_at_all(tmp_path: Path, secret_file: Path) -> None:
    script = r"""
        for f in /proc/[0-9]*/root /proc/[0-9]*/cwd /proc/[0-9]*/fd/*; do ls -d "$f"/. ; done 2>/dev/null
        find / -xdev -name '*secret*' 2>/dev/null
        ls -d /root/.[a-z]* /home/* /sys/* /boot /mnt/* /usr/local/*/* /var/lib /run/* 2>/dev/null
        cat /etc/shadow /etc/machine-id /proc/cmdline /proc/kcore /proc/kmsg /proc/keys 2>/dev/null | head -c 100
    """
    executed = run_bash(tmp_path, script)
    shown = executed.stdout.decode().split()
    roots = {f"/proc/{n}/{kind}/." for n in range(200) for kind in ("root", "cwd")}
    assert set(shown) <= roots, shown


def test_descriptors_are_three(tmp_path: Path) -> None:
    program = """
import os
for number in range(3, 1024):
    try: os.fstat(number)
    except OSError: continue
    print(number)
for number in range(3): print(os.readlink(f'/proc/self/fd/{number}')[:5])
"""
    assert run_python(tmp_path, program).stdout == b"/dev/\npipe:\npipe:\n"


def test_environment_and_keys_stay_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)

    async def act(sandbox: Sandbox) -> Executed:
        return await bash(
            sandbox, "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'"
        )

    executed = in_jail(tmp_path, act)
    assert SECRET.encode() not in executed.stdout + executed.stderr
    names = {
        row.partition("=")[0]
        for row in executed.stdout.decode().splitlines()
        if "=" in row
    }
    assert names <= {*jail.ENVIRONMENT, "PWD", "SHLVL", "_", "LD_LIBRARY_PATH"}


@pytest.mark.parametrize(
    "command",
    [
        "mount -t tmpfs none /mnt",
        "mount --bind / /mnt",
        "mount -o remount,rw /usr/bin",
        "umount /proc/kcore",
        "umount -l /usr/lib",
        "unshare -Ur true",
        "unshare -n true",
        "unshare -m true",
        "nsenter -t 1 -a true",
        "nsenter --user=/proc/self/ns/user true",
        "chroot /work /bin/true",
        "touch /usr/bin/x",
        "rm -f /usr/bin/env",
        "chmod 777 /usr/bin/env",
        "ln /usr/bin/env /usr/bin/other",
        "touch /opt/python/lib/*/os.py",
        "rm -f /dev/null",
        "chmod 000 /dev/null",
        "mknod /work/disk b 254 0",
        "mknod /work/memory c 1 1",
        "echo b > /proc/sysrq-trigger && cat /proc/sysrq-trigger | grep .",
        "echo '|/work/x' > /proc/sys/kernel/core_pattern",
        "echo 1 > /proc/sys/kernel/panic",
        "hostname other",
        "date -s 2001-01-01",
        "swapon /work/x",
        "chown 1:1 /work",
        "setpriv --reuid 1000 --clear-groups true",
        "nice -n -5 true 2>&1 | grep -v 'cannot set'",
        "dmesg | grep .",
        "ip link set lo down",
        "echo -17 > /proc/self/oom_score_adj",
        "cat /proc/1/maps || ls /proc/1/fd",
        "ls /proc/1",
        "ls /proc/self/fdinfo/9",
    ],
)
def test_it_is_refused(tmp_path: Path, command: str) -> None:
    executed = run_bash(tmp_path, f"{command}")
    assert executed.exit_code != 0, executed


@pytest.mark.parametrize(
    "call",
    [
        "unshare(0x10000000)",
        "unshare(0x20000)",
        "syscall(56, 0x10000000 | 17, 0, 0, 0, 0)",
        "syscall(56, 0x8000 | 17, 0, 0, 0, 0)",
        "syscall(435, b'\\0' * 88, 88)",
        "syscall(308, 0, 0)",
        "syscall(250, 0, -3, 1)",
        "syscall(248, b'user', b'x', b'y', 1, -1)",
        "syscall(321, 0, b'\\0' * 72, 72)",
        "syscall(298, b'\\0' * 128, 0, -1, -1, 0)",
        "syscall(323, 0)",
        "syscall(425, 8, b'\\0' * 120)",
        "syscall(304, -100, b'\\0' * 16, 0)",
        "syscall(303, -100, b'/', b'\\0' * 16, b'\\0' * 8, 0)",
        "syscall(319, b'x', 0)",
        "syscall(447, 0)",
        "syscall(29, 0, 4096, 0o1600)",
        "syscall(135, 0x8)",
        "syscall(428, -100, b'/', 1)",
        "syscall(430, b'tmpfs', 0)",
        "syscall(442, -100, b'/', 0, b'\\0' * 32, 32)",
        "syscall(155, b'.', b'.')",
        "syscall(175, b'', 0, b'')",
        "syscall(169, 0xfee1dead, 672274793, 0x1234567)",
        "syscall(103, 3, b'\\0' * 100, 100)",
        "syscall(300, 0, 0)",
        "syscall(41, 16, 3, 0)",
        "syscall(41, 17, 3, 0)",
        "syscall(41, 38, 5, 0)",
        "syscall(41, 40, 1, 0)",
        "syscall(41, 31, 3, 1)",
        "syscall(41, 2, 3, 1)",
        "syscall(16, 0, 0x5412, b'x')",
        "syscall(16, 0, 0x541C, b'x')",
        "syscall(460, 0)",
        "syscall(900, 0)",
        "syscall(172, 3)",
        "syscall(157, 38, 0, 0, 0, 0)",
    ],
)
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")
def test_a_system_call_is_refused(tmp_path: Path, call: str) -> None:
    program = f"import ctypes; l = ctypes.CDLL(None, use_errno=True); r = l.{call}; print(r if r < 0 else 'open')"
    executed = run_python(tmp_path, program)
    assert executed.stdout == b"-1\n", executed


def test_no_capability_and_no_way_to_get_one(tmp_path: Path) -> None:
    script = """
        grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status
        cp /usr/bin/env /work/env; chmod u+s,g+s /work/env; /work/env grep -E '^(CapEff|CapPrm)' /proc/self/status
        setcap all+ep /work/env || true
    """
    executed = run_bash(tmp_path, script)
    values = {row.split()[1] for row in executed.stdout.decode().splitlines()}
    assert values == {"0000000000000000", "1", "2"}


def test_files_of_other_users_belong_to_nobody(tmp_path: Path) -> None:
    script = "stat -c %u /usr/bin/env /proc/sys /dev/null; find /usr /etc -writable -not -type l -xdev 2>/dev/null | grep -v -e '^/usr$' -e ^/usr/local -e '^/etc'"
    assert set(run_bash(tmp_path, script).stdout.split()) == {b"65534"}


# Processes.


def test_the_first_process_cannot_be_ended_or_read(tmp_path: Path) -> None:
    program = """
import ctypes, os, signal
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError as error: print('kill', error.errno)
l = ctypes.CDLL(None, use_errno=True)
print(l.ptrace(16, 1, 0, 0), ctypes.get_errno())
print(l.ptrace(0x4206, 1, 0, 0), ctypes.get_errno())
for name in ('mem', 'environ', 'maps', 'root', 'cwd', 'exe', 'fd', 'ns/mnt', 'stat', 'cmdline'):
    try: os.stat(f'/proc/1/{name}'); print(name)
    except OSError: pass
pidfd = os.pidfd_open(1)
for number in range(40):
    if l.syscall(438, pidfd, number, 0) >= 0: print('descriptor', number)
buffer = ctypes.create_string_buffer(8)
pair = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8)
print(l.process_vm_readv(1, pair, 1, pair, 1, 0))
"""

    async def act(sandbox: Sandbox) -> None:
        executed = await python(sandbox, program)
        rows = executed.stdout.decode().splitlines()
        assert [row for row in rows if not row.startswith("kill")] == [
            "-1 1",
            "-1 1",
            "-1",
        ]
        assert (await bash(sandbox, "kill -9 -1; echo on")).exit_code in (0, 137)
        assert (await bash(sandbox, "echo on")).stdout == b"on\n"

    in_jail(tmp_path, act)


def test_nobody_outside_can_be_signalled(tmp_path: Path) -> None:
    program = """
import os, signal
print(os.getppid(), os.getsid(0) == os.getpid())
for number in range(1, 40000):
    if number != os.getpid():
        try: os.kill(number, signal.SIGTERM)
        except ProcessLookupError: continue
        except PermissionError: print('there', number); continue
        print('sent', number)
for target in (0, -1):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try: os.kill(target, signal.SIGTERM)
    except ProcessLookupError: pass
"""
    executed = run_python(tmp_path, program)
    assert executed.exit_code == 0
    assert executed.stdout == b"0 True\nsent 1\n"  # which ignores it


def test_jails_do_not_see_each_other(tmp_path: Path) -> None:
    async def whole() -> None:
        async with (
            started(SETTINGS, tmp_path) as one,
            started(SETTINGS, tmp_path) as two,
        ):
            await one.write("/tmp/mine", SECRET.encode())
            listening = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0door'); s.listen(); t = socket.create_server(('0.0.0.0', 8080)); print(1, flush=True); time.sleep(600)"
            await bash(
                one,
                f'python3 -c "{listening}" > /dev/shm/said & until grep -q 1 /dev/shm/said;'
                f" do sleep 0.05; done; echo {SECRET} > /dev/shm/x",
            )
            looks = [
                "ls /tmp /dev/shm /work",
                "cat /proc/*/cmdline | tr '\\0' ' ' | grep -c liste[n]",
                "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\0door')\"",
                "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 8080), 3)\"",
                "ipcs | grep 0x; ls /dev/pts; cat /proc/net/unix | grep door",
            ]
            for look in looks:
                executed = await bash(two, look)
                assert SECRET.encode() not in executed.stdout
                assert b"mine" not in executed.stdout
                assert executed.exit_code != 0 or look.startswith("ls"), executed

    asyncio.run(whole())


def test_a_fork_bomb_stays_inside(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        await bash(sandbox, ":(){ :|:& };:; sleep 60", seconds=1.0)
        assert (await bash(sandbox, "echo on; exit 3")).stdout == b"on\n"

    in_jail(tmp_path, act)


def test_a_fork_bomb_ends_with_its_command(tmp_path: Path) -> None:
    program = "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass"

    async def act(sandbox: Sandbox) -> None:
        executed = await python(sandbox, program, seconds=1.0)
        assert executed.ended_by == "seconds"
        assert await living(sandbox) == []

    in_jail(tmp_path, act)


def test_processes_and_threads_are_counted_together(tmp_path: Path) -> None:
    program = """
import os, threading, time
n = 0
try:
    while n < 1000: threading.Thread(target=time.sleep, args=(5,), daemon=True).start(); n += 1
except RuntimeError: pass
try: os.fork(); print('forked', n, flush=True)
except BlockingIOError: print('full', n, flush=True)
os._exit(0)
"""
    executed = run_python(tmp_path, program)
    assert executed.stdout == f"full {LIMITS.processes - 1}\n".encode(), executed


def test_who_forks_and_ends_faster_than_one_can_look_is_ended(tmp_path: Path) -> None:
    program = "import os\nos.setsid() if os.fork() == 0 else os._exit(0)\nwhile True:\n    if os.fork(): os._exit(0)"

    async def act(sandbox: Sandbox) -> None:
        hopper = f"for i in 1 2 3 4; do python3 -c '{program}' & done; sleep 60"
        executed = await bash(sandbox, hopper, seconds=1.0)
        assert executed.ended_by == "seconds"
        count = "n=0; for i in $(seq 30); do ls /proc | grep -E '^[0-9]+$' >> /tmp/n; done; sort -u /tmp/n | wc -l; ps -eo args | grep -c setsi[d]"
        counted = await bash(sandbox, count)
        assert counted.stdout.split()[1] == b"0", counted

    in_jail(tmp_path, act)


@pytest.mark.parametrize(
    "script",
    [
        "kill -STOP $$",
        "trap '' TERM INT HUP; while :; do :; done",
        "python3 -c 'import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); time.sleep(99)'",
        "python3 -c 'import ctypes, time; ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(99)'",
        "exec >&- 2>&-; sleep 99",
        "python3 -c 'import ctypes, os, threading, time\nos.fork()\nthreading.Thread(target=time.sleep, args=(99,)).start()\nctypes.CDLL(None).syscall(60 if os.uname().machine == \"x86_64\" else 93, 0)'",
        "(trap '' HUP; setsid sleep 99 & ) ; sleep 99",
        "python3 -c 'import os,time\nfor i in range(9):\n  if os.fork(): time.sleep(99)\n  os.setsid()'",
        "python3 -c 'import ctypes, os\nos.fork()\nctypes.CDLL(None).prctl(15, b\") R 0 0 0 0\", 0, 0, 0)\nwhile 1: pass'",
    ],
)
def test_nothing_outlives_the_time(tmp_path: Path, script: str) -> None:
    async def act(sandbox: Sandbox) -> None:
        executed = await bash(sandbox, script, seconds=0.7)
        assert (executed.ended_by, executed.exit_code) == ("seconds", 137)
        assert await living(sandbox) == []

    in_jail(tmp_path, act)


def test_a_command_ends_though_others_hold_its_output(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        executed = await bash(sandbox, "yes & sleep 98 & echo done >&2; exit 5")
        assert executed.exit_code == 5
        assert executed.ended_by == ""
        assert executed.stderr == b"done\n"
        assert executed.seconds < 90  # not the 98 of what holds it
        again = await bash(sandbox, "pgrep -c yes; kill $(pgrep yes)")
        assert again.stdout == b"1\n"  # it goes on, and somebody reads what it writes

    in_jail(tmp_path, act)


def test_what_is_done_to_the_command_is_its_own_end(tmp_path: Path) -> None:
    """A process that was left behind ends each new command: it can no more than that."""

    async def act(sandbox: Sandbox) -> None:
        killer = "import os, signal, time\nos.setsid()\nwhile 1:\n  for n in os.listdir('/proc'):\n    if n.isdigit() and int(n) != os.getpid():\n      try: os.kill(int(n), 9)\n      except OSError: pass"
        await bash(sandbox, f'python3 -c "{killer}" >/dev/null 2>&1 & sleep 0.3')
        executed = await python(
            sandbox, "import time; time.sleep(250); print('forged')"
        )
        assert executed.exit_code == 137
        assert executed.stdout == b""
        await sandbox.write("x", b"still")
        assert await sandbox.read("x", 10) == b"still"
        assert (await sandbox.snapshot()).n_bytes > 0

    in_jail(tmp_path, act)


# Memory, disk, output.


@pytest.mark.parametrize(
    "program",
    [
        "x = bytearray(1 << 34)",
        "x = []\nwhile 1: x.append(bytearray(1 << 20))",
        "import os\nfor i in range(5): os.fork()\nx = bytearray(b'x') * (200 << 20)\n__import__('time').sleep(30)",
        "import mmap\nx = [mmap.mmap(-1, 1 << 30) for i in range(9)]\nfor m in x:\n  for i in range(0, 1 << 30, 4096): m[i] = 1",
        "import mmap, os\nf = os.open('/dev/zero', os.O_RDWR)\nm = mmap.mmap(f, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1",
        "import ctypes, mmap, threading\ndef eat():\n  m = mmap.mmap(-1, 1 << 30)\n  for i in range(0, 1 << 30, 4096): m[i] = 1\nthreading.Thread(target=eat).start()\nctypes.CDLL(None).syscall(60 if __import__('os').uname().machine == 'x86_64' else 93, 0)",
        "import mmap\nx = [mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE, mmap.PROT_READ) for i in range(4)]\nfor m in x: m.madvise(15)\nwhile 1:\n  for m in x:\n    for i in range(0, 1 << 40, 2 << 20): m[i]",
        "import ctypes, mmap\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1",
    ],
)
def test_a_memory_bomb_is_ended(tmp_path: Path, program: str) -> None:
    async def act(sandbox: Sandbox) -> None:
        executed = await python(sandbox, program)
        assert executed.exit_code != 0
        assert executed.ended_by == "memory" or b"MemoryError" in executed.stderr, (
            executed
        )
        assert (await bash(sandbox, "echo on")).stdout == b"on\n"
        assert await living(sandbox) == []

    in_jail(tmp_path, act)


def test_memory_between_two_looks_ends_the_command(tmp_path: Path) -> None:
    """The keeper gets no processor while the memory is used."""
    program = """
import mmap, socket, sys
line = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
line.sendall(b'here'); line.recv(1)
with mmap.mmap(-1, 512 << 20) as m:
    for i in range(0, len(m), 4096): m[i] = 1
line.sendall(b'done')
"""
    settings = SandboxSettings(limits=replace(LIMITS, memory_mb=64))

    async def act(sandbox: Sandbox) -> None:
        door, address = await sandbox.listen()
        port = address.rpartition(":")[2]
        starter = jail._starter()._process
        assert starter is not None
        (keeper,) = await _children(starter.pid, most=1)
        command = ["python3", "-c", program, port]
        running = asyncio.create_task(sandbox.exec(command))
        door.settimeout(300)
        line, _ = await asyncio.to_thread(door.accept)
        with line:
            line.settimeout(300)
            assert await asyncio.to_thread(line.recv, 4) == b"here"
            os.kill(keeper, signal.SIGSTOP)
            try:
                line.sendall(b"g")
                assert await asyncio.to_thread(line.recv, 4) == b"done"
            finally:
                os.kill(keeper, signal.SIGCONT)
        executed = await running
        assert (executed.ended_by, executed.exit_code) == ("memory", 137)
        assert (await bash(sandbox, "echo on")).stdout == b"on\n"

    in_jail(tmp_path, act, settings)


@pytest.mark.parametrize(
    ("memory_mb", "processes", "most_mb"),
    [(64, 128, 64 + 512), (64, 16, 64 + 16 * 8), (1024, 128, 2048)],
)
def test_what_one_process_can_set_aside_is_bounded(
    tmp_path: Path, memory_mb: int, processes: int, most_mb: int
) -> None:
    limits = replace(LIMITS, memory_mb=memory_mb, processes=processes)
    executed = run_bash(
        tmp_path,
        f'ulimit -d; python3 -c "bytearray({most_mb} << 20)"',
        SandboxSettings(limits=limits),
    )
    assert executed.stdout == f"{most_mb << 10}\n".encode()
    assert b"MemoryError" in executed.stderr
    assert executed.exit_code == 1


def test_a_memory_bomb_that_was_left_behind_is_ended(tmp_path: Path) -> None:
    program = "import time, mmap\ntime.sleep(0.5)\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1\ntime.sleep(99)"

    async def act(sandbox: Sandbox) -> None:
        await bash(sandbox, f"python3 -c '{program}' >/dev/null 2>&1 &")
        for _ in range(1000):
            left = await bash(sandbox, "pgrep -c python3; sleep 0.1")
            if left.stdout == b"0\n":
                return
        raise AssertionError("the bomb goes on")

    in_jail(tmp_path, act)


@pytest.mark.parametrize(
    "folder", ["/work", "/tmp", "/", "/root", "/dev/shm", "/var/tmp", "/etc"]
)
def test_the_disk_is_bounded_everywhere(tmp_path: Path, folder: str) -> None:
    async def act(sandbox: Sandbox) -> None:
        script = f"for i in 1 2 3; do head -c 20M /dev/zero > {folder}/x$i; done; du -sm {folder}/x* | awk '{{s+=$1}} END {{print s}}'"
        executed = await bash(sandbox, script)
        assert b"No space left" in executed.stderr
        assert int(executed.stdout) <= LIMITS.disk_mb + 3
        with pytest.raises(SandboxPathError, match="No space left"):
            await sandbox.write("/work/mine", b"x" * 100_000)
        assert (await sandbox.snapshot()).n_bytes < 1_000_000
        await bash(sandbox, f"rm {folder}/x*")
        await sandbox.write("/work/mine", b"x")

    in_jail(tmp_path, act)


def test_files_are_bounded_in_number(tmp_path: Path) -> None:
    program = "import os\nn = 0\ntry:\n  while 1: os.close(os.open(f'/tmp/{n}', os.O_CREAT)); n += 1\nexcept OSError as e: print(e.errno, n)"

    async def act(sandbox: Sandbox) -> None:
        executed = await python(sandbox, program)
        number, n_files = map(int, executed.stdout.split())
        assert number == 28
        assert n_files < 25_000
        with pytest.raises(SandboxPathError, match="No space left"):
            await sandbox.write("/work/mine", b"x")
        assert (await sandbox.snapshot()).n_bytes > 0

    in_jail(tmp_path, act)


def test_output_without_end_costs_no_memory(tmp_path: Path) -> None:
    def check(seconds: float) -> None:
        executed = in_jail(
            tmp_path,
            lambda sandbox: bash(sandbox, "yes & yes >&2", seconds=seconds),
        )
        assert executed.ended_by == "seconds"
        assert len(executed.stdout) == len(executed.stderr) == LIMITS.output_kb << 10
        assert executed.dropped_bytes > 1_000_000

    within_growing_seconds(check)


def test_a_file_of_a_terabyte_is_not_made(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        executed = await bash(
            sandbox,
            "truncate -s 1T huge; seq 200 | xargs -I{} truncate -s 30M sparse{}",
        )
        assert b"File size limit exceeded" in executed.stderr
        snapshot = await sandbox.snapshot()
        assert snapshot.n_bytes < 1_000_000

    in_jail(tmp_path, act)


# Files with strange names and kinds.


@pytest.mark.parametrize(
    ("make", "path", "message"),
    [
        ("mkfifo p", "p", "not a file"),
        ("mkfifo p; ln -s p l", "l", "not a file"),
        ("true", "/dev/zero", "not a file"),
        ("true", "/dev/random", "not a file"),
        ("true", "/dev/ptmx", "not a file"),
        ("true", "/dev/stdin", ""),
        ("true", "/proc/self/environ", ""),
        ("true", "/proc/version", "/proc"),
        ("true", "/proc/sys/kernel/hostname", "/proc"),
        ("ln -s l l", "l", "Too many levels"),
        ("ln -s /proc/1/environ l", "l", ""),
        ("python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"", "s", "not a file"),
        ("mkdir d", "d", "folder"),
        ("touch f", "f/x", "Not a directory"),
    ],
)  # fmt: skip
def test_only_files_are_read_and_written(
    tmp_path: Path, make: str, path: str, message: str
) -> None:
    async def act(sandbox: Sandbox) -> None:
        await bash(sandbox, make)
        with pytest.raises(SandboxPathError, match=message or None):
            await asyncio.wait_for(sandbox.read(path, 1000), 60)
        if path.startswith(("/dev/", "/proc/")) or make != "true":
            with pytest.raises(SandboxPathError):
                await asyncio.wait_for(sandbox.write(path, b"x"), 60)

    in_jail(tmp_path, act)


def test_links_in_a_path_that_is_written_stay_inside(
    tmp_path: Path, secret_file: Path
) -> None:
    async def act(sandbox: Sandbox) -> None:
        await bash(
            sandbox,
            f"ln -s {secret_file.parent} folder; ln -s {secret_file} file; ln -s /usr/bin usr",
        )
        with pytest.raises(SandboxPathError):
            await sandbox.write("folder/secret.txt", b"changed")
        with pytest.raises(SandboxPathError, match=r"Read-only|denied"):
            await sandbox.write("usr/env", b"changed")
        race = "import os\nos.mkdir('/work/d')\nwhile 1:\n  os.rename('/work/d', '/work/e'); os.symlink('/usr/bin', '/work/d'); os.unlink('/work/d'); os.rename('/work/e', '/work/d')"
        racing = asyncio.create_task(python(sandbox, race, seconds=2.0))
        while not racing.done():
            try:
                await sandbox.write("/work/d/env", b"changed")
            except SandboxPathError:
                continue
        await racing

    in_jail(tmp_path, act)
    assert secret_file.read_text() == SECRET
    assert Path("/usr/bin/env").stat().st_size > 1000


def test_a_lease_does_not_hold_us_up(tmp_path: Path) -> None:
    program = "import fcntl, os, time\nf = os.open('/work/x', os.O_RDWR | os.O_CREAT)\nfcntl.fcntl(f, 1024, 1)\nimport signal; signal.signal(signal.SIGIO, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(999)"

    async def act(sandbox: Sandbox) -> None:
        await bash(
            sandbox,
            f'python3 -c "{program}" > /tmp/said & until grep -q 1 /tmp/said; do sleep 0.05; done',
        )
        with pytest.raises(SandboxPathError):
            await asyncio.wait_for(sandbox.read("x", 10), 60)

    in_jail(tmp_path, act)


def test_strange_names_are_names(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> Snapshot:
        for name in (
            "a\nb",
            "-rf",
            "$(id)",
            "…",
            "\udcff\udcfe",
            "x" * 255,
            " ",
            "\x1b[2J",
        ):
            await sandbox.write(name, name.encode("utf-8", "surrogateescape"))
        return await sandbox.snapshot()

    async def look(sandbox: Sandbox) -> Executed:
        return await sandbox.exec(
            [
                "python3",
                "-c",
                "import os; print(sorted(map(os.fsencode, os.listdir())))",
            ]
        )

    executed = in_jail(tmp_path, look, snapshot=in_jail(tmp_path, act))
    for name in (
        b"a\\nb",
        b"-rf",
        b"$(id)",
        b"\\xff\\xfe",
        b"x" * 255,
        b"' '",
        b"\\x1b[2J",
    ):
        assert name in executed.stdout


# Snapshots.


@pytest.mark.parametrize("n_folders", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_a_snapshot_of_many_files(tmp_path: Path, n_folders: int) -> None:
    limits = SandboxLimits(disk_mb=400, seconds=600.0)
    program = f"n = {n_folders}\nimport os\nfor i in range(n):\n  os.mkdir(f'd{{i}}')\n  for j in range(1000):\n    open(f'd{{i}}/{{j}}', 'w').write(str(j))"

    async def make(sandbox: Sandbox) -> Snapshot:
        executed = await python(sandbox, program)
        assert executed.exit_code == 0, executed.stderr
        return await sandbox.snapshot()

    async def look(sandbox: Sandbox) -> Executed:
        return await bash(sandbox, "find . -type f | wc -l; cat d9/999")

    settings = SandboxSettings(limits=limits)
    snapshot = in_jail(tmp_path, make, settings)
    assert in_jail(tmp_path, look, settings, snapshot).stdout == (
        f"{n_folders * 1000}\n999".encode()
    )


def test_a_snapshot_cannot_be_prevented(tmp_path: Path) -> None:
    script = """
        mkdir deep; cd deep; python3 -c "
import os
for i in range(3000): os.mkdir('n' * 100); os.chdir('n' * 100)"
        cd /work; mkdir -m 000 shut; touch keep; chmod 000 keep; ln -s loop loop; mknod c c 0 0 || true
        python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('/work/socket')"
        chmod 000 / /work /etc
        (while :; do mv /tmp/a /tmp/b; touch /tmp/a; rm -f /tmp/b; done) >/dev/null 2>&1 &
    """

    async def make(sandbox: Sandbox) -> Snapshot:
        await bash(sandbox, script)
        return await sandbox.snapshot()

    async def look(sandbox: Sandbox) -> Executed:
        await sandbox.write("/work/scorer", b"x")
        return await bash(sandbox, "chmod 755 / /work; ls -l /work/keep; ls /work")

    executed = in_jail(tmp_path, look, snapshot=in_jail(tmp_path, make))
    assert {b"deep", b"keep", b"loop", b"shut", b"scorer"} <= set(
        executed.stdout.split()
    )


_IN_ITS_PLACE = [
    "ln -s /nowhere/at/all work",
    "ln -s work work",
    "ln -s /proc/self work",
    "echo > work",
    "mkfifo work",
    "cat /dev/zero > fill 2> /dev/null; true",
]
"""Scripts that leave something else where the folder of the sandbox was, or no room for it."""


@pytest.mark.parametrize("script", _IN_ITS_PLACE)
def test_a_snapshot_without_its_folder_can_be_used(tmp_path: Path, script: str) -> None:
    async def make(sandbox: Sandbox) -> Snapshot:
        await bash(sandbox, f"cd /; mv work moved; echo kept > kept; {script}")
        return await sandbox.snapshot()

    async def look(sandbox: Sandbox) -> Executed:
        return await sandbox.exec(["cat", "/kept"], folder="/")

    executed = in_jail(tmp_path, look, snapshot=in_jail(tmp_path, make))
    assert executed.stdout == b"kept\n"


@pytest.mark.parametrize("script", _IN_ITS_PLACE[:-1])
def test_a_container_without_its_folder_is_prepared(
    tmp_path: Path, script: str
) -> None:
    """The script that prepares containers, in a jail, which needs no engine."""

    async def prepare(sandbox: Sandbox) -> list[int]:
        await bash(sandbox, f"cd /; mv work moved; {script}")
        return [
            (
                await sandbox.exec(
                    ["sh", "-c", containers._PREPARE, "sh", "/work", user, "used"],
                    folder="/",
                )
            ).exit_code
            for user in ("root", "other")
        ]

    assert in_jail(tmp_path, prepare) == [0, 0]


def _store(home: Path, entries: list[tuple[tarfile.TarInfo, bytes]]) -> Snapshot:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    stored = gzip.compress(buffer.getvalue())
    reference = hashlib.blake2b(stored, digest_size=16).hexdigest()
    folder = home / "sandboxes" / "jail"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{reference}.tar.gz").write_bytes(stored)
    return Snapshot("jail", reference, len(stored))


def _entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0
) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.linkname = link
    entry.size = size
    entry.mode = 0o4755
    return entry


@pytest.mark.parametrize("number", range(9))
def test_a_hostile_snapshot_hurts_nobody_else(
    tmp_path: Path, secret_file: Path, number: int
) -> None:
    up = "../" * 20
    folder = str(secret_file.parent)
    entries = [
        [(_entry(f"{up}{folder}/secret.txt", size=1), b"x")],
        [(_entry(str(secret_file), size=1), b"x")],
        [(_entry("l", tarfile.SYMTYPE, folder), b""), (_entry("l/secret.txt", size=1), b"x")],
        [(_entry("h", tarfile.LNKTYPE, f"{up}{secret_file}"), b"")],
        [(_entry("d", tarfile.BLKTYPE), b""), (_entry("c", tarfile.CHRTYPE), b"")],
        [(_entry("proc/sys/kernel/hostname", size=1), b"x")],
        [(_entry("usr/bin/env", size=1), b"x")],
        [(_entry("p", tarfile.SYMTYPE, "/proc/self/fd"), b""), (_entry("p/5", size=1), b"x")],
        [(_entry("dev/null", size=1), b"x")],
    ]  # fmt: skip
    snapshot = _store(tmp_path, entries[number])
    try:
        executed = in_jail(
            tmp_path,
            lambda sandbox: bash(sandbox, f"cat h {secret_file}; ls /"),
            snapshot=snapshot,
        )
    except Exception as error:
        assert "could not be started" in str(error) or "damaged" in str(error), error
    else:
        assert SECRET.encode() not in executed.stdout
    assert secret_file.read_text() == SECRET
    assert Path("/usr/bin/env").stat().st_size > 1000


# The network.


def test_the_network_is_the_jails_own(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as hidden,
    ):
        hidden.bind(f"\0evalwright-test-{os.getpid()}")
        hidden.listen()
        port = server.getsockname()[1]
        addresses = socket.gethostbyname_ex(socket.gethostname())[2]
        program = f"""
import socket
def attempt(what, act):
    try: act(); print('reached', what)
    except OSError as error: pass
for host in {["127.0.0.1", "localhost", *addresses]!r}:
    attempt(host, lambda: socket.create_connection((host, {port}), 2))
for host in ('169.254.169.254', '10.0.0.1', '8.8.8.8', '1.1.1.1'):
    attempt(host, lambda: socket.create_connection((host, 80), 2))
    attempt(host, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (host, 53)))
attempt('IPv6', lambda: socket.create_connection(('2606:4700:4700::1111', 80), 2))
attempt('DNS', lambda: socket.getaddrinfo('example.com', 80))
attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0evalwright-test-{os.getpid()}'))
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0'):
    attempt(path, lambda: socket.socket(socket.AF_UNIX).connect(path))
print(socket.if_nameindex())
"""
        executed = run_python(tmp_path, program)
    assert b"reached" not in executed.stdout, executed
    assert executed.stdout in (b"[(1, 'lo')]\n", b"")


def test_a_door_is_the_only_one(tmp_path: Path) -> None:
    """The door of a jail leads nowhere in another, nor from this machine."""

    async def whole() -> None:
        async with (
            started(SETTINGS, tmp_path) as one,
            started(SETTINGS, tmp_path) as two,
        ):
            door, address = await one.listen()
            port = int(address.rpartition(":")[2])
            program = (
                f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
            )
            assert (await python(two, program)).exit_code == 1
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port), 2)
            door.settimeout(300)
            asking = asyncio.create_task(python(one, program))
            connection, _ = await asyncio.to_thread(door.accept)
            connection.close()
            assert (await asking).exit_code == 0

    asyncio.run(whole())


# Those who ask.


def test_many_threads_of_ours_start_jails(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            executed = run_bash(tmp_path / str(number), f"echo {number}")
            assert executed.stdout == f"{number}\n".encode()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_starter_that_was_killed_is_started_again(tmp_path: Path) -> None:
    run_bash(tmp_path, "true")
    process = jail._starter()._process
    assert process is not None
    process.kill()
    process.wait()
    assert run_bash(tmp_path, "echo again").stdout == b"again\n"


def test_a_keeper_that_is_killed_takes_all_with_it(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        mark = f"8642.{os.getpid()}"
        await bash(sandbox, f"setsid sleep {mark} >/dev/null 2>&1 &")
        waiting = asyncio.create_task(bash(sandbox, f"sleep {mark}"))
        await bash(sandbox, "true")
        starter = jail._starter()._process
        assert starter is not None
        keepers = await _children(starter.pid, most=1)
        assert len(keepers) == 1
        os.kill(keepers[0], signal.SIGKILL)
        with pytest.raises(SandboxFailed, match="no longer there"):
            await waiting
        with pytest.raises(SandboxFailed, match="no longer there"):
            await sandbox.read("x", 1)
        for _ in range(1000):
            if subprocess.run(
                ["pgrep", "-f", f"^sleep {mark}"], check=False
            ).returncode:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("a process of the jail goes on")

    in_jail(tmp_path, act)


def test_a_path_of_a_thousand_folders(tmp_path: Path) -> None:
    async def act(sandbox: Sandbox) -> None:
        with pytest.raises(SandboxPathError):
            await sandbox.write("a/" * 2000 + "x", b"")
        with pytest.raises(SandboxPathError):
            await sandbox.write("a/" * 200_000 + "x", b"")
        await sandbox.write("b/" * 300 + "x", b"deep")
        assert await sandbox.read("b/" * 300 + "x", 10) == b"deep"

    in_jail(tmp_path, act)


def test_nothing_stays_when_jails_stop(tmp_path: Path) -> None:
    run_bash(tmp_path, "true")
    starter = jail._starter()._process
    assert starter is not None
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        run_bash(tmp_path, "setsid sleep 99 >/dev/null 2>&1 & (sleep 98 &); echo x > y")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert asyncio.run(_children(starter.pid, most=0)) == []


async def _children(process: int, most: int) -> list[int]:
    """List the children of a process, once there are no more than so many.

    A keeper closes its line a moment before the kernel has taken it away.
    """
    listed: list[int] = []
    for _ in range(400):
        finished = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process)],
            stdout=subprocess.PIPE,
            check=False,
        )
        listed = [int(number) for number in finished.stdout.split()]
        if len(listed) <= most:
            break
        await asyncio.sleep(0.05)
    return listed


AS_ANOTHER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from evalwright.sandboxes.jail import JailBackend
from evalwright.sandboxes.protocol import SandboxLimits, SandboxSettings

async def main():
    settings = SandboxSettings(limits=SandboxLimits(memory_mb=256, processes=32, disk_mb=16))
    refusal = JailBackend().refuses(settings)
    if refusal:
        print("refused:", refusal)
        return
    folder = Path(sys.argv[1])
    sandbox = await JailBackend().start(settings, folder)
    async def run(script, seconds=300.0):
        return await sandbox.exec(["bash", "-c", script], seconds=seconds)
    executed = await run("id -u; echo x > /work/x; kill -9 1; ls /proc/1; cat %(secret)s; touch /usr/bin/x; unshare -Ur true; echo end")
    assert executed.stdout == b"0\\nend\\n", executed
    bomb = await run(":(){ :|:& };:; sleep 60", 1.0)
    assert (await run("echo on")).stdout == b"on\\n"
    full = await run("head -c 20M /dev/zero > /tmp/x")
    assert b"No space" in full.stderr, full
    ate = await run("python3 -c 'x = bytearray(1 << 32)'")
    assert ate.exit_code == 1, ate
    late = await run("setsid sleep 99 & sleep 98", 0.3)
    assert late.ended_by == "seconds"
    await run("rm /tmp/x; chmod 000 /work/x")
    snapshot = await sandbox.snapshot()
    await sandbox.stop()
    sandbox = await JailBackend().start(settings, folder, snapshot)
    assert await sandbox.read("x", 10) == b"x\\n"
    await sandbox.stop()
    print("good")

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    "other",
    [
        ["--reuid=65534", "--regid=65534", "--clear-groups"],
        ["--bounding-set=-sys_admin", "--inh-caps=-sys_admin"],
    ],
    ids=["nobody", "root of a container"],
)
def test_it_is_the_same_for_users_with_fewer_rights(
    secret_file: Path, other: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, 65534, 65534)
        _run_as(other, Path(home), secret_file)


def _run_as(other: list[str], home: Path, secret_file: Path) -> None:
    source = Path(jail.__file__).parents[2]
    as_other = ["setpriv", *other]
    interpreters = ("/usr/bin/python3", sys.executable)
    for interpreter in interpreters:
        check = [
            interpreter,
            "-c",
            "import subprocess, sys; assert sys.version_info >= (3, 11); import evalwright.sandboxes.jail; subprocess.run([sys.executable, '-V'], check=True)",
        ]
        if (
            subprocess.run(
                [*as_other, *check],
                env={"PYTHONPATH": str(source)},
                capture_output=True,
                check=False,
            ).returncode
            == 0
        ):
            break
    else:
        pytest.skip("this user can run neither the system's Python nor this one")
    program = AS_ANOTHER % {"secret": secret_file}
    finished = subprocess.run(
        [*as_other, interpreter, "-c", program, str(home / "a" / "b")],
        env={"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if finished.stdout.startswith("refused:"):
        pytest.skip(finished.stdout)
    assert finished.stdout == "good\n", finished.stderr
