"""The part "hardware" of a record in a few lines of words, for the terminal and for pages.

A record may have been edited or come from elsewhere: what is not as expected is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.reports import numbers


def hardware_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, words) of a run's record; empty where it says nothing of its machine.

    The words are not yet made inert.
    """
    found = _part(data, "hardware")
    rows = {
        "Machine": _machine(found),
        "Ran on": _ran_as(_part(found, "model")),
        "Fitted": [_text(_part(data, "model"), "fit")],
        "Memory": [
            f"{size(x)} {words}"
            for key, words in (
                ("peak_rss_bytes", "at peak"),
                ("gpu_peak_bytes", "of GPU memory"),
            )
            if (x := _number(_part(found, "memory"), key))
        ],
        "Speed": _speed(found),
        "Latency": _latency(_part(found, "latency")),
        "Energy": _energy(_part(found, "energy")),
    }
    said = {
        name: ", ".join(word for word in words if word) for name, words in rows.items()
    }
    return [(name, words) for name, words in said.items() if words]


def size(count: float) -> str:
    """Bytes in the unit that suits them: "512 MiB", "23.5 GiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _machine(found: Mapping[str, Any]) -> Iterator[str]:
    machine = _part(found, "machine")
    yield _text(found, "label")
    yield _text(machine, "cpu")
    if cores := _number(machine, "cores"):
        yield f"{cores:g} core{'' if cores == 1 else 's'}"
    if memory := _number(machine, "memory_bytes"):
        limit = _number(machine, "memory_limit_bytes")
        yield f"{size(memory)}{f' (limited to {size(limit)})' if limit else ''}"
    gpus = machine.get("gpus")
    for gpu in gpus if isinstance(gpus, list) else ():
        if isinstance(gpu, Mapping) and (name := _text(gpu, "name")):
            memory = _number(gpu, "memory_bytes")
            yield f"{name}{f' {size(memory)}' if memory else ''}"


def _ran_as(model: Mapping[str, Any]) -> list[str]:
    if model and model.get("local") is not True:
        return ["a remote model"]
    return [_text(model, key) for key in ("device", "dtype", "quantisation")]


def _speed(found: Mapping[str, Any]) -> Iterator[str]:
    throughput = _part(found, "throughput")
    for key, words in (
        ("answers", "answers"),
        ("input_tokens", "input tokens"),
        ("output_tokens", "output tokens"),
    ):
        if rate := _number(throughput, f"{key}_per_second"):
            yield _rate(rate, words)
    if not throughput and (rate := _number(found, "samples_per_second")):
        yield f"{_rate(rate, 'samples')}, no new answers"
    if load := _number(found, "load_seconds"):
        yield f"loaded in {numbers.duration(load)}"


def _rate(per_second: float, what: str) -> str:
    """A rate of something: "344 answers/s"."""
    number, _, unit = numbers.rate(per_second).partition("/")
    return f"{number} {what}/{unit}"


def _latency(latency: Mapping[str, Any]) -> list[str]:
    known = {name: _number(latency, name) for name in ("p50", "p90", "p99")}
    shown = [
        f"{name} {numbers.duration(x)}" for name, x in known.items() if x is not None
    ]
    n = _number(latency, "n")
    return (
        [f"{', '.join(shown)} over {numbers.counted(int(n), 'answer')}"]
        if shown and n
        else []
    )


def _energy(energy: Mapping[str, Any]) -> list[str]:
    sides = (("cpu_joules", "by the processors"), ("gpu_joules", "by the GPUs"))
    known = [(_number(energy, key), words) for key, words in sides]
    parts = [f"{x:,.0f} J {words}" for x, words in known if x is not None]
    return (
        [*parts, "measured for the whole machine during the run"]
        if parts
        else [_text(energy, "method")]
    )


def _part(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(data: Mapping[str, Any], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


def _number(data: Mapping[str, Any], key: str) -> float | None:
    found = data.get(key)
    usable = (
        isinstance(found, (int, float))
        and not isinstance(found, bool)
        and 0 <= found < 1e18
    )
    return float(found) if usable and found is not None else None
