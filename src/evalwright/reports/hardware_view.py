"""The part "hardware" of a record in a few lines of words, for the terminal and for pages.

A record may have been edited or come from elsewhere: what is not as expected is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.reports import numbers


def hardware_facts(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, words) of a run's record; empty where it says nothing of its machine. The words are not yet made inert."""
    found = _part(data, "hardware")
    rows = [
        ("Machine", _machine(found)),
        ("Ran as", _ran_as(_part(found, "model"))),
        ("Fitted", _text(_part(data, "model"), "fit")),
        ("Memory", _memory(_part(found, "memory"))),
        ("Speed", _speed(found)),
        ("Latency", _latency(_part(found, "latency"))),
        ("Energy", _energy(_part(found, "energy"))),
    ]
    return [(name, words) for name, words in rows if words]


def size(count: float) -> str:
    """Bytes in the unit that suits them: "512 MiB", "23.5 GiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _machine(found: Mapping[str, Any]) -> str:
    machine = _part(found, "machine")
    parts = []
    if label := _text(found, "label"):
        parts.append(label)
    if cpu := _text(machine, "cpu"):
        parts.append(cpu)
    if cores := _number(machine, "cores"):
        parts.append(f"{cores:g} core{'' if cores == 1 else 's'}")
    if memory := _number(machine, "memory_bytes"):
        limit = _number(machine, "memory_limit_bytes")
        parts.append(f"{size(memory)}{f' (limited to {size(limit)})' if limit else ''}")
    gpus = machine.get("gpus")
    for gpu in gpus if isinstance(gpus, list) else ():
        if isinstance(gpu, Mapping) and (name := _text(gpu, "name")):
            memory = _number(gpu, "memory_bytes")
            parts.append(f"{name}{f' {size(memory)}' if memory else ''}")
    return ", ".join(parts)


def _ran_as(model: Mapping[str, Any]) -> str:
    if not model:
        return ""
    if model.get("local") is not True:
        return "a remote model"
    return ", ".join(words for key in ("device", "dtype", "quantisation") if (words := _text(model, key)))


def _memory(memory: Mapping[str, Any]) -> str:
    parts = []
    if peak := _number(memory, "peak_rss_bytes"):
        parts.append(f"{size(peak)} at the peak")
    if gpu := _number(memory, "gpu_peak_bytes"):
        parts.append(f"{size(gpu)} of GPU memory")
    return ", ".join(parts)


def _speed(found: Mapping[str, Any]) -> str:
    throughput = _part(found, "throughput")
    names = (("answers", "answers"), ("input_tokens", "tokens in"), ("output_tokens", "tokens out"))
    parts = [
        f"{numbers.rate(rate)} {words}"
        for key, words in names
        if (rate := _number(throughput, f"{key}_per_second"))
    ]
    if not throughput and found and (rate := _number(found, "samples_per_second")):
        parts.append(f"{numbers.rate(rate)} samples, all from the store")
    if load := _number(found, "load_seconds"):
        parts.append(f"loaded in {numbers.duration(load)}")
    return ", ".join(parts)


def _latency(latency: Mapping[str, Any]) -> str:
    shown = [
        f"{name} {numbers.duration(value)}"
        for name in ("p50", "p90", "p99")
        if (value := _number(latency, name)) is not None
    ]
    n = _number(latency, "n")
    return f"{', '.join(shown)} of {numbers.counted(int(n), 'answer')}" if shown and n else ""


def _energy(energy: Mapping[str, Any]) -> str:
    parts = [
        f"{value:,.0f} J {words}"
        for key, words in (("cpu_joules", "of the processors"), ("gpu_joules", "of the cards"))
        if (value := _number(energy, key)) is not None
    ]
    return ", ".join([*parts, "of the whole machine while it ran"]) if parts else _text(energy, "method")


def _part(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _text(data: Mapping[str, Any], key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


def _number(data: Mapping[str, Any], key: str) -> float | None:
    found = data.get(key)
    usable = isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found < 1e18
    return float(found) if usable and found is not None else None
