"""What runs in a process that is shut in: a program, the tests that call it from another such process, or a script.

Imports nothing of ours, so that a container can be given it as text. A process writes one byte when it is ready, reads its job, and goes on with
frames: a letter ("m" for a message to the other process, "v" for the tests' verdict), a length and JSON. Tests and program share no memory: a value
crosses as a table of plain ones, which is rebuilt with its types, its sharing and its changes in place. What is not plain (a generator, a
function, an object of the program's own class) stays where it is, and the other side has a `Remote` of it, which compares equal to nothing.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import collections
import contextlib
import datetime
import decimal
import fractions
import importlib
import importlib.util
import json
import operator
import os
import struct
import symtable
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

MOST = 16 << 20
"""Bytes in a frame."""
COMMON_MODULES = (
    "math",
    "collections",
    "itertools",
    "functools",
    "copy",
    "decimal",
    "fractions",
    "datetime",
    "statistics",
    "typing",
)
"""What these export, tests may use without importing it, because programs commonly do; they get Python's own."""
LIBRARY_NAMES = frozenset(
    (
        "np",
        "numpy",
        "pd",
        "pandas",
        "plt",
        "matplotlib",
        "scipy",
        "sklearn",
        "sympy",
        "nx",
        "networkx",
        "torch",
        "tf",
        "pytest",
    )
)
"""Libraries by the names that tests use for them: never what a program has under that name."""
_HEADER = struct.Struct("!cI")
_INLINE = 1 << 63
_PLAIN = (bool, str, float, type(None))
_UNSET = object()

Items = list[Any]


def _exported_names() -> dict[str, str]:
    """The names that the common modules export, with the first module that has each."""
    modules: dict[str, str] = {}
    for module in COMMON_MODULES:
        loaded = importlib.import_module(module)
        names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if name[0] != "_"]
        for name in names:
            modules.setdefault(name, module)
    return modules


EXPORTED = _exported_names()


class Ended(BaseException):
    """The other process is gone, left by an exit, or sent what is no message. Tests cannot catch it, and end with it."""


class Untransportable(BaseException):
    """Tests want to hand the program what only their own process has."""


_FILL: dict[str, tuple[type, Callable[[Any, Items], object]]] = {
    "list": (list, lambda one, items: operator.setitem(one, slice(None), items)),
    "bytearray": (bytearray, lambda one, items: operator.setitem(one, slice(None), bytes(items))),
    "set": (set, lambda one, items: (one.clear(), one.update(items))),
    "deque": (collections.deque, lambda one, items: (one.clear(), one.extend(items))),
    **{
        kind.__name__: (
            kind,
            lambda one, x: (one.clear(), one.update(dict(zip(x[::2], x[1::2], strict=True)))),
        )
        for kind in (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
    },
}
"""Containers that can change: made empty, then filled, since they may hold themselves."""


_MAKE: dict[str, tuple[type, Callable[..., object], Callable[[Any], Iterable[Any]]]] = {
    "int": (int, lambda digits: int(digits, 16), lambda one: (hex(int.__index__(one)),)),
    "float": (float, float, lambda one: (float.__float__(one),)),
    "str": (str, str, lambda one: (str.__str__(one),)),
    "tuple": (tuple, lambda *items: items, tuple.__iter__),
    "frozenset": (frozenset, lambda *items: frozenset(items), frozenset.__iter__),
    "bytes": (bytes, bytes.fromhex, lambda one: (bytes.hex(one),)),
    "complex": (complex, complex, lambda one: (one.real, one.imag)),
    "range": (range, range, lambda one: (one.start, one.stop, one.step)),
    "Fraction": (fractions.Fraction, fractions.Fraction, lambda one: (one.numerator, one.denominator)),
    "Decimal": (decimal.Decimal, decimal.Decimal, lambda one: (str(one),)),
    "datetime": (datetime.datetime, datetime.datetime.fromisoformat, lambda one: (one.isoformat(),)),
    "date": (datetime.date, datetime.date.fromisoformat, lambda one: (one.isoformat(),)),
    "time": (datetime.time, datetime.time.fromisoformat, lambda one: (one.isoformat(),)),
    "timedelta": (datetime.timedelta, datetime.timedelta, lambda d: (d.days, d.seconds, d.microseconds)),
}
"""Values that cannot change: type, how one is made of its parts, its parts."""

_TAGS = {kind: tag for tag, (kind, *_) in (*_MAKE.items(), *_FILL.items())}


class Remote:
    """An object that the other process has. It can be used, by messages; it is equal to itself and None only."""

    __slots__ = ("_kind", "_number", "_peer")

    def __init__(self, peer: Peer, number: int, kind: str) -> None:
        for name, value in (("_peer", peer), ("_number", number), ("_kind", kind)):
            object.__setattr__(self, name, value)

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self._peer.request("call", self, values, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__name__":
            raise AttributeError(name)
        return self._peer.request("get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._peer.request("set", self, name, value)

    def __iter__(self) -> Any:
        return self._peer.request("iter", self)

    def __next__(self) -> Any:
        return self._peer.request("next", self)

    def __bool__(self) -> bool:
        return self._peer.request("truth", self) is True

    def __len__(self) -> int:
        return operator.index(self._peer.request("length", self))

    def __getitem__(self, key: Any) -> Any:
        return self._peer.request("item", self, key)

    def __eq__(self, other: object) -> bool:
        if other is None or other is self:
            return other is self
        raise TypeError(
            f"an object of the type '{self._kind}' stays in the program's process and cannot be compared"
        )

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<an object of the type '{self._kind}' in the other process>"


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda one, values, named: one(*values, **named),
    "get": getattr,
    "set": setattr,
    "iter": iter,
    "next": next,
    "truth": bool,
    "length": len,
    "item": operator.getitem,
}
GIVEN = ("call", "iter", "next")  # What a program may do with what tests handed to it.


class Table:
    """Objects as a message's nodes: `[kind, part, ...]`, where a part is a plain value or `[place of a node]`."""

    def __init__(self, peer: Peer, objects: Items) -> None:
        self.peer = peer
        self.objects = objects
        self.places = {id(one): place for place, one in enumerate(objects)}
        self.nodes: Items = [0] * len(objects)
        self._waiting: list[int] = []

    def part(self, one: Any) -> Any:
        """`one` as a part of a node; `finish` writes its own."""
        kind = type(one)
        if kind in _PLAIN or (kind is int and -_INLINE < one < _INLINE):
            return one
        place = self.places.setdefault(id(one), len(self.objects))
        if place == len(self.objects):
            self.objects.append(one)
            self.nodes.append(0)
            self._waiting.append(place)
        return [place]

    def node(self, one: Any) -> Items:
        """What `one` is made of, by its plain type, whatever its class would rather have it look like."""
        if isinstance(one, Remote):
            return ["yours", one._number]
        kind: Any = type(one)
        if kind is type and vars(builtins).get(name := str(one.__name__)) is one:
            return ["type", name]
        base: Any
        for base in kind.__mro__:
            tag = _TAGS.get(base)
            if tag in _MAKE:
                return [tag, *map(self.part, _MAKE[tag][2](one))]
            if issubclass(base, dict) and tag is not None:
                return [tag, *(self.part(each) for pair in dict.items(one) for each in pair)]
            if tag is not None:
                return [tag, *map(self.part, base.__iter__(one))]
        return ["mine", self.peer.export(one), kind.__name__]

    def changed(self, before: Items) -> None:
        """Write the containers that have changed since they came as `before`."""
        for place, old in enumerate(before):
            if old[0] in _FILL and repr(new := self.node(self.objects[place])) != repr(old):
                self.nodes[place] = new

    def finish(self) -> Items:
        """All nodes."""
        while self._waiting:
            place = self._waiting.pop()
            self.nodes[place] = self.node(self.objects[place])
        return self.nodes


class Peer:
    """One end of the messages between a program and its tests. A request may be answered by requests before its reply."""

    def __init__(self, source: int, sink: int, operations: dict[str, Callable[..., Any]]) -> None:
        self._source, self._sink = source, sink
        self._operations = operations
        self._serves_tests = "get" not in operations
        self._exported: Items = []
        self._numbers: dict[int, int] = {}
        self._remotes: dict[int, Remote] = {}
        self.end: str | None = None
        """Why the other side answers no more; "" where it is simply gone."""

    def export(self, one: Any) -> int:
        """The number by which the other side names an object that stays here."""
        if self._serves_tests and not callable(one) and not hasattr(type(one), "__next__"):
            raise Untransportable(
                f"the tests hand over an object of the type '{type(one).__name__}', which cannot be sent to the program"
            )
        number = self._numbers.setdefault(id(one), len(self._exported))
        if number == len(self._exported):
            self._exported.append(one)
        return number

    def request(self, operation: str, *values: Any) -> Any:
        """Have the other side do something: its result, or its exception."""
        if self.end is not None:
            raise Ended(self.end)
        table = Table(self, [])
        part = table.part(values)
        self._send({"do": operation, "with": part, "nodes": table.finish()})
        while "do" in (message := self.message()):
            self.serve(message)
        try:
            objects = self._decoded(message["nodes"], table.objects)
            if "raised" not in message:
                return self._value(message["value"], objects, message["nodes"])
            error = self._error(list(message["raised"]), str(message["said"]))
            if isinstance(error, StopIteration | StopAsyncIteration) and operation != "next":
                # It would end a loop of the tests without a word.
                error = RuntimeError(f"it raised {type(error).__name__}")
        except Exception as broken:
            raise self._ended(f"the program sent what is no reply ({type(broken).__name__})") from None
        raise error

    def serve(self, message: dict[str, Any]) -> None:
        """Do what the other side asks, and reply."""
        try:
            operation = self._operations[message["do"]]
            before = message["nodes"]
            objects = self._decoded(before, [])
            values = self._value(message["with"], objects, before)
            if self._serves_tests and id(values[0]) not in self._numbers:
                # With `type` alone a program could make a class here whose objects equal everything.
                raise TypeError("an object that was never handed over")
        except Exception as broken:
            raise self._ended(f"the program sent what is no request ({type(broken).__name__})") from None
        try:
            table = Table(self, objects)
            value = table.part(operation(*values))
            table.changed(before)
            self._send({"value": value, "nodes": table.finish()})
            return
        except Ended:
            raise
        except BaseException as error:
            table = Table(self, objects)
            reply = {"raised": _names(error), "said": _said(error)}
        try:
            table.changed(before)
            self._send({**reply, "nodes": table.finish()})
        except Exception:
            self._send({**reply, "nodes": []})

    def _decoded(self, nodes: Items, known: Items) -> Items:
        """The objects of a message; those of `known`, which come first, are changed in place."""
        objects = [
            *known,
            *(_FILL[node[0]][0]() if node[0] in _FILL else _UNSET for node in nodes[len(known) :]),
        ]
        for place, node in enumerate(nodes):
            if node and node[0] in _FILL:
                kind, fill = _FILL[node[0]]
                if not isinstance(objects[place], kind):
                    raise TypeError("a container became another kind")
                fill(objects[place], [self._value(part, objects, nodes) for part in node[1:]])
        return objects

    def _value(self, part: Any, objects: Items, nodes: Items) -> Any:
        if type(part) is not list:
            if type(part) not in (*_PLAIN, int):
                raise TypeError("no part of a node")
            return part
        place = part[0]
        if objects[place] is _UNSET:
            objects[place] = self._made(*nodes[place], objects=objects, nodes=nodes)
        return objects[place]

    def _made(self, tag: str, *parts: Any, objects: Items, nodes: Items) -> Any:
        if tag == "yours":
            return self._exported[parts[0]]
        if tag == "mine":
            return self._remotes.setdefault(parts[0], Remote(self, int(parts[0]), str(parts[1])[:100]))
        if tag == "type":
            if not isinstance(kind := getattr(builtins, parts[0]), type):
                raise TypeError("no type")
            return kind
        return _MAKE[tag][1](*(self._value(part, objects, nodes) for part in parts))

    def _error(self, names: list[str], said: str) -> BaseException:
        """The first exception of Python's own that it was; an exit is the program's end, not an exception of its function."""
        for name in names:
            kind = getattr(builtins, name, None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                try:
                    return kind(said)
                except TypeError:
                    continue
        return self._ended(f"it raised {names[0] if names else 'nothing'}: {said}")

    def _ended(self, why: str) -> Ended:
        self.end = why if self.end is None else self.end
        return Ended(why)

    def message(self) -> dict[str, Any]:
        """The next one of the other side."""
        letter, body = read_frame(self._source)
        if letter != b"m":
            raise self._ended("" if not letter else "the program sent what is no message")
        try:
            message = json.loads(body)
            if not isinstance(message, dict):
                raise TypeError
        except Exception:
            raise self._ended("the program sent what is no message") from None
        return message

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        if len(body) > MOST:
            raise OverflowError("the value has more than 16 MiB as text")
        try:
            write_frame(self._sink, b"m", body)
        except OSError:
            raise self._ended("") from None


def _names(error: BaseException) -> list[str]:
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]
    return ["TypeError"] if isinstance(error, Untransportable) else names


def _said(error: BaseException) -> str:
    try:
        plain = len(error.args) == 1 and isinstance(error.args[0], str)
        return (error.args[0] if plain else str(error))[:2000]
    except Exception:
        return ""


def read_frame(source: int) -> tuple[bytes, bytes]:
    """A frame's letter and body; an empty letter at the end."""
    letter, length = _HEADER.unpack(_exactly(source, _HEADER.size) or b"\0" * _HEADER.size)
    if letter == b"\0" or length > MOST:
        return b"" if letter == b"\0" else b"?", b""
    body = _exactly(source, length)
    return (letter, body) if len(body) == length else (b"", b"")


def _exactly(source: int, length: int) -> bytes:
    pieces, left = [], length
    while left and (piece := os.read(source, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"" if left else b"".join(pieces)


def write_frame(sink: int, letter: bytes, body: bytes) -> None:
    """All of a frame."""
    left = memoryview(_HEADER.pack(letter, len(body)) + body)
    while left:
        left = left[os.write(sink, left) :]


def _module(name: str = "__main__") -> dict[str, Any]:
    """A new `__main__`, as a program of its own has. name: what it is told that it is called."""
    module = sys.modules["__main__"] = sys.modules[name] = types.ModuleType(name)
    return vars(module)


def _serve_program(source: int, sink: int, job: dict[str, Any]) -> None:
    names = _module("program")  # it is imported: what is under `if __name__ == "__main__"` is not run

    def load() -> list[str]:
        exec(compile(job["source"], "program", "exec"), names)
        return [name for name in names if isinstance(name, str)]

    peer = Peer(source, sink, {**OPERATIONS, "load": load, "global": names.__getitem__})
    while True:
        peer.serve(peer.message())


def _run_tests(source: int, sink: int, job: dict[str, Any]) -> None:
    peer = Peer(source, sink, {name: OPERATIONS[name] for name in GIVEN})
    label, why = "passed", ""
    try:
        code = compile(job["tests"], "tests", "exec")
        wanted = names_of_the_program(job["tests"], job["entry_point"])
        if problem := missing_import(job["tests"]):
            raise Untestable(problem)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        label, why = "untestable", f"its tests are not Python: {error}"
    except Untestable as error:
        label, why = "untestable", str(error)
    else:
        try:
            names = _namespace(peer, wanted, job["before"], job["entry_point"])
            exec(code, names)
        except Untransportable as error:
            label, why = "untestable", str(error)
        except SystemExit as error:
            if error.code:
                label, why = "failed", f"SystemExit: {error.code}"
        except Ended:
            pass
        except BaseException as error:
            label, why = "failed", f"{type(error).__name__}: {_said(error)}"
    if peer.end is not None:
        label, why = ("failed", peer.end) if peer.end else ("ended early", "it ended before its last test")
    write_frame(sink, b"v", json.dumps({"label": label, "why": why[:300]}).encode())


def _namespace(peer: Peer, wanted: WantedNames, before: str, entry_point: str) -> dict[str, Any]:
    """What tests see: where the entry point is known, their own `before`; of the program, what they name and have not themselves."""
    available = set(peer.request("load"))
    names = _module()
    of_program, of_python, unwritten = wanted.of_program, wanted.of_python, {entry_point}
    for text in (before, before + "\n    pass\n") if entry_point else ():
        try:
            tree = ast.parse(text)
            exec(compile(tree, "before", "exec"), names)
        except Exception:
            continue
        further = names_of_the_program(text, entry_point)
        unwritten |= {_unwritten(node) for node in tree.body}
        of_program, of_python = of_program | further.of_program, of_python | further.of_python
        break
    for name in (of_program | unwritten) & available:
        if name in unwritten or name not in names:
            names[name] = peer.request("global", name)
    for name in (of_python & available) - unwritten - set(names):
        claimed = peer.request("global", name)
        is_module = isinstance(claimed, Remote) and claimed._kind == "module"
        names[name] = _object_of_python(name, is_module)
    return names


class Untestable(Exception):
    """Tests that cannot tell a right program from a wrong one, here."""


class WantedNames(NamedTuple):
    """The global names that tests read and do not define.

    of_program: what they test. of_python: what they may have of a program's imports; it is Python's own, whatever the
    program has under that name.
    """

    of_program: set[str]
    of_python: set[str]


def names_of_the_program(source: str, entry_point: str) -> WantedNames:
    """Which names of `source` the program gives and which Python: decided by the tests alone, never by what a program defines.

    A name that Python or a library has is the program's where it is the entry point or, without one, where an assertion calls
    nothing else; a built-in one only where nothing else could be. Raises Untestable where that leaves several.
    """
    tree = ast.parse(source)
    read, assigned, defined = _global_names(source)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    bases = {node.value.id for node in attributes if isinstance(node.value, ast.Name)}
    of_python = {name for name in read if _is_of_python(name, name in bases)} - {entry_point}
    of_program = read - defined - of_python
    if not entry_point:
        candidates = of_program - assigned
        possible = (of_python & _called(tree)) - bases - assigned - LIBRARY_NAMES
        if candidates:
            possible -= set(vars(builtins))
        tested = _called_alone(tree, possible | candidates) & possible
        if not candidates and not tested:
            tested = possible
            if len(possible) > 1:
                raise Untestable(
                    f"they call {', '.join(sorted(possible))}, all of which Python has itself: say which is the program's (entry_point)"
                )
        of_program |= tested
        of_python -= tested
    libraries = {name for name in of_python if name not in vars(builtins) and not name.startswith("__")}
    return WantedNames(of_program, libraries - defined - assigned - LIBRARY_NAMES)


def _called(tree: ast.AST) -> set[str]:
    """The names that are called."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _called_alone(tree: ast.AST, names: set[str]) -> set[str]:
    """Which of `names` an assertion calls without calling another of them: what it tests, and not what it tests with."""
    alone = set()
    for node in ast.walk(tree):
        method = node.func if isinstance(node, ast.Call) else None
        is_assertion = isinstance(method, ast.Attribute) and method.attr.startswith("assert")
        if isinstance(node, ast.Assert) or is_assertion:
            called = _called(node) & names
            if len(called) == 1:
                alone |= called
    return alone


def _global_names(source: str) -> tuple[set[str], set[str], set[str]]:
    """The global names that code reads, those that it assigns, and of these the ones it defines or imports."""
    top = symtable.symtable(source, "tests", "exec")
    read, assigned, defined = set(), set(), set()
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is not top and not symbol.is_global():
                continue
            name = symbol.get_name()
            is_defined = symbol.is_imported() or symbol.is_namespace()
            if symbol.is_referenced():
                read.add(name)
            if symbol.is_assigned() or is_defined:
                assigned.add(name)
            if is_defined:
                defined.add(name)
    return read, assigned, defined


def _is_of_python(name: str, is_base: bool) -> bool:
    """Whether a name that tests read is Python's or a library's. is_base: whether they read attributes of it."""
    if name in vars(builtins) or name.startswith("__") or name in LIBRARY_NAMES:
        return True
    return name in EXPORTED or (is_base and name in sys.stdlib_module_names)


def _object_of_python(name: str, is_module: bool) -> object:
    """What Python itself has under a name: a module, or what one of the common modules exports."""
    if name in EXPORTED and not is_module:
        return getattr(importlib.import_module(EXPORTED[name]), name)
    return importlib.import_module(name) if name in sys.stdlib_module_names else None


def missing_import(source: str) -> str:
    """Why tests cannot be run here, where they import what is not there, at their top and not for a trial; else ""."""
    for node in ast.parse(source).body:
        modules = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            package = str(module).partition(".")[0]
            if package not in sys.modules and importlib.util.find_spec(package) is None:
                return f"they import '{package}', which is not in the sandbox"
    return ""


def _unwritten(node: ast.AST) -> str:
    """The name of a class, which the program makes objects of, or of a function that the program is to write; else none."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        steps = [step.value if isinstance(step, ast.Expr) else step for step in node.body]
        return (
            node.name if all(isinstance(step, ast.Pass | ast.Raise | ast.Constant) for step in steps) else ""
        )
    return node.name if isinstance(node, ast.ClassDef) else ""


def _run_script(job: dict[str, Any]) -> int:
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdout__, out, code = sys.stdout, sys.stdout, 0  # type: ignore[misc]
    try:
        exec(compile(job["source"], "program", "exec"), _module())
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        code = 1
        sys.stderr.write("".join(traceback.format_exception_only(error)))
    for thread in {*threading.enumerate()} - {threading.current_thread()}:
        if not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, out, sys.stderr):
        if not getattr(stream, "closed", True):
            stream.flush()
    return code


def main(nothing: int | None = None) -> None:
    """Say that the process is ready, read its job, do it, and end. nothing: /dev/null, where it cannot be opened any more."""
    os.write(1, b"!")
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    job = json.loads(read_frame(0)[1] or b"{}")
    if job.get("role") == "script":
        os._exit(_run_script(job))
    if job:
        source, sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR) if nothing is None else nothing
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        with contextlib.suppress(Ended):
            (_serve_program if job["role"] == "program" else _run_tests)(source, sink, job)
    os._exit(0)
