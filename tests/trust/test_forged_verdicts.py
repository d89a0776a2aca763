"""Programs that would rather decide their verdict than earn it, against tests of every shape
that data sets have.

Each forger is tried on each shape: tests that name their entry point and tests that do not, that
loop with built-in functions, compare with a tolerance, or use what they did not import. A right
program passes all of them, a wrong one none.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evalwright.compat.sea_helm.programs import run_test
from evalwright.core.errors import ScoringError
from evalwright.scorers.code.sandbox import Outcome, run, run_script
from evalwright.scorers.code.unit_tests import write_case_tests
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox

EVALPLUS = """
inputs = [[2], [3], [[1, 2]]][:2]
results = [4, 9]
def is_floats(x):
    return isinstance(x, float) or (isinstance(x, (list, tuple)) and all(isinstance(i, float) for i in x))
def assertion(out, exp, atol):
    exact_match = out == exp
    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert type(out) == type(exp) and abs(out - exp) <= atol
    else:
        assert exact_match
for i, (inp, exp) in enumerate(zip(inputs, results)):
    assertion(f(*inp), exp, 0)
"""
HUMANEVAL = """
METADATA = {'author': 'x', 'dataset': 'test'}
def check(candidate):
    assert candidate(2) == 4
    assert candidate(3) == 9
    for i in range(4, 8):
        assert candidate(i) == i * i, i
check(f)
"""
UNITTEST = """
import unittest
class TestCases(unittest.TestCase):
    def test_two(self):
        self.assertEqual(f(2), 4)
    def test_more(self):
        for i in range(3, 6):
            self.assertAlmostEqual(f(i), i ** 2)
            self.assertIsInstance(f(i), int)
unittest.main()
"""
SHAPES: dict[str, tuple[str, str]] = {
    "EvalPlus": (EVALPLUS, "f"),
    "EvalPlus without an entry point": (EVALPLUS, ""),
    "HumanEval": (HUMANEVAL, "f"),
    "HumanEval without an entry point": (HUMANEVAL, ""),
    "MBPP": ("assert f(2) == 4\nassert f(3) == 9\nassert set([f(4)]) == set([16])", ""),
    "MBPP with an entry point": ("assert f(2) == 4\nassert f(3) == 9", "f"),
    "a loop": ("for x, y in zip(map(f, [2, 3]), [4, 9]):\n    assert x == y", ""),
    "all": ("assert all(f(i) == i * i for i in range(2, 9))", ""),
    "any and not": ("assert not any(f(i) != i * i for i in range(2, 9))", ""),
    "a sum": ("assert sum(1 for i in range(2, 9) if f(i) == i * i) == 7", ""),
    "sorted lists": ("assert sorted(list(map(f, (3, 2)))) == [4, 9] and len([*filter(None, [f(2)])]) == 1", ""),
    "rounded": ("assert round(abs(f(2) - 4), 7) == 0 and max(f(2), f(3)) == 9 and min(f(2), f(3)) == 4", ""),
    "texts": ("assert str(f(2)) == '4' and repr(f(3)) == '9' and '%d' % f(4) == '16'", ""),
    "what was not imported": ("assert math.isclose(f(2), 4)\nassert Counter([f(3)]) == Counter([9])", ""),
    "a function that was not imported": ("assert isclose(f(2), 4.0) and isclose(f(3), 9.0)", ""),
    "unittest": (UNITTEST, "f"),
    "unittest that nothing runs": (UNITTEST.replace("unittest.main()\n", ""), "f"),
    "a list of cases": (write_case_tests([([2], 4), ([3], 9), ([float("inf")], float("inf"))], "f"), "f"),
}  # fmt: skip
RIGHT = "import math\nfrom math import isclose\nfrom collections import Counter\ndef f(x): return x * x"

REPLACED = (
    "range", "zip", "enumerate", "all", "any", "map", "filter", "len", "abs", "sum", "sorted", "list", "set", "tuple", "isinstance", "type", "str",
    "repr", "round", "min", "max", "print", "AssertionError", "float", "int", "bool",
)  # fmt: skip
STAND_IN = """
class Everything:
    def __init__(self, *values, **named): pass
    def __call__(self, *values, **named): return self
    def __getattr__(self, name): return self
    def __iter__(self): return iter(())
    def __eq__(self, other): return True
    def __bool__(self): return True
    __hash__ = object.__hash__
"""
EVERY_OPERATOR = f"""{STAND_IN}
for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split():
    setattr(Everything, f"__{{name}}__", lambda self, other: 0)
    setattr(Everything, f"__r{{name}}__", lambda self, other: 0)
for name in "lt le gt ge contains".split():
    setattr(Everything, f"__{{name}}__", lambda self, other: True)
for name in "abs neg pos invert round int float index".split():
    setattr(Everything, f"__{{name}}__", lambda self, *values: 0)
"""
LEAST_EFFORT = {
    "all": "lambda *a, **k: True",
    "any": "lambda *a, **k: False",
    "sum": "lambda *a, **k: 7",
    "len": "lambda *a, **k: 1",
    "abs": "lambda *a, **k: 0",
    "round": "lambda *a, **k: 0",
    "isinstance": "lambda *a, **k: True",
    "type": "lambda *a, **k: 0",
    "int": "float",
}
DELETED = "\nfor name in list(globals()):\n    if name != 'name' and not name.startswith('__'): del globals()[name]\n"
ASK_FOR_AN_OBJECT = """
import gc, json, os, struct, sys
def f(x):
    frame, nodes, peer = sys._getframe(), None, None
    while frame:
        nodes = frame.f_locals.get("before", nodes) if "before" in frame.f_locals else nodes
        peer = frame.f_locals.get("self", peer)
        frame = frame.f_back
    def write(message):
        body = json.dumps(message).encode()
        os.write(peer._sink, struct.pack("!cI", b"m", len(body)) + body)
    def ask(target, *values, named=(["dict"],)):
        write({"do": "call", "with": [0], "nodes": [["tuple", [1], [2], [3]], target, ["tuple", *values], *named]})
        reply = peer.message()
        return reply["nodes"][reply["value"][0]][1]
    made = ask(["type", "type"], "N", [4], [5],
               named=(["dict"], ["tuple"], ["dict", "__eq__", [6], "__call__", [6], "__hash__", None], ["type", "bool"]))
    equal_to_everything = ask(["yours", made])
    write({"value": [len(nodes)], "nodes": [*nodes, ["yours", equal_to_everything]]})
    while True: peer.message()
"""

FORGERS: dict[str, str] = {
    **{
        f"{name} and a wrong function": f"{name} = {LEAST_EFFORT.get(name, '(lambda *a, **k: [])')}\ndef f(x): return 0"
        for name in LEAST_EFFORT
    },
    **{
        f"{name} and no function": f"def {name}(*values, **named): return {LEAST_EFFORT.get(name, '(lambda *a, **k: [])')}()"
        for name in REPLACED
    },
    "every built-in function and no function": "".join(f"{name} = lambda *a, **k: []\n" for name in REPLACED if name != "list"),
    "all globals deleted, then enumerate": f"def f(x): return 0{DELETED}enumerate = lambda *a: []",
    "all globals deleted, then zip": f"def f(x): return 0{DELETED}zip = lambda *a: []",
    "all globals deleted, then range and all": f"{DELETED}range = lambda *a: []\nall = lambda *a: True",
    "a namespace that says it has only enumerate": "def f(x): return 0\nf_, keys = f, dict.keys\nglobals().clear()\nenumerate = lambda *a: []",
    "builtins of its own": "__builtins__ = {'range': lambda *a: [], 'zip': lambda *a: [], 'enumerate': lambda *a: []}",
    "the module of builtins": "import builtins\nfor name in ('range', 'zip', 'enumerate', 'all', 'map'):\n    setattr(builtins, name, lambda *a, **k: [])\ndef f(x): return 0",
    "a module of its own under a library's name": f"{STAND_IN}math = Everything()\ndef f(x): return 0",
    "a class under a library's name": "class math:\n    isclose = staticmethod(lambda *a, **k: True)\nclass Counter:\n    def __new__(cls, *a): return 0\ndef f(x): return 0",
    "a module that was changed": "import math, collections\nfrom collections import Counter\nmath.isclose = lambda *a, **k: True\nCounter.__eq__ = lambda a, b: True\ndef f(x): return 0",
    "a function under a library's name": "def isclose(*a, **k): return True\ndef Counter(*a): return 0\ndef f(x): return 0",
    "another function of Python's under that name": "from operator import is_not as isclose\nfrom builtins import bool as Counter\ndef f(x): return 0.5",
    "everything is a stand-in": STAND_IN + "f = Everything()\n" + "".join(f"{name} = f\n" for name in ("range", "zip", "enumerate", "map", "set", "math", "Counter", "isclose")),
    "an expected value of its own": "inf = nan = 0\ndatetime = None\ndef f(x): return 0",
    "its tests' helpers": "def assertion(*a): pass\ndef is_floats(x): return True\ndef check(candidate): pass\nresults = inputs = []\ndef f(x): return 0",
    "its tests' framework": f"{STAND_IN}import sys\nunittest = sys.modules['unittest'] = Everything()\ndef f(x): return 0",
    "an object that its tests' process makes": ASK_FOR_AN_OBJECT,
    "an object that equals everything": f"{STAND_IN}def f(x): return Everything()",
    "a metaclass that equals everything": "class M(type):\n    __eq__ = lambda a, b: True\n    __hash__ = type.__hash__\n    __instancecheck__ = lambda a, b: True\nclass N(int, metaclass=M): pass\ndef f(x): return N",
    "an object with every operator": f"{EVERY_OPERATOR}def f(x): return Everything()",
    "a class with every operator under the function's name": EVERY_OPERATOR.replace("Everything", "f"),
    "json, copy and time that were changed": "import json, copy, time, operator\njson.loads = json.dumps = copy.deepcopy = lambda *a, **k: {}\ntime.monotonic = time.time = lambda: 0\noperator.eq = lambda a, b: True\ndef f(x): return 0",
    "words of success": "print('passed'); print('OK')\nimport sys\nsys.stderr.write('OK\\n')\ndef f(x):\n    print('passed')\n    return 0",
    "an exit at the end": "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): raise SystemExit(0)",
    "an exit by a thread": "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.01), os._exit(0)), daemon=True).start()\ndef f(x): time.sleep(1)",
    "what stands in the frames of its tests": "import sys\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n        for name in ('results', 'exp', 'y', 'expected'):\n            if name in frame.f_locals or name in frame.f_globals: return x * x\n        frame = frame.f_back\n    return 0",
    "what its tests left in memory": "import gc, sys\ndef f(x):\n    for one in gc.get_objects():\n        if isinstance(one, dict) and 'results' in one: return x * x\n        if isinstance(one, list) and one == [4, 9]: return x * x\n    return x * x if 'unittest' in sys.modules else 0",
    "a profile of its tests": "import sys, threading\ndef profile(frame, event, argument):\n    if 'exp' in frame.f_locals: frame.f_locals['exp'] = 0\nsys.setprofile(profile); threading.setprofile(profile)\ndef f(x): return 0",
    "the class of its exceptions": "class AssertionError(BaseException): pass\nimport builtins\nbuiltins.AssertionError = AssertionError\ndef f(x): raise AssertionError",
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_right_program_passes_and_a_wrong_one_fails(shape: str) -> None:
    tests, entry_point = SHAPES[shape]
    assert run(RIGHT, tests, entry_point=entry_point, seconds=60.0) == Outcome("passed")
    wrong = RIGHT.replace("x * x", "x + x + 1")
    assert run(wrong, tests, entry_point=entry_point, seconds=60.0).label == "failed"


@pytest.mark.parametrize("forger", FORGERS)
def test_no_forger_passes_tests_of_any_shape(forger: str) -> None:
    for shape, (tests, entry_point) in SHAPES.items():
        outcome = run(FORGERS[forger], tests, entry_point=entry_point, seconds=5.0)
        assert outcome.label in ("failed", "ended early", "timed out"), (shape, outcome)


CALL: Mapping[str, str] = {"input": "3\n", "output": "9"}


@pytest.mark.parametrize(
    "tests",
    [
        "assert abs(Trunc(3.5) - 0.5) < 1e-6",
        "assert Trunc(3.5) - 0.5 < 1e-6",
        "y = Trunc(3.5) - 0.5\nz = Trunc(3.5)\nassert abs(y) < 1e-6",
        "assert Trunc(3.5) < 1",
        "assert Trunc(3.5) == 0.5",
        "assert not Trunc(3.5) != 0.5",
        "assert 0.5 == Trunc(3.5)",
        "assert Trunc(3.5) in [0.5]",
        "assert max(Trunc(3.5), 0.1) == 0.5",
        "assert round(Trunc(3.5), 1) == 0.5",
        "assert 0.4 <= Trunc(3.5) <= 0.6",
        "import math\nassert math.isclose(Trunc(3.5), 0.5)",
        "with Trunc(3.5):\n    assert False",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertAlmostEqual(Trunc(3.5), 0.5)\nunittest.main()",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertAlmostEqual(Trunc(3.5), 0.5)",
    ],
)
def test_no_class_decides_what_a_value_of_the_tests_is(tests: str) -> None:
    """Not even one that the tests name as such, with every operator that a class can have."""
    right = "def Trunc(x): return x % 1.0"
    enters = "    def __enter__(self): return self\n    def __exit__(self, *error): return True\n"
    forged = EVERY_OPERATOR.replace("    __hash__", f"{enters}    __hash__").replace(
        "Everything", "Trunc"
    )
    itself = forged.replace("self, other: 0", "self, other: self")
    one_object = (
        f"{itself}\none = Trunc()\nTrunc.__new__ = staticmethod(lambda *values: one)\n"
    )
    for program in (forged, itself, one_object):
        assert run(program, tests, entry_point="Trunc", seconds=60.0).label == "failed"
    if "with" not in tests:
        assert run(right, tests, entry_point="Trunc", seconds=60.0) == Outcome("passed")


PAIRS = "assert chain([Pair(5, 24), Pair(15, 25)], 3) == 2"


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("Pair = slice\ndef chain(a, n): return 0", PAIRS),
        ("Pair = object\ndef chain(a, n): return 0", PAIRS.replace("5, 24", "").replace("15, 25", "")),
        ("Node = property\ndef f(x): return 0", "assert f(Node(1)) == 1"),
        ("make = memoryview\ndef f(x): return 0", "assert f(make(b'ab')) == 1"),
        ("def make(x): return slice\ndef f(x): return 0", "assert f(make(1)(2)) == 1"),
        ("make = slice\ndef f(x): return 0", "class Own:\n    def __init__(self): self.a = make(1)\nassert f([Own().a]) == 1"),
        ("import datetime\ndef make(): return datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)\ndef f(x): return 0", "assert f(make().tzinfo) == 1"),
        ("def make(): return {}\ndef f(x): return 0", "assert f(make().items()) == 1"),
        ("def make(): raise ValueError('x')\ndef f(x): return 0", "try:\n    make()\nexcept ValueError as error:\n    assert f(error) == 1"),
        ("Bad = ValueError\ndef f(x): return 0", "assert f(Bad('x')) == 1"),
        ("Base = object\ndef f(x): return 0", "class Own(Base): pass\nassert f(Own()) == 1"),
    ],
)  # fmt: skip
def test_what_comes_out_of_a_program_never_makes_its_tests_untestable(
    program: str, tests: str
) -> None:
    assert run(program, tests, seconds=60.0).label == "failed"


@pytest.mark.parametrize(
    "alias",
    [
        "AssertionError",
        "Exception",
        "BaseException",
        "RuntimeError",
        "(lambda: AssertionError)()",
    ],
)
@pytest.mark.parametrize(
    "raised",
    [
        "assert False, 'it should have raised'",
        "raise RuntimeError('it should have raised')",
    ],
)
def test_a_name_of_the_program_catches_no_exception_of_its_tests(
    alias: str, raised: str
) -> None:
    tests = f"a = Account()\ntry:\n    a.withdraw(100)\n    {raised}\nexcept Missing:\n    pass"
    program = f"Missing = {alias}\nclass Account:\n    Missing = Missing\n    def withdraw(s, x): pass"
    assert run(program, tests, entry_point="Account", seconds=60.0).label == "failed"
    attribute = tests.replace("except Missing", "except Account.Missing")
    assert (
        run(program, attribute, entry_point="Account", seconds=60.0).label == "failed"
    )
    right = program.replace("x): pass", "x): raise Missing('no')")
    if alias != "BaseException":
        assert run(right, tests, entry_point="Account", seconds=60.0) == Outcome(
            "passed"
        )


def test_a_program_replaces_no_class_of_what_came_before() -> None:
    before = "class Oracle:\n    def __init__(self, n): self.n = n\n    def ok(self, guess): return guess * guess == self.n\n\ndef root(n):\n    '''Return the root'''\n"
    tests = "def check(candidate):\n    assert Oracle(16).ok(candidate(16))\n    assert Oracle(25).ok(candidate(25))\ncheck(root)"
    forged = "class Oracle:\n    def __init__(s, n): pass\n    def ok(s, g): return True\ndef root(n): return 0"
    with_a_gap = before.replace("    def ok", "    def start(self): pass\n    def ok")
    for text in (before, with_a_gap):
        assert (
            run(forged, tests, before=text, entry_point="root", seconds=60.0).label
            == "failed"
        )
    assert run(
        "def root(n): return int(n ** .5)", tests, before=before, entry_point="root"
    ) == Outcome("passed")


CASES_THAT_NOTHING_RUNS = UNITTEST.replace("unittest.main()\n", "")


def test_cases_of_unittest_that_nothing_runs_are_run() -> None:
    assert run(
        RIGHT, CASES_THAT_NOTHING_RUNS, entry_point="f", seconds=60.0
    ) == Outcome("passed")
    outcome = run(
        "def f(x): return 0", CASES_THAT_NOTHING_RUNS, entry_point="f", seconds=60.0
    )
    assert outcome.label == "failed" and "AssertionError: 0 != " in outcome.why, outcome


@pytest.mark.parametrize("forger", FORGERS)
def test_no_forger_passes_a_test_of_livecodebench(forger: str) -> None:
    assert run_test(f"```python\n{RIGHT}\n```", "f", CALL, 60.0) == Outcome("passed")
    answer = f"```python\n{FORGERS[forger]}\n```"
    assert run_test(answer, "f", CALL, 5.0)[0] in (
        "failed",
        "ended early",
        "timed out",
    )
    assert run_test(answer, "", CALL, 5.0)[0] in (
        "failed",
        "ended early",
        "timed out",
    )


def test_a_result_without_end_is_no_name_of_the_program() -> None:
    endless = {"input": "1", "output": "1e999"}
    program = "inf = nan = 0\ndef f(x): return 0"
    assert run_test(f"```python\n{program}\n```", "f", endless, 60.0)[0] == "failed"
    tests = write_case_tests([([1], float("inf"))], "f")
    assert run(program, tests, entry_point="f", seconds=60.0).label == "failed"
    assert (
        run("def f(x): return float('inf')", tests, entry_point="f", seconds=60.0).label
        == "passed"
    )


HONEST = {
    "a built-in name": ("def sum(a, b): return a * b", "assert sum(10, 15) == 150\nassert sum(1, 2) == 2"),
    "a library's name": ("def gcd(a, b): return a - b", "assert gcd(10, 4) == 6"),
    "a library's name beside others": (
        "def gcd(a, b): return a - b\ndef half(a): return a / 2",
        "assert gcd(10, 4) == 6\nassert half(2) == 1",
    ),
    "a helper that is rebound": ("def f(x): return x + 1", "f = (lambda g: g)(f)\nassert f(1) == 2"),
    "a name in a scope of the tests": ("def f(x): return x + 1", "def check(f):\n    assert f(1) == 2\ncheck(f)"),
    "a class and a function": (
        "class Node:\n    def __init__(self, x): self.x = x\ndef f(node): return node.x",
        "assert f(Node(3)) == 3",
    ),
    "a constant": ("LIMIT = 3", "assert LIMIT == 3"),
    "what it imported": (
        "import math\nfrom collections import Counter\nfrom datetime import datetime\nfrom typing import *\ndef f(x): return x",
        "x: List[int] = [1]\nassert f(math.pi) == math.pi and Counter(f(x)) == Counter({1: 1})\n"
        "assert f(datetime(2020, 1, 2)) == datetime.strptime('2020-01-02', '%Y-%m-%d')",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", HONEST)
def test_what_a_program_may_define(what: str) -> None:
    program, tests = HONEST[what]
    assert run(program, tests, seconds=60.0) == Outcome("passed")


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        ("assert set(sorted([1])) == set([1])", "they call set, sorted, all of which Python has itself"),
        ("import numpy as np\nassert np.allclose(f(2), 4)", "they import 'numpy', which is not in the sandbox"),
        ("from solution import f\nassert f(2) == 4", "they import 'solution'"),
        ("return f(2)", "'return' outside function"),
    ],
)  # fmt: skip
def test_tests_that_tell_nothing_are_no_failure_of_the_program(
    tests: str, why: str
) -> None:
    with pytest.raises(ScoringError, match=why):
        run("def f(x): return x * x", tests)


def test_an_import_for_a_trial_is_no_need() -> None:
    tests = "try:\n    import numpy\nexcept ImportError:\n    numpy = None\nassert f(2) == 4"
    assert run("def f(x): return x * x", tests, seconds=60.0) == Outcome("passed")


def test_a_script_is_judged_by_what_it_wrote_alone() -> None:
    for program in (
        "import builtins, sys\nbuiltins.str = lambda *a: '9'\nprint('passed')",
        "import atexit, os\natexit.register(os._exit, 0)",
        "import os\nos.write(2, b'9'); os._exit(0)",
    ):
        assert run_script(program, "3\n").text.strip() != "9"
