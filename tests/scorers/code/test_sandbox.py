"""What programs compute in the sandbox, and that what they return is for their tests what it would be without one. Attacks: tests/trust/test_sandbox.py."""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path

import pytest

from evalwright.core.errors import ScoringError
from evalwright.scorers.code import jailed
from evalwright.scorers.code.sandbox import Outcome, run, run_script
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox

LIBRARY = "import math, re, json, collections, hashlib, itertools, functools, typing, heapq, string, random, datetime, decimal, bisect, copy"


@pytest.mark.parametrize(
    "program",
    [
        "x = 1",
        LIBRARY,
        "import unittest, statistics, fractions, ast, zlib, operator, dataclasses, enum, abc, queue, array, struct, textwrap, cmath",
        "import ctypes, sqlite3, asyncio, multiprocessing, zoneinfo, xml.etree.ElementTree",
        "print('x' * 10_000_000)",
        "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
        "x = [0] * 1_000_000",
        "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\nf(3000)",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: 'int' = 1\nassert P() == P()",
    ],
)
def test_it_can_compute(program: str) -> None:
    assert run(program, seconds=60.0) == Outcome("passed")


FAITHFUL = {
    "types": (
        "def f(x): return x",
        "import math\nfrom collections import Counter, OrderedDict, defaultdict, deque\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
        "import datetime as d\n"
        "for value in (None, True, 1, -1, 10**50, -(2**63), 10**5000, 1.5, -0.0, 1e300, '', 'x\\ud800\\0', b'\\xff', 1j, [], [1, [2.0]], (), (1, (2,)), "
        "{1, 2}, frozenset({1}), {}, {1: {'a': (1,)}, (1, 2): 3}, range(3), bytearray(b'x'), Counter('aab'), OrderedDict(a=1), deque([1]), "
        "Decimal('1.10'), Fraction(1, 3), d.date(2020, 1, 2), d.datetime(2020, 1, 2, 3, 4, 5, 6), d.timedelta(1, 2, 3), int, defaultdict(list, a=[1])):\n"
        "    assert f(value) == value and type(f(value)) is type(value), value\n"
        "assert math.isnan(f(math.nan)) and f(math.inf) == math.inf and repr(f(-0.0)) == '-0.0' and repr(f([True, 1, 1.0])) == '[True, 1, 1.0]'",
    ),
    "subclasses are what they are made of": (
        "import enum, collections\nclass E(enum.IntEnum):\n    A = 1\nP = collections.namedtuple('P', 'x y')\nclass L(list): pass\n"
        "def f(): return [E.A, P(1, 2), L([1])]",
        "assert f() == [1, (1, 2), [1]]",
    ),
    "arguments are changed in place": (
        "def f(a, d, s):\n    a.sort()\n    a[0] = True\n    d['x'].append(1)\n    s.add(3)\n    del d['y']",
        "a, d, s = [3, 1], {'x': [], 'y': 1}, {1}\nx = d['x']\nassert f(a, d, s) is None\n"
        "assert repr(a) == '[True, 3]' and d == {'x': [1]} and x == [1] and s == {1, 3}",
    ),
    "also where it raises": (
        "def f(a):\n    a.append(1)\n    raise KeyError('k')",
        "a = []\ntry:\n    f(a)\nexcept KeyError as error:\n    assert error.args == ('k',)\nelse:\n    assert False\nassert a == [1]",
    ),
    "one object twice is one object": (
        "def f(a):\n    a[0].append(1)\n    return [a[0], a[0], a]",
        "x = []\ny = f([x, x])\nassert x == [1] and y[0] is x and y[1] is x and y[2][0] is x",
    ),
    "a list in itself": ("def f(a): return a", "a = [1]\na.append(a)\nassert f(a) is a and a[1] is a"),
    "keywords and defaults": ("def f(a, *b, c=3, **d): return a, b, c, d", "assert f(1, 2, c=4, e=5) == (1, (2,), 4, {'e': 5})"),
    "exceptions": (
        "class Mine(ValueError): pass\ndef f(x):\n    if x == 1: raise Mine('no')\n    if x == 2: raise UnicodeDecodeError('a', b'b', 0, 1, 'c')\n    return 1 / 0",
        "for x, kind in ((1, ValueError), (2, ValueError), (3, ZeroDivisionError)):\n    try:\n        f(x)\n    except kind:\n        continue\n    assert False, x",
    ),
    "unittest": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(1), 1)\n        with self.assertRaises(ValueError): f(-1)\n"
        "unittest.main()",
    ),
    "generators": (
        "def f(n):\n    yield from range(n)\ndef g():\n    x = 0\n    while True:\n        yield x\n        x += 1",
        "import itertools\nassert list(f(3)) == [0, 1, 2] and sum(f(4)) == 6 and list(itertools.islice(g(), 2)) == [0, 1]\n"
        "it = f(2)\nassert next(it) == 0 and next(it) == 1 and next(it, None) is None",
    ),
    "map and filter": ("def f(a): return map(str, a)", "assert list(f([1, 2])) == ['1', '2']"),
    "functions that are returned": ("def f(x): return lambda y: x + y", "assert f(1)(2) == 3"),
    "functions that are given": ("def f(g, a): return [g(x) for x in a]", "seen = []\nassert f(lambda x: seen.append(x) or x * 2, [1, 2]) == [2, 4] and seen == [1, 2]"),
    "an exception of a function that is given": ("def f(g):\n    try: g()\n    except ZeroDivisionError: return 'caught'", "assert f(lambda: 1 / 0) == 'caught'"),
    "iterators that are given": ("def f(a): return sum(a)", "assert f(x for x in (1, 2)) == 3 and f(iter([1])) == 1"),
    "types that are given": ("def f(t, x): return t(x)", "assert f(int, '3') == 3 and f(list, 'ab') == ['a', 'b']"),
    "classes of the program": (
        "class Pair:\n    def __init__(self, a, b): self.a, self.b = a, b\n    def total(self): return self.a + self.b\ndef f(pairs): return sum(p.a for p in pairs), pairs[0]",
        "p = Pair(1, 2)\np.b = 5\nassert p.total() == 6 and p.a == 1\nn, q = f([p, Pair(3, 4)])\nassert n == 4 and q is p and q == p and q != None",
    ),
    "what is true": ("import re\ndef f(x): return re.search('a', x)", "assert f('cat')\nassert not f('dog')"),
    "a name of Python's own": ("def sum(a, b): return a * b", "assert sum(10, 15) == 150"),
    "helpers of the program": ("import math\nlimit = 3\ndef f(x): return x * limit", "assert f(2) == math.floor(limit * 2.5) - 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", FAITHFUL)
def test_values_are_for_the_tests_what_they_are_for_the_program(what: str) -> None:
    program, tests = FAITHFUL[what]
    assert run(program, tests, seconds=60.0) == Outcome("passed")


def test_what_came_before_is_the_tests_own() -> None:
    before = "def twice(x):\n    return 2 * x\n\ndef f(x):\n    ''' twice and one '''\n"
    tests = "def check(candidate):\n    assert candidate(3) == twice(3) + 1\ncheck(f)"
    right = "def f(x): return 2 * x + 1"
    assert run(right, tests, before=before, entry_point="f") == Outcome("passed")
    forged = "def twice(x): return -1\ndef check(f): pass\ndef f(x): return 0"
    assert run(forged, tests, before=before, entry_point="f").label == "failed"


def test_before_may_have_a_class_that_the_program_makes() -> None:
    before = "class Node:\n    def __init__(self, v, next=None): self.v, self.next = v, next\ndef make(*values):\n    head = None\n    for v in reversed(values): head = Node(v, head)\n    return head\n"
    program = f"{before}\ndef f(head):\n    return 0 if head is None else head.v + f(head.next)\n"
    assert run(program, "assert f(make(1, 2, 3)) == 6 and make(4).v == 4", before=before) == Outcome("passed")


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("class Own: pass\nf(Own())", "of the type 'Own', which cannot be sent"),
        ("assert f(1 ==", "its tests are not Python"),
    ],
)
def test_tests_that_cannot_be_run_are_no_failure_of_the_program(tests: str, why: str) -> None:
    with pytest.raises(ScoringError, match=why):
        run("def f(x): return x", tests)


@pytest.mark.parametrize("body", [b"[" * 100_000, b'"passed"', b"\xff", b'{"label": ["passed"]}'])
def test_a_verdict_that_is_none_is_no_pass(body: bytes) -> None:
    tests = f"import os, struct\nfor fd in range(3, 9):\n    try: os.write(fd, struct.pack('!cI', b'v', {len(body)}) + {body!r})\n    except OSError: pass"
    assert run("", tests).label == "ended early"


@pytest.mark.parametrize(
    ("program", "tests", "why"),
    [
        ("def f(x): return object()", "assert f(1) == 1", "an object of the type 'object' stays in the program's process"),
        ("def f(:", "f(1)", "SyntaxError"),
        ("def g(x): return x", "f(1)", "NameError: name 'f' is not defined"),
        ("x = '\ud800'.encode()", "", "UnicodeError: 'utf-8' codec"),
        ("import ctypes\nctypes.string_at(0)", "", "ended"),
        ("def f(x): raise KeyboardInterrupt", "f(1)", "KeyboardInterrupt"),
        ("def f(x): return 'x' * 20_000_000", "f(1)", "16 MiB"),
    ],
)  # fmt: skip
def test_a_failure_says_why(program: str, tests: str, why: str) -> None:
    outcome = run(program, tests, seconds=60.0)
    assert outcome.label in ("failed", "ended early") and why in outcome.why, outcome


def test_a_program_that_reads_and_writes() -> None:
    program = "import sys, atexit\natexit.register(print, 'end')\nname = input()\nprint(name, sum(map(int, sys.stdin)))"
    assert run_script(program, "é\n1\n2\n") == ("é 3\nend\n", Outcome("passed"))
    assert run_script("import os\nos.write(1, b'x')\nos._exit(0)", "") == ("x", Outcome("passed"))
    assert run_script("print('x')\nexit()", "y" * 200_000) == ("x\n", Outcome("passed"))
    assert run_script("print(len(input()))", "y" * 200_000 + "\n").text == "200000\n"


def test_no_key_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert run("import os\nassert 'OPENAI_API_KEY' not in os.environ, os.environ") == Outcome("passed")


def test_nothing_is_left_running() -> None:
    assert run("import time\ntime.sleep(60)", seconds=0.2).label == "timed out"
    starter = jailed.the_jail()._process.pid
    for child in Path(f"/proc/{starter}/task/{starter}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            ended = select.poll()
            ended.register(os.pidfd_open(int(child)), select.POLLIN)
            assert ended.poll(60_000), "a keeper lives on after its program"
