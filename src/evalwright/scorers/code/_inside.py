"""Runs inside the sandbox: a program, the tests that call it from another process, or a script.

It imports nothing of ours, so that a container can be given it as text. A process writes one
byte when it is ready, reads its job, and goes on with frames: a letter ("m" for a message to
the other process, "v" for the tests' verdict), a length and JSON. Tests and program share no
memory: a value crosses as a table of plain values, from which it is rebuilt with its types, its
sharing and its in-place changes. What is not plain (a generator, a function, an object of the
program's own class) stays where it is, and the other side has a `Remote` that stands for it.
"""

from __future__ import annotations

import array
import ast
import atexit
import builtins
import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import functools
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
"""Most bytes of a frame."""
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
"""Modules whose exports tests may use without an import, because programs commonly import them.

Tests get Python's own objects.
"""
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
"""Libraries by the names that tests use for them; never what a program has under such a name."""
_HEADER = struct.Struct("!cI")
_INLINE = 1 << 63
_PLAIN = (bool, str, float, type(None))
_UNSET = object()

Items = list[Any]


def _exported_names() -> dict[str, str]:
    """Map the names that the common modules export to the first module that has each."""
    modules: dict[str, str] = {}
    for module in COMMON_MODULES:
        loaded = importlib.import_module(module)
        names = getattr(loaded, "__all__", None) or [
            name for name in vars(loaded) if name[0] != "_"
        ]
        for name in names:
            modules.setdefault(name, module)
    return modules


EXPORTED = _exported_names()


class Ended(BaseException):
    """The other process is gone, has exited, or sent something that is not a message.

    Tests cannot catch it, and end with it.
    """


class Untransportable(BaseException):
    """Tests passed the program an object that only their own process can hold.

    Args:
        why: the reason, for the verdict.
        of_the_program: whether the tests got the object from the program.
    """

    def __init__(self, why: str, of_the_program: bool) -> None:
        super().__init__(why)
        self.of_the_program = of_the_program


_FILL: dict[str, tuple[type, Callable[[Any, Items], object]]] = {
    "list": (
        list,
        lambda container, members: operator.setitem(container, slice(None), members),
    ),
    "bytearray": (
        bytearray,
        lambda container, members: operator.setitem(
            container, slice(None), bytes(members)
        ),
    ),
    "set": (
        set,
        lambda container, members: (container.clear(), container.update(members)),
    ),
    "deque": (
        collections.deque,
        lambda container, members: (container.clear(), container.extend(members)),
    ),
    **{
        mapping_type.__name__: (
            mapping_type,
            lambda container, members: (
                container.clear(),
                container.update(dict(zip(members[::2], members[1::2], strict=True))),
            ),
        )
        for mapping_type in (
            dict,
            collections.OrderedDict,
            collections.defaultdict,
            collections.Counter,
        )
    },
    **{
        f"array {code}": (
            array.array,
            lambda container, members: operator.setitem(
                container, slice(None), array.array(container.typecode, members)
            ),
        )
        for code in "bBuhHiIlLqQfd"
    },
}
"""Mutable containers: created empty, then filled, since they may contain themselves."""


class _NamedTuple:
    """Stands for every class that `collections.namedtuple` makes."""


@functools.cache
def _named_tuple(name: str, fields: str) -> type:
    if set(fields.split()) & set(dir(tuple)):
        raise ValueError("a field in a method's place")
    return collections.namedtuple(name, fields)


def _is_named_tuple(cls: Any) -> bool:
    """Return whether a subclass of tuple is a named tuple.

    One with a field that would hide a method of tuples is treated as a plain tuple.
    """
    fields = vars(cls).get("_fields")
    if type(fields) is not tuple or not all(type(name) is str for name in fields):
        return False
    return not set(fields) & set(dir(tuple))


_MAKE: dict[str, tuple[type, Callable[..., object], Callable[[Any], Iterable[Any]]]] = {
    "int": (
        int,
        lambda digits: int(digits, 16),
        lambda number: (hex(int.__index__(number)),),
    ),
    "float": (float, float, lambda number: (float.__float__(number),)),
    "str": (str, str, lambda text: (str.__str__(text),)),
    "tuple": (tuple, lambda *members: members, tuple.__iter__),
    "frozenset": (frozenset, lambda *members: frozenset(members), frozenset.__iter__),
    "bytes": (bytes, bytes.fromhex, lambda octets: (bytes.hex(octets),)),
    "complex": (complex, complex, lambda number: (number.real, number.imag)),
    "range": (
        range,
        range,
        lambda numbers: (numbers.start, numbers.stop, numbers.step),
    ),
    "Fraction": (
        fractions.Fraction,
        fractions.Fraction,
        lambda fraction: (fraction.numerator, fraction.denominator),
    ),
    "Decimal": (decimal.Decimal, decimal.Decimal, lambda number: (str(number),)),
    "datetime": (
        datetime.datetime,
        datetime.datetime.fromisoformat,
        lambda moment: (moment.isoformat(),),
    ),
    "date": (
        datetime.date,
        datetime.date.fromisoformat,
        lambda day: (day.isoformat(),),
    ),
    "time": (
        datetime.time,
        datetime.time.fromisoformat,
        lambda moment: (moment.isoformat(),),
    ),
    "timedelta": (
        datetime.timedelta,
        datetime.timedelta,
        lambda duration: (duration.days, duration.seconds, duration.microseconds),
    ),
    "timezone": (
        datetime.timezone,
        datetime.timezone,
        lambda zone: (zone.utcoffset(None),),
    ),
    "dict_keys": (
        type({}.keys()),
        lambda *members: dict.fromkeys(members).keys(),
        iter,
    ),
    "dict_values": (
        type({}.values()),
        lambda *members: dict(enumerate(members)).values(),
        iter,
    ),
    "dict_items": (type({}.items()), lambda *members: dict(members).items(), iter),
    "namedtuple": (
        _NamedTuple,
        lambda name, fields, *members: _named_tuple(name, fields)(*members),
        lambda record: (
            type(record).__name__,
            " ".join(type(record)._fields),
            *tuple.__iter__(record),
        ),
    ),
}
"""Immutable values: type, how to build one from its parts, how to list its parts."""

_TAGS = {cls: tag for tag, (cls, *_) in (*_MAKE.items(), *_FILL.items())}


class Remote:
    """Stands for an object of the other process and operates on it by messages.

    It lets no program decide what a value of the tests is: it equals no such value, and an
    operation with one may only return another object of the program. Objects of a class that the
    tests name as such (`Money(3)`) compare among themselves as their class defines; others are
    equal if they are the same object.
    """

    __slots__ = ("_kind", "_number", "_own_equality", "_peer")

    def __init__(self, peer: Peer, number: int, kind: str, own_equality: bool) -> None:
        object.__setattr__(self, "_peer", peer)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_own_equality", own_equality)

    def __getattribute__(self, name: str) -> Any:
        if name in ("__doc__", "__module__"):
            return self._peer.request("get", self, name)
        return object.__getattribute__(self, name)

    def __call__(self, *values: Any, **named: Any) -> Any:
        outcome = self._peer.request("call", self, values, named)
        if isinstance(outcome, Remote) and self._number in self._peer.classes:
            self._peer.note_instance(outcome._number)
        return outcome

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in DESCRIPTIONS:
            raise AttributeError(name)
        return self._peer.request("get", self, name)

    def __setattr__(self, name: str, attribute: Any) -> None:
        self._peer.request("set", self, name, attribute)

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

    def __setitem__(self, key: Any, element: Any) -> None:
        self._peer.request("set item", self, key, element)

    def __delitem__(self, key: Any) -> None:
        self._peer.request("delete item", self, key)

    def __contains__(self, element: Any) -> bool:
        if not self._is_instance():
            return any(member is element or member == element for member in self)
        return self._peer.request("contains", self, element) is True

    def __instancecheck__(self, candidate: Any) -> bool:
        return (
            isinstance(candidate, Remote)
            and self._peer.request("is instance", self, candidate) is True
        )

    def __subclasscheck__(self, candidate: Any) -> bool:
        return (
            isinstance(candidate, Remote)
            and self._peer.request("is subclass", self, candidate) is True
        )

    def __enter__(self) -> Any:
        entered = self._peer.request("get", self, "__enter__")()
        if isinstance(entered, Remote) and self._is_instance():
            self._peer.note_instance(entered._number)
        return entered

    def __exit__(self, *error: Any) -> None:
        # What it returns does not count: it would end an assertion that does not hold without a
        # word. Nor does what it raises, where the tests raised before.
        with (
            contextlib.suppress(Exception)
            if error[0] is not None
            else contextlib.nullcontext()
        ):
            self._peer.request("get", self, "__exit__")(None, None, None)

    def __str__(self) -> str:
        return self._text("text")

    def __repr__(self) -> str:
        if self._is_instance():
            return self._text("representation")
        return f"<an object of the type '{self._kind}' in the other process>"

    def _text(self, operation: str) -> str:
        written = self._peer.request(operation, self)
        if type(written) is not str:
            raise TypeError(f"an object of the type '{self._kind}' has no text")
        return written

    def _is_instance(self) -> bool:
        """Return whether this object is of a class that the tests name as such."""
        return self._number in self._peer.instances

    def _compared(self, name: str, operand: object) -> Any:
        if not isinstance(operand, Remote):
            raise TypeError(
                f"an object of the type '{self._kind}' stays in the program's process"
                " and cannot be compared"
            )
        if not self._is_instance() and not operand._is_instance():
            raise TypeError(
                f"objects of the types '{self._kind}' and '{operand._kind}' cannot be"
                " compared: the tests name no class of theirs"
            )
        return self._peer.request("operate", self, name, operand) is True

    def _operated(self, name: str, *others: Any) -> Any:
        operands = (self, *others)
        remote = [operand for operand in operands if isinstance(operand, Remote)]
        instances = [operand for operand in remote if operand._is_instance()]
        mixed = [operand for operand in remote if self._peer.is_mixed(operand._number)]
        if not instances and not mixed:
            raise TypeError(
                f"an object of the type '{self._kind}' stays in the program's process:"
                " the tests name no class of it"
            )
        outcome = self._peer.request("operate", self, name, *others)
        if not isinstance(outcome, Remote):
            if mixed or len(remote) < len(operands):
                raise TypeError(
                    f"an object of the type '{self._kind}' makes a plain value out of"
                    " one of the tests"
                )
            return outcome
        if len(instances) == len(operands):
            self._peer.note_instance(outcome._number)
        else:
            # `abs(f(x) - 0.5) < 0.1` may be about a number: an operation with a value of the tests
            # never leads to a plain value.
            self._peer.note_mixed(outcome._number)
        return outcome

    def __eq__(self, other: object) -> bool:
        if other is None or other is self:
            return other is self
        if isinstance(other, Remote) and not (
            self._own_equality or other._own_equality
        ):
            return False
        return bool(self._compared("__eq__", other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__


def _add_operators() -> None:
    """Give `Remote` the operators that the program's classes may have."""

    def comparison(name: str) -> Callable[..., Any]:
        return lambda self, other: self._compared(name, other)

    def arithmetic(name: str) -> Callable[..., Any]:
        return lambda self, *others: self._operated(name, *others)

    for name in ("__lt__", "__le__", "__gt__", "__ge__"):
        setattr(Remote, name, comparison(name))
    for name in _ARITHMETIC:
        setattr(Remote, name, arithmetic(name))


_BINARY = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)
_ARITHMETIC = {
    **{f"__{name}__": getattr(operator, f"__{name}__") for name in _BINARY},
    **{
        f"__r{name}__": functools.partial(
            lambda step, right, left: step(left, right),
            getattr(operator, f"__{name}__"),
        )
        for name in _BINARY
    },
    **{
        f"__{name}__": getattr(operator, f"__{name}__")
        for name in ("neg", "pos", "invert")
    },
    "__abs__": abs,
}
"""Operators by their method names, as functions that take the object first."""
_add_operators()
_COMPARISONS = {
    f"__{name}__": getattr(operator, name) for name in ("eq", "lt", "le", "gt", "ge")
}


class Fault(type):
    """The metaclass of classes that stand for the program's exceptions in the tests' process.

    A name by which the program means an exception is never Python's own class: with `Missing =
    AssertionError`, tests that write `except Missing` would catch their own assertions.
    """

    _peer: Peer | None
    _number: int

    def __call__(cls, *values: Any, **named: Any) -> Any:
        if cls._peer is None:
            return super().__call__(*values, **named)
        return cls._peer.request("call", cls, values, named)


def _fault_attribute(self: Any, name: str) -> Any:
    """Get an attribute of an exception that the program holds."""
    origin = vars(self).get("_origin")
    if origin is None or name.startswith("_"):
        raise AttributeError(name)
    return origin[0].request("get", self, name)


def _fault_text(self: Any) -> str:
    origin = vars(self).get("_origin")
    return str(origin[2]) if origin else BaseException.__str__(self)


@functools.cache
def _python_fault_class(python: Any) -> Fault:
    """Build the class for one of Python's exceptions and those that the program means by it.

    It catches no others.
    """
    bases = [
        _python_fault_class(base)
        for base in python.__bases__
        if issubclass(base, BaseException)
    ]
    return Fault(
        python.__name__,
        (python, *bases),
        {"__slots__": (), "__module__": "program", "_peer": None, "_number": -1},
    )


OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda function, values, named: function(*values, **named),
    "get": getattr,
    "set": setattr,
    "iter": iter,
    "next": next,
    "truth": bool,
    "length": len,
    "item": operator.getitem,
    "set item": operator.setitem,
    "delete item": operator.delitem,
    "contains": operator.contains,
    "is instance": lambda cls, candidate: isinstance(candidate, cls),
    "is subclass": lambda cls, candidate: issubclass(candidate, cls),
    "text": str,
    "representation": repr,
    "operate": lambda operand, name, *others: {**_ARITHMETIC, **_COMPARISONS}[name](
        operand, *others
    ),
}
DESCRIPTIONS = frozenset(("__name__", "__qualname__", "__doc__", "__module__"))
"""Texts of a function that the other side may read; `functools.wraps` copies them."""


def _read_description(function: Any, name: str) -> str | None:
    text = getattr(function, name, None) if name in DESCRIPTIONS else None
    if type(text) is not str and name not in ("__doc__", "__module__"):
        raise AttributeError(name)
    return text if type(text) is str else None


GIVEN: dict[str, Callable[..., Any]] = {
    "call": OPERATIONS["call"],
    "iter": iter,
    "next": next,
    "get": _read_description,
}
"""What a program may do with objects that tests pass to it."""


class Table:
    """Writes objects as the nodes of a message.

    A node is `[kind, part, ...]`, where a part is a plain value or `[index of a node]`.
    """

    def __init__(self, peer: Peer, objects: Items) -> None:
        self.peer = peer
        self.objects = objects
        self.places = {id(obj): index for index, obj in enumerate(objects)}
        self.nodes: Items = [0] * len(objects)
        self._waiting: list[int] = []

    def write_part(self, obj: Any) -> Any:
        """Write an object as a part of a node; `finish` writes the object's own node."""
        cls = type(obj)
        if cls in _PLAIN or (cls is int and -_INLINE < obj < _INLINE):
            return obj
        index = self.places.setdefault(id(obj), len(self.objects))
        if index == len(self.objects):
            self.objects.append(obj)
            self.nodes.append(0)
            self._waiting.append(index)
        return [index]

    def write_node(self, obj: Any) -> Items:
        """List what an object consists of by its plain type, whatever its class pretends."""
        cls: Any = type(obj)
        if cls is Remote:
            return ["yours", obj._number]
        if issubclass(cls, type) and issubclass(obj, BaseException):
            return self._node_of_fault_class(obj)
        if issubclass(cls, BaseException):
            return self._node_of_fault(obj)
        if cls is type and vars(builtins).get(name := str(obj.__name__)) is obj:
            return ["type", name]
        shared = self.peer.shared_name(cls)
        if shared is not None and isinstance(obj, enum.Enum):
            return ["member", shared, obj.name]
        if shared is not None and hasattr(obj, "__dict__"):
            return [
                "shared",
                shared,
                *(
                    self.write_part(attribute)
                    for pair in vars(obj).items()
                    for attribute in pair
                ),
            ]
        if issubclass(cls, array.array):
            return [f"array {obj.typecode}", *map(self.write_part, obj)]
        if issubclass(cls, tuple) and _is_named_tuple(cls):
            return ["namedtuple", *map(self.write_part, _MAKE["namedtuple"][2](obj))]
        base: Any
        for base in cls.__mro__:
            tag = _TAGS.get(base)
            if tag in _MAKE:
                return [tag, *map(self.write_part, _MAKE[tag][2](obj))]
            if issubclass(base, dict) and tag is not None:
                return [
                    tag,
                    *(
                        self.write_part(content)
                        for pair in dict.items(obj)
                        for content in pair
                    ),
                ]
            if tag is not None:
                return [tag, *map(self.write_part, base.__iter__(obj))]
        return [
            "mine",
            self.peer.export(obj),
            cls.__name__,
            cls.__eq__ is not object.__eq__,
        ]

    def _node_of_fault_class(self, cls: Any) -> Items:
        """Write a class of exceptions: the program's own with its bases, Python's by its name."""
        if isinstance(cls, Fault):
            return ["yours", cls._number] if cls._peer else ["type", cls.__name__]
        name = str(cls.__name__)
        of_python: dict[str, Any] = vars(builtins)
        if of_python.get(name) is cls:
            return ["type", name]
        number = self.peer.export(cls)
        if self.peer.serves_tests:
            return ["mine", number, "type", False]
        bases: list[Any] = [
            base for base in cls.__bases__ if issubclass(base, BaseException)
        ]
        base_nodes: Items = []
        for base in bases:
            base_name = str(base.__name__)
            base_nodes.append(
                base_name if base is of_python.get(base_name) else self.write_part(base)
            )
        return ["fault class", number, name, *base_nodes]

    def _node_of_fault(self, error: BaseException) -> Items:
        """Write an exception.

        If its class is the program's own, the object stays there; its text and arguments cross.
        """
        cls: Any = type(error)
        if isinstance(cls, Fault) and (origin := vars(error).get("_origin")):
            return ["yours", origin[1]]
        python = cls.__bases__[0] if isinstance(cls, Fault) else cls
        name = str(python.__name__)
        if vars(builtins).get(name) is python:
            return [
                "fault",
                name,
                -1,
                _error_text(error),
                *map(self.write_part, error.args),
            ]
        number = self.peer.export(error)
        return [
            "fault",
            self.write_part(cls),
            number,
            _error_text(error),
            *map(self.write_part, error.args),
        ]

    def changed(self, before: Items) -> None:
        """Write the containers that have changed since they arrived as `before`."""
        for index, old in enumerate(before):
            if (old[0] in _FILL or old[0] == "shared") and repr(
                new := self.write_node(self.objects[index])
            ) != repr(old):
                self.nodes[index] = new

    def finish(self) -> Items:
        """Write the waiting nodes, and return all nodes."""
        while self._waiting:
            index = self._waiting.pop()
            self.nodes[index] = self.write_node(self.objects[index])
        return self.nodes


class Peer:
    """One end of the messages between a program and its tests.

    The other side may send requests of its own before it replies to one.
    """

    def __init__(
        self, source: int, sink: int, operations: dict[str, Callable[..., Any]]
    ) -> None:
        self._source = source
        self._sink = sink
        self._operations = operations
        self.serves_tests = "set" not in operations
        self.classes: set[int] = set()
        """Numbers of the program's classes that tests name as such; `instances` has their objects.
        """
        self.instances: set[int] = set()
        self._mixed: set[int] = set()
        self.shared: dict[str, Any] = {}
        """Classes that both sides got from the code before the tests; objects cross by attributes.
        """
        self.of_the_program: set[type] = set()
        """Python's own types that the program passed over."""
        self.untransportable: Untransportable | None = None
        self._faults: dict[int, Fault] = {}
        self._named_faults: set[type] = set()
        self._exported: Items = []
        self._numbers: dict[int, int] = {}
        self._remotes: dict[int, Any] = {}
        self.end: str | None = None
        """Why the other side no longer answers; "" if it is simply gone."""

    def note_instance(self, number: int) -> None:
        """Note that an object is of a class that tests name as such."""
        if number not in self._mixed:
            self.instances.add(number)

    def note_mixed(self, number: int) -> None:
        """Note that an object came from an operation with a value of the tests.

        The mark is permanent, because the program may return the object again.
        """
        self._mixed.add(number)
        self.instances.discard(number)

    def is_mixed(self, number: int) -> bool:
        """Return whether an object came from an operation with a value of the tests."""
        return number in self._mixed

    def export(self, obj: Any) -> int:
        """Number an object that stays here, so that the other side can refer to it."""
        if (
            self.serves_tests
            and not callable(obj)
            and not hasattr(type(obj), "__next__")
        ):
            of_the_program = not self.of_the_program.isdisjoint(type(obj).__mro__)
            raise Untransportable(
                f"the tests hand over an object of the type '{type(obj).__name__}',"
                " which cannot be sent to the program",
                of_the_program,
            )
        number = self._numbers.setdefault(id(obj), len(self._exported))
        if number == len(self._exported):
            self._exported.append(obj)
        return number

    def request(self, operation: str, *values: Any) -> Any:
        """Have the other side do something, and return its result or raise its exception."""
        if self.end is not None:
            raise Ended(self.end)
        table = Table(self, [])
        arguments = table.write_part(values)
        try:
            nodes = table.finish()
        except Untransportable as problem:
            self.untransportable = problem
            raise
        self._send({"do": operation, "with": arguments, "nodes": nodes})
        while "do" in (message := self.message()):
            self.serve(message)
        try:
            objects = self._rebuild_objects(message["nodes"], table.objects)
            if "raised" not in message:
                return self._read_part(message["value"], objects, message["nodes"])
            error = self._rebuild_raised(message, objects)
            if (
                isinstance(error, StopIteration | StopAsyncIteration)
                and operation != "next"
            ):
                # A StopIteration from the program would silently end a loop of the tests.
                error = RuntimeError(f"it raised {type(error).__name__}")
        except Exception as broken:
            raise self._ended(
                f"the program sent what is no reply ({type(broken).__name__})"
            ) from None
        raise error

    def serve(self, message: dict[str, Any]) -> None:
        """Do what the other side requests, and reply."""
        try:
            operation = self._operations[message["do"]]
            before = message["nodes"]
            objects = self._rebuild_objects(before, [])
            values = self._read_part(message["with"], objects, before)
            if self.serves_tests and id(values[0]) not in self._numbers:
                # With `type` alone, a program could make a class here whose objects equal
                # everything.
                raise TypeError("an object that was never handed over")
        except Exception as broken:
            raise self._ended(
                f"the program sent what is no request ({type(broken).__name__})"
            ) from None
        try:
            table = Table(self, objects)
            returned = table.write_part(operation(*values))
            table.changed(before)
            self._send({"value": returned, "nodes": table.finish()})
            return
        except Ended:
            raise
        except BaseException as error:
            reply = {"raised": _builtin_class_names(error), "said": _error_text(error)}
            failed = error
        for with_object in self._reply_attempts(failed):
            table = Table(self, objects)
            try:
                error_node = {"error": table.write_part(failed)} if with_object else {}
                table.changed(before)
                self._send({**reply, **error_node, "nodes": table.finish()})
                return
            except (Exception, Untransportable):
                continue
        self._send({**reply, "nodes": []})

    def _reply_attempts(self, error: BaseException) -> tuple[bool, ...]:
        """Return the ways to try in turn: whether a raised exception crosses as an object."""
        if self.serves_tests:
            return (True, False) if isinstance(type(error), Fault) else (False,)
        error.__traceback__ = None
        return (True, False) if isinstance(error, Exception) else (False,)

    def shared_name(self, cls: Any) -> str | None:
        """Return the name of `cls` if both sides have that class, else None."""
        name = cls.__name__
        return name if type(name) is str and self.shared.get(name) is cls else None

    def _rebuild_objects(self, nodes: Items, existing: Items) -> Items:
        """Rebuild the objects of a message; those of `existing` come first, changed in place."""
        objects = [
            *existing,
            *(self._create_empty(node) for node in nodes[len(existing) :]),
        ]
        for index, node in enumerate(nodes):
            if node and node[0] == "shared":
                self._fill_shared(
                    objects[index],
                    node[1],
                    [
                        self._read_part(node_part, objects, nodes)
                        for node_part in node[2:]
                    ],
                )
            elif node and node[0] in _FILL:
                container_type, fill = _FILL[node[0]]
                if not isinstance(objects[index], container_type):
                    raise TypeError("a container became another kind")
                fill(
                    objects[index],
                    [
                        self._read_part(node_part, objects, nodes)
                        for node_part in node[1:]
                    ],
                )
        return objects

    def _create_empty(self, node: Items) -> Any:
        """Create an empty container or shared object to fill later; nothing yet for other nodes."""
        tag = node[0]
        if tag == "shared":
            return object.__new__(self.shared[node[1]])
        if tag not in _FILL:
            return _UNSET
        container_type = _FILL[tag][0]
        return (
            array.array(tag[-1]) if container_type is array.array else container_type()
        )

    def _fill_shared(self, obj: Any, name: str, flat_attributes: Items) -> None:
        """Set an object's attributes; none may replace what its class defines."""
        attributes = dict(zip(flat_attributes[::2], flat_attributes[1::2], strict=True))
        cls = self.shared[name]
        if type(obj) is not cls:
            raise TypeError("an object became another kind")
        for attribute in attributes:
            if (
                type(attribute) is not str
                or attribute.startswith("__")
                or callable(getattr(cls, attribute, None))
            ):
                raise TypeError("an attribute in a method's place")
        if not hasattr(obj, "__dict__"):
            for attribute, content in attributes.items():
                setattr(obj, attribute, content)
            return
        vars(obj).clear()
        vars(obj).update(attributes)

    def _read_part(self, node_part: Any, objects: Items, nodes: Items) -> Any:
        if type(node_part) is not list:
            if type(node_part) not in (*_PLAIN, int):
                raise TypeError("no part of a node")
            return node_part
        index = node_part[0]
        if objects[index] is _UNSET:
            objects[index] = self._rebuild(*nodes[index], objects=objects, nodes=nodes)
        return objects[index]

    def _rebuild(self, tag: str, *node_parts: Any, objects: Items, nodes: Items) -> Any:
        if tag == "yours":
            return self._exported[node_parts[0]]
        if tag == "mine":
            number = int(node_parts[0])
            kind_name = str(node_parts[1])[:100]
            own_equality = bool(node_parts[2])
            return self._remotes.setdefault(
                number, Remote(self, number, kind_name, own_equality)
            )
        if tag == "type":
            if not isinstance(cls := getattr(builtins, node_parts[0]), type):
                raise TypeError("no type")
            if not self.serves_tests:
                return cls
            if issubclass(cls, BaseException):
                python: Any = cls
                self._named_faults.add(python)
                return _python_fault_class(python)
            self.of_the_program.add(cls)
            return cls
        if tag == "member":
            return self.shared[node_parts[0]][node_parts[1]]
        if tag == "fault class":
            return self._fault_class(
                int(node_parts[0]),
                str(node_parts[1]),
                [self._read_part(base, objects, nodes) for base in node_parts[2:]],
            )
        if tag == "fault":
            arguments = [
                self._read_part(argument, objects, nodes) for argument in node_parts[3:]
            ]
            cls = (
                node_parts[0]
                if type(node_parts[0]) is str
                else self._read_part(node_parts[0], objects, nodes)
            )
            return self._fault(cls, int(node_parts[1]), str(node_parts[2]), arguments)
        return _MAKE[tag][1](
            *(self._read_part(argument, objects, nodes) for argument in node_parts)
        )

    def _fault_class(self, number: int, name: str, bases: Items) -> Fault:
        """Return the class that stands for an exception class of the program."""
        if number not in self._faults:
            bases = [
                _python_fault_class(getattr(builtins, base))
                if type(base) is str
                else base
                for base in bases
            ]
            if not all(isinstance(base, Fault) for base in bases):
                raise TypeError("no class of exceptions")
            methods = {"__str__": _fault_text, "__getattr__": _fault_attribute}
            self._faults[number] = Fault(
                name,
                tuple(bases),
                {**methods, "_peer": self, "_number": number, "__module__": "program"},
            )
        return self._faults[number]

    def _fault(
        self, cls: Any, number: int, text: str, arguments: Items
    ) -> BaseException:
        """Rebuild an exception: Python's own, or one that stands for the program's."""
        if isinstance(cls, str):
            python = getattr(builtins, cls)
            if not issubclass(python, BaseException):
                raise TypeError("no exception")
            is_named = not self._named_faults.isdisjoint(python.__mro__)
            cls = (
                _python_fault_class(python)
                if is_named and self.serves_tests
                else python
            )
        elif not isinstance(cls, Fault) or number < 0:
            raise TypeError("no class of exceptions")
        if number in self._remotes:
            existing: BaseException = self._remotes[number]
            return existing
        error: BaseException
        try:
            error = type.__call__(cls, *arguments)
        except (TypeError, ValueError):
            error = type.__call__(cls, text)
        if number >= 0:
            vars(error)["_origin"] = (self, number, text)
            self._remotes[number] = error
        return error

    def _rebuild_raised(self, message: dict[str, Any], objects: Items) -> BaseException:
        """Rebuild the exception that came as a reply; one that is no Exception ends the program."""
        if "error" not in message:
            return self._error(list(message["raised"]), str(message["said"]))
        error = self._read_part(message["error"], objects, message["nodes"])
        if isinstance(error, Exception):
            return error
        return self._ended(f"it raised {type(error).__name__}: {message['said']}")

    def _error(self, names: list[str], text: str) -> BaseException:
        """Build the exception from the first of its classes that is Python's own.

        An exit ends the program and is not an exception of its function.
        """
        for name in names:
            cls = getattr(builtins, name, None)
            if isinstance(cls, type) and issubclass(cls, Exception):
                try:
                    return cls(text)
                except TypeError:
                    continue
        return self._ended(f"it raised {names[0] if names else 'nothing'}: {text}")

    def _ended(self, why: str) -> Ended:
        self.end = why if self.end is None else self.end
        return Ended(why)

    def message(self) -> dict[str, Any]:
        """Read the next message of the other side."""
        letter, body = read_frame(self._source)
        if letter != b"m":
            raise self._ended(
                "" if not letter else "the program sent what is no message"
            )
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


def _builtin_class_names(error: BaseException) -> list[str]:
    names = [
        cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins"
    ]
    return ["TypeError"] if isinstance(error, Untransportable) else names


def _error_text(error: BaseException) -> str:
    try:
        plain = len(error.args) == 1 and isinstance(error.args[0], str)
        return (error.args[0] if plain else str(error))[:2000]
    except Exception:
        return ""


def read_frame(source: int) -> tuple[bytes, bytes]:
    """Read a frame's letter and body; the letter is empty at the end of the input."""
    letter, length = _HEADER.unpack(
        _read_exactly(source, _HEADER.size) or b"\0" * _HEADER.size
    )
    if letter == b"\0" or length > MOST:
        return b"" if letter == b"\0" else b"?", b""
    body = _read_exactly(source, length)
    return (letter, body) if len(body) == length else (b"", b"")


def _read_exactly(source: int, length: int) -> bytes:
    pieces = []
    left = length
    while left and (piece := os.read(source, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"" if left else b"".join(pieces)


def write_frame(sink: int, letter: bytes, body: bytes) -> None:
    """Write a whole frame."""
    left = memoryview(_HEADER.pack(letter, len(body)) + body)
    while left:
        left = left[os.write(sink, left) :]


def _new_main_module(name: str = "__main__") -> dict[str, Any]:
    """Create a fresh `__main__` module, as a program expects, and return its globals.

    `name` is the module's `__name__`.
    """
    module = sys.modules["__main__"] = sys.modules[name] = types.ModuleType(name)
    return vars(module)


def _serve_program(source: int, sink: int, job: dict[str, Any]) -> None:
    # it is imported: what is under `if __name__ == "__main__"` is not run
    names = _new_main_module("program")

    def load(shared: list[str]) -> list[str]:
        exec(compile(job["source"], "program", "exec"), names)
        peer.shared.update(
            (name, names[name]) for name in shared if isinstance(names.get(name), type)
        )
        return [name for name in names if isinstance(name, str)]

    peer = Peer(source, sink, {**OPERATIONS, "load": load, "global": names.__getitem__})
    while True:
        peer.serve(peer.message())


def _run_tests(source: int, sink: int, job: dict[str, Any]) -> None:
    peer = Peer(source, sink, {name: OPERATIONS[name] for name in GIVEN})
    label = "passed"
    why = ""
    try:
        code = compile(job["tests"], "tests", "exec")
        needed_names = names_of_the_program(job["tests"], job["entry_point"])
        if problem := missing_import(job["tests"]) or missing_resource(job["tests"]):
            raise Untestable(problem)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        label = "untestable"
        why = f"its tests are not Python: {error}"
    except Untestable as error:
        label = "untestable"
        why = str(error)
    else:
        try:
            names = _build_namespace(
                peer, needed_names, job["before"], job["entry_point"]
            )
            exec(code, names)
            _run_test_cases(job["tests"], names)
        except Untransportable as error:
            label = "failed"
            why = str(error)
        except Untestable as error:
            label = "untestable"
            why = str(error)
        except SystemExit as error:
            if error.code:
                label = "failed"
                why = f"SystemExit: {error.code}"
        except Ended:
            pass
        except BaseException as error:
            label = "failed"
            why = f"{type(error).__name__}: {_error_text(error)}"
    if (
        label == "failed"
        and peer.untransportable is not None
        and not peer.untransportable.of_the_program
    ):
        label = "untestable"
        why = str(peer.untransportable)
    if peer.end is not None:
        label, why = (
            ("failed", peer.end)
            if peer.end
            else ("ended early", "it ended before its last test")
        )
    write_frame(sink, b"v", json.dumps({"label": label, "why": why[:300]}).encode())


def _build_namespace(
    peer: Peer, needed_names: WantedNames, before: str, entry_point: str
) -> dict[str, Any]:
    """Build the globals of the tests.

    If there is an entry point, they have their own copy of `before`. From the program they get the
    names that tests use and do not define.
    """
    names = _new_main_module()
    of_program = needed_names.of_program
    of_python = needed_names.of_python
    unwritten = {entry_point}
    for text in (before, before + "\n    pass\n") if entry_point else ():
        try:
            tree = ast.parse(text)
            exec(compile(tree, "before", "exec"), names)
        except Exception:
            continue
        further = names_of_the_program(text, entry_point)
        is_for_a_function = any(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == entry_point
            for node in tree.body
        )
        unwritten |= {_name_to_write(node, is_for_a_function) for node in tree.body}
        written = {
            node.name for node in tree.body if isinstance(node, ast.ClassDef)
        } - unwritten
        peer.shared.update(
            (name, names[name]) for name in written if _can_be_shared(names[name])
        )
        of_program = of_program | further.of_program
        of_python = of_python | further.of_python
        break
    available = set(peer.request("load", sorted(peer.shared)))
    for name in (of_program | unwritten) & available:
        if name in unwritten or name not in names:
            names[name] = peer.request("global", name)
            if (
                isinstance(names[name], Remote)
                and name[:1].isupper()
                and "_" not in name
            ):
                peer.classes.add(names[name]._number)
    for name in (of_python & available) - unwritten - set(names):
        claimed = peer.request("global", name)
        is_module = isinstance(claimed, Remote) and claimed._kind == "module"
        names[name] = _object_of_python(name, is_module)
    return names


def _can_be_shared(cls: Any) -> bool:
    """Return whether a class's objects consist only of attributes, or belong to an enumeration."""
    if isinstance(cls, enum.EnumMeta):
        return True
    maker: Any = cls.__new__
    return type(cls) is type and cls.__dictoffset__ != 0 and maker is object.__new__


class Untestable(Exception):
    """The tests cannot tell a right program from a wrong one here."""


class WantedNames(NamedTuple):
    """The global names that tests read and do not define.

    Attributes:
        of_program: names of the program that the tests use.
        of_python: names that a program may have imported; tests get Python's own objects, whatever
            the program has under that name.
    """

    of_program: set[str]
    of_python: set[str]


def names_of_the_program(source: str, entry_point: str) -> WantedNames:
    """Decide which names in `source` the program provides and which Python does.

    The tests alone decide, never what a program defines. A name that Python or a library has is the
    program's if it is the entry point or, without an entry point, if an assertion calls nothing
    else; a built-in name only if nothing else could be.

    Raises:
        Untestable: several names could be the program's.
    """
    tree = ast.parse(source)
    read, assigned, defined = _global_names(source)
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    bases = {node.value.id for node in attributes if isinstance(node.value, ast.Name)}
    of_python = {name for name in read if _is_of_python(name, name in bases)} - {
        entry_point
    }
    of_program = read - defined - of_python
    if not entry_point:
        candidates = of_program - assigned
        possible = (of_python & _called_names(tree)) - bases - assigned - LIBRARY_NAMES
        if candidates:
            possible -= set(vars(builtins))
        tested = _names_called_alone(tree, possible | candidates) & possible
        if not candidates and not tested:
            tested = possible
            if len(possible) > 1:
                raise Untestable(
                    f"they call {', '.join(sorted(possible))}, all of which Python has"
                    " itself: say which is the program's (entry_point)"
                )
        of_program |= tested
        of_python -= tested
    libraries = {
        name
        for name in of_python
        if name not in vars(builtins) and not name.startswith("__")
    }
    return WantedNames(of_program, libraries - defined - assigned - LIBRARY_NAMES)


def _called_names(tree: ast.AST) -> set[str]:
    """List the names that are called."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _names_called_alone(tree: ast.AST, names: set[str]) -> set[str]:
    """List which of `names` an assertion calls without calling another of them.

    Those are what it tests, as opposed to what it tests with.
    """
    alone = set()
    for node in ast.walk(tree):
        method = node.func if isinstance(node, ast.Call) else None
        is_assertion = isinstance(method, ast.Attribute) and method.attr.startswith(
            "assert"
        )
        if isinstance(node, ast.Assert) or is_assertion:
            called = _called_names(node) & names
            if len(called) == 1:
                alone |= called
    return alone


def _global_names(source: str) -> tuple[set[str], set[str], set[str]]:
    """List the global names that code reads, assigns, and defines or imports."""
    top = symtable.symtable(source, "tests", "exec")
    read = set()
    assigned = set()
    defined = set()
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
    """Return whether a name that tests read is Python's or a library's.

    `is_base` says that they read attributes of it.
    """
    if name in vars(builtins) or name.startswith("__") or name in LIBRARY_NAMES:
        return True
    return name in EXPORTED or (is_base and name in sys.stdlib_module_names)


def _object_of_python(name: str, is_module: bool) -> object:
    """Get what Python has under a name: a module, or what one of the common modules exports."""
    if name in EXPORTED and not is_module:
        return getattr(importlib.import_module(EXPORTED[name]), name)
    return importlib.import_module(name) if name in sys.stdlib_module_names else None


def missing_import(source: str) -> str:
    """Return why tests cannot be run here for lack of a module; "" if they can.

    Only imports at the top level count, and not those inside a `try`.
    """
    for node in ast.parse(source).body:
        modules = (
            [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        )
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        for module in modules:
            package = str(module).partition(".")[0]
            if package not in sys.modules and importlib.util.find_spec(package) is None:
                return f"they import '{package}', which is not in the sandbox"
    return ""


_WORDS_OF_RESOURCES = (
    "asyncio",
    "Asyncio",
    "std",
    "input",
    "print",
    "tempfile",
    "open",
)
"""Tests without any of these words need nothing that `missing_resource` looks for."""


def missing_resource(source: str) -> str:
    """Return why tests cannot be run here for lack of a resource that no process has; else "".

    Their text alone decides.
    """
    if not any(word in source for word in _WORDS_OF_RESOURCES):
        return ""
    nodes = list(ast.walk(ast.parse(source)))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    called = {ast.unparse(call.func) for call in calls}
    imported = {
        f"{node.module}.{alias.name}": alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    used = called | {name for name, local in imported.items() if local in called}
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    replaced = {
        ast.unparse(target)
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
    } | {
        str(call.args[0].value)
        for call in calls
        if _replaces(call) and isinstance(call.args[0], ast.Constant)
    }
    if used & {
        "asyncio.run",
        "asyncio.new_event_loop",
        "asyncio.get_event_loop",
        "asyncio.Runner",
    } or any(
        "IsolatedAsyncioTestCase" in ast.unparse(base)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    ):
        return "they run an event loop of asyncio, which the sandbox has not"
    if replaced & {"builtins.input", "sys.stdin"}:
        return (
            "they replace what the program reads (input, sys.stdin), which is in"
            " another process"
        )
    is_captured = bool(replaced & {"sys.stdout", "sys.stderr"}) or any(
        name.rpartition(".")[2] in ("redirect_stdout", "redirect_stderr")
        for name in called
    )
    if is_captured and "getvalue" in attributes:
        return "they capture what the program prints, which is in another process"
    if "builtins.print" in replaced and any(
        name.startswith(("assert_", "call", "mock_calls")) for name in attributes
    ):
        return "they replace what the program prints with, which is in another process"
    if any(name.startswith("tempfile.") for name in used) or any(
        map(_writes_a_file, calls)
    ):
        return "they write files, which the sandbox has not"
    return ""


def _replaces(call: ast.Call) -> bool:
    """Return whether a call is one of `unittest.mock.patch`."""
    return bool(call.args) and ast.unparse(call.func).rpartition(".")[2] == "patch"


def _writes_a_file(call: ast.Call) -> bool:
    modes = [
        *call.args[1:2],
        *(keyword.value for keyword in call.keywords if keyword.arg == "mode"),
    ]
    return ast.unparse(call.func) in ("open", "io.open") and any(
        isinstance(mode, ast.Constant) and set("wax+") & set(str(mode.value))
        for mode in modes
    )


def _run_test_cases(source: str, names: dict[str, Any]) -> None:
    """Run the cases of `unittest` that tests define and do not run themselves.

    Raises:
        AssertionError: a case failed.
        Untestable: the cases have no test in them.
    """
    if "unittest" not in sys.modules:
        return
    import unittest

    cases = [
        cls
        for cls in names.values()
        if type(cls) is type
        and issubclass(cls, unittest.TestCase)
        and cls.__module__ == names["__name__"]
    ]
    calls = [
        node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)
    ]
    steps = {ast.unparse(function).rpartition(".")[2] for function in calls}
    if not cases or steps & {
        "main",
        "TextTestRunner",
        "TestProgram",
        "run",
        "debug",
        "runTest",
        *(case.__name__ for case in cases),
    }:
        return
    suite = unittest.TestSuite(
        map(unittest.defaultTestLoader.loadTestsFromTestCase, cases)
    )
    if not suite.countTestCases():
        raise Untestable("they define cases of unittest and no test in them")
    outcome = suite.run(unittest.TestResult())
    for case, written in (*outcome.failures, *outcome.errors):
        raise AssertionError(f"{case}: {written.strip().splitlines()[-1]}")
    if not outcome.wasSuccessful():
        raise AssertionError("a test that is expected to fail does not")


def _name_to_write(node: ast.AST, is_for_a_function: bool) -> str:
    """Return the name of a function or class that the program is asked to write, else "".

    A class is one if it is empty or, if no function is asked for, has a method to write.
    """
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name if _is_empty(node.body) else ""
    if not isinstance(node, ast.ClassDef):
        return ""
    has_gaps = not is_for_a_function and any(
        _name_to_write(step, False) for step in node.body
    )
    return node.name if has_gaps or _is_empty(node.body) else ""


def _is_empty(body: list[ast.stmt]) -> bool:
    steps = [step.value if isinstance(step, ast.Expr) else step for step in body]
    return all(isinstance(step, ast.Pass | ast.Raise | ast.Constant) for step in steps)


def _run_script(job: dict[str, Any]) -> int:
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    sys.unraisablehook = lambda _: (
        None
    )  # errors that Python reports while it cleans up are no reason for a failure
    sys.__stdout__, own_stdout, status = sys.stdout, sys.stdout, 0  # type: ignore[misc]
    try:
        exec(compile(job["source"], "program", "exec"), _new_main_module())
    except SystemExit as error:
        status = (
            error.code if isinstance(error.code, int) else int(error.code is not None)
        )
    except BaseException as error:
        status = 1
        sys.stderr.write("".join(traceback.format_exception_only(error)))
    for thread in {*threading.enumerate()} - {threading.current_thread()}:
        if not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, own_stdout, sys.stderr):
        if not getattr(stream, "closed", True):
            stream.flush()
    return status


def main(nothing: int | None = None) -> None:
    """Signal that the process is ready, read its job, do it, and end.

    `nothing` is a descriptor of /dev/null, for a process that can no longer open it.
    """
    os.write(1, b"!")
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    job = json.loads(read_frame(0)[1] or b"{}")
    if job.get("role") == "script":
        os._exit(_run_script(job))
    if job:
        source = os.dup(0)
        sink = os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR) if nothing is None else nothing
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        with contextlib.suppress(Ended):
            (_serve_program if job["role"] == "program" else _run_tests)(
                source, sink, job
            )
    os._exit(0)
