"""What programs compute in the sandbox, and that what they return is for their tests what it
would be without one. Attacks: tests/trust/test_sandbox.py.
"""

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
    "operators of classes that tests name": (
        "from dataclasses import dataclass\n@dataclass(order=True)\nclass Money:\n    n: int\n    def __add__(s, o): return Money(s.n + o.n)\n"
        "    def __mul__(s, k): return Money(s.n * k)\n    __rmul__ = __mul__\n    def __abs__(s): return abs(s.n)\n    def __str__(s): return f'${s.n}'\n    def __contains__(s, x): return x == s.n",
        "a, b = Money(1), Money(2)\nassert a + b == Money(3) and a != b and 2 * a == b and a * 2 == b and not a == b and abs(b) == 2\n"
        "assert a < b and b >= a and max(a, b) is b and [m.n for m in sorted([b, a])] == [1, 2]\n"
        "assert str(a + b) == '$3' and f'{a}' == '$1' and repr(b) == 'Money(n=2)' and 1 in a and 2 not in a",
    ),
    "items, with and isinstance": (
        "class Table(dict): pass\nclass Box:\n    def __init__(s): s.d = {}\n    def __setitem__(s, k, v): s.d[k] = v\n    def __getitem__(s, k): return s.d[k]\n"
        "    def __delitem__(s, k): del s.d[k]\n    def __enter__(s): return s\n    def __exit__(s, *e): s.d['left'] = True\nclass Large(Box): pass\ndef make(): return Large()",
        "with make() as box:\n    box['a'] = 1\n    box['b'] = 2\n    del box['b']\nassert box['a'] == 1 and box['left']\n"
        "try:\n    box['b']\n    assert False\nexcept KeyError as error:\n    assert error.args == ('b',)\n"
        "assert isinstance(box, Box) and isinstance(box, Large) and not isinstance(3, Box) and issubclass(Large, Box)",
    ),
    "objects that are the same or not": (
        "import enum\nclass N:\n    def __init__(s, v): s.v, s.next = v, None\nclass Color(enum.Enum):\n    RED = 1\n    BLUE = 2\n"
        "def build():\n    n = N(1)\n    n.next = N(2)\n    return n\ndef first(): return Color.RED",
        "n = build()\nassert n.next != n and n != None and n == n and not n == n.next\nassert first() == Color.RED and first() != Color.BLUE",
    ),
    "exceptions of the program": (
        "class Bank(Exception): pass\nclass TooLittle(Bank, ValueError):\n    def __init__(s, code):\n        super().__init__('bad', code)\n        s.code = code\n    def __str__(s): return 'too little'\n"
        "Other = AssertionError\nclass Account:\n    def take(s, x):\n        if x == 2: raise Other('no')\n        raise TooLittle(x)\n"
        "def retry(f):\n    try: return f()\n    except TooLittle as e: return e.code\ndef code(e): return e.code",
        "a = Account()\nfor kind in (TooLittle, Bank, ValueError, Exception):\n    try:\n        a.take(7)\n        assert False\n    except kind as error:\n"
        "        assert error.args == ('bad', 7) and error.code == 7 and str(error) == 'too little' and type(error).__name__ == 'TooLittle' and code(error) == 7\n"
        "try:\n    a.take(2)\n    raise RuntimeError\nexcept Other as error:\n    assert str(error) == 'no'\n"
        "def fail(): raise TooLittle(3)\nassert retry(fail) == 3 and TooLittle(4).code == 4 and isinstance(TooLittle(4), ValueError)",
    ),
    "decorators": (
        "import functools\ndef memo(f):\n    seen = {}\n    @functools.wraps(f)\n    def g(*a):\n        if a not in seen: seen[a] = f(*a)\n        return seen[a]\n    return g",
        "calls = []\n@memo\ndef square(x):\n    'of a number'\n    calls.append(x)\n    return x * x\nassert square(3) == 9 == square(3) and calls == [3]\n"
        "assert square.__name__ == 'square' and square.__doc__ == 'of a number' and square.__qualname__ == 'square'",
    ),
    "named tuples, views and arrays": (
        "from array import array\nfrom collections import namedtuple\nP = namedtuple('P', 'x y')\nQ = namedtuple('Q', 'count index')\ndef mid(): return P(1, 2)\ndef odd(): return Q(1, 2)\n"
        "def keys(d): return d.keys()\ndef items(d): return d.items()\ndef numbers(): return array('i', [1, 2])\ndef more(a): a.append(3)",
        "from array import array\nm = mid()\nassert m == (1, 2) and (m.x, m.y) == (1, 2) and m._fields == ('x', 'y') and odd() == (1, 2) and odd().count(1) == 1\n"
        "assert keys({'a': 1}) == {'a'} and list(keys({'b': 1, 'a': 2})) == ['b', 'a'] and items({'a': 1}) == {('a', 1)}\n"
        "a = numbers()\nassert a == array('i', [1, 2])\nmore(a)\nassert list(a) == [1, 2, 3]",
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
    assert run(
        program, "assert f(make(1, 2, 3)) == 6 and make(4).v == 4", before=before
    ) == Outcome("passed")


NODES = """
class Node:
    def __init__(self, v, next=None): self.v, self.next = v, next
    def total(self): return self.v + (self.next.total() if self.next else 0)

def reverse(head):
    ''' the other way round '''
"""


def test_objects_of_what_came_before_cross_by_their_attributes() -> None:
    right = f"{NODES}    last = None\n    while head: head.next, last, head = last, head, head.next\n    return last\n"
    tests = "head = Node(1, Node(2))\nlast = reverse(head)\nassert (last.v, last.next.v, last.next.next) == (2, 1, None) and last.next is head and last.total() == 3"
    assert run(right, tests, before=NODES, entry_point="reverse") == Outcome("passed")
    forged = f"{NODES}    head.total = lambda: 3\n    return head\n"
    assert (
        run(
            forged,
            "assert reverse(Node(1)).total() == 3",
            before=NODES,
            entry_point="reverse",
        ).label
        == "failed"
    )
    colours = "import enum\nclass Colour(enum.Enum):\n    RED = 1\n    BLUE = 2\n\ndef turn(c):\n    ''' to the other '''\n"
    turned = f"{colours}    return Colour.BLUE if c is Colour.RED else Colour.RED\n"
    assert run(
        turned,
        "assert turn(Colour.RED) is Colour.BLUE",
        before=colours,
        entry_point="turn",
    ) == Outcome("passed")


def test_a_class_with_methods_to_write_is_the_programs() -> None:
    before = "class Stack:\n    def __init__(self): self.a = []\n    def push(self, x):\n        ''' on top '''\n"
    program = f"{before}        self.a.append(x)\n"
    assert run(
        program,
        "s = Stack()\ns.push(3)\nassert s.a == [3]",
        before=before,
        entry_point="Stack",
    ) == Outcome("passed")


def test_no_explanation_has_folders_of_this_machine() -> None:
    loop = "import asyncio\nasync def main(): pass\nasyncio.run(main())"
    written = "import sys\nsys.stderr.write('  File \"/usr/lib/python3/x/y.py\", line 3')\nsys.exit(1)"
    for program in (loop, written):
        outcome = run_script(program, "").outcome
        assert outcome.label == "failed" and "/" not in outcome.why, outcome


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("import asyncio\nassert asyncio.run(f(1)) == 1", "they run an event loop of asyncio"),
        ("from asyncio import run as go\nassert go(f(1)) == 1", "they run an event loop of asyncio"),
        ("import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    f(1)\nassert out.getvalue() == '1'", "they capture what the program prints"),
        ("import io, sys\nsys.stdout = io.StringIO()\nf(1)\nassert sys.stdout.getvalue() == '1'", "they capture what the program prints"),
        ("from unittest.mock import patch\nwith patch('builtins.input', return_value='7'):\n    assert f(1) == '7'", "they replace what the program reads"),
        ("from unittest import mock\nwith mock.patch('builtins.print') as p:\n    f(1)\n    p.assert_called_once()", "they replace what the program prints with"),
        ("import tempfile\nassert f(tempfile.mkdtemp())", "they write files"),
        ("with open('a.txt', 'w') as t:\n    t.write('x')\nassert f('a.txt')", "they write files"),
        ("import unittest\nclass T(unittest.TestCase):\n    def help(self): self.assertEqual(f(1), 2)", "no test in them"),
        ("class Own: pass\ntry:\n    f(Own())\nexcept BaseException:\n    assert False", "of the type 'Own', which cannot be sent"),
        ("class Own: pass\nf(Own())", "of the type 'Own', which cannot be sent"),
        ("assert f(1 ==", "its tests are not Python"),
    ],
)  # fmt: skip
def test_tests_that_cannot_be_run_are_no_failure_of_the_program(
    tests: str, why: str
) -> None:
    with pytest.raises(ScoringError, match=why):
        run("def f(x): return x", tests)


def test_output_that_nothing_reads_may_be_captured() -> None:
    tests = "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()):\n    assert f(1) == 1"
    assert run("def f(x): return x", tests) == Outcome("passed")


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'"passed"', b"\xff", b'{"label": ["passed"]}']
)
def test_a_verdict_that_is_none_is_no_pass(body: bytes) -> None:
    tests = f"import os, struct\nfor fd in range(3, 9):\n    try: os.write(fd, struct.pack('!cI', b'v', {len(body)}) + {body!r})\n    except OSError: pass"
    assert run("", tests).label == "ended early"


@pytest.mark.parametrize(
    ("program", "tests", "why"),
    [
        ("def f(x): return object()", "assert f(1) == 1", "an object of the type 'object' stays in the program's process"),
        ("def f(:", "f(1)", "SyntaxError"),
        ("def g(x): return x", "f(1)", "NameError: name 'f' is not defined"),
        ("x = '\ud800'.encode()", "", "UnicodeEncodeError: 'utf-8' codec"),
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
    assert run_script("import os\nos.write(1, b'x')\nos._exit(0)", "") == (
        "x",
        Outcome("passed"),
    )
    assert run_script("print('x')\nexit()", "y" * 200_000) == ("x\n", Outcome("passed"))
    assert run_script("print(len(input()))", "y" * 200_000 + "\n").text == "200000\n"


def test_no_key_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert run(
        "import os\nassert 'OPENAI_API_KEY' not in os.environ, os.environ"
    ) == Outcome("passed")


def test_nothing_is_left_running() -> None:
    assert run("import time\ntime.sleep(60)", seconds=0.2).label == "timed out"
    starter = jailed.get_jail()._process.pid
    for child in Path(f"/proc/{starter}/task/{starter}/children").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            ended = select.poll()
            ended.register(os.pidfd_open(int(child)), select.POLLIN)
            assert ended.poll(60_000), "a keeper lives on after its program"
