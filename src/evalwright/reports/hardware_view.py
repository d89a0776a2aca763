"""The hardware of a run in words, for the terminal and for pages.

A record may have been edited or come from elsewhere, so whatever is malformed is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.reports import numbers


def hardware_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List (name, text) pairs on the machine of a run's record; empty where it has none.

    The texts are not made inert yet.
    """
    hardware = _section(record, "hardware")
    rows = {
        "Machine": _machine(hardware),
        "Ran on": _model_setup(_section(hardware, "model")),
        "Fitted": [_text(_section(record, "model"), "fit")],
        "Memory": [
            f"{size(count)} {words}"
            for key, words in (
                ("peak_rss_bytes", "at peak"),
                ("gpu_peak_bytes", "of GPU memory"),
            )
            if (count := _number(_section(hardware, "memory"), key))
        ],
        "Speed": _speed(hardware),
        "Latency": _latency(_section(hardware, "latency")),
        "Energy": _energy(_section(hardware, "energy")),
    }
    facts = {
        name: ", ".join(word for word in words if word) for name, words in rows.items()
    }
    return [(name, words) for name, words in facts.items() if words]


def size(count: float) -> str:
    """Format bytes in a suitable unit: "512 MiB", "23.5 GiB"."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"


def _machine(hardware: Mapping[str, Any]) -> Iterator[str]:
    machine = _section(hardware, "machine")
    yield _text(hardware, "label")
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


def _model_setup(model: Mapping[str, Any]) -> list[str]:
    if model and model.get("local") is not True:
        return ["a remote model"]
    return [_text(model, key) for key in ("device", "dtype", "quantisation")]


def _speed(hardware: Mapping[str, Any]) -> Iterator[str]:
    throughput = _section(hardware, "throughput")
    sample_rate = _number(hardware, "samples_per_second")
    if sample_rate:
        yield _rate(sample_rate, "samples")
    rates = [
        _rate(rate, words)
        for key, words in (
            ("answers", "requests"),
            ("input_tokens", "input tokens"),
            ("output_tokens", "output tokens"),
        )
        if (rate := _number(throughput, f"{key}_per_second"))
    ]
    if rates:
        # Not of the whole run, as that of the samples is.
        yield f"while the model worked {rates[0]}"
        yield from rates[1:]
    elif sample_rate:
        yield "no new answers"
    if load := _number(hardware, "load_seconds"):
        yield f"loaded in {numbers.duration(load)}"


def _rate(per_second: float, noun: str) -> str:
    """Format a rate of something: "344 requests/s"."""
    number, _, unit = numbers.rate(per_second).partition("/")
    return f"{number} {noun}/{unit}"


def _latency(latency: Mapping[str, Any]) -> list[str]:
    percentiles = {name: _number(latency, name) for name in ("p50", "p90", "p99")}
    texts = [
        f"{name} {numbers.duration(seconds)}"
        for name, seconds in percentiles.items()
        if seconds is not None
    ]
    n = _number(latency, "n")
    return (
        [f"{', '.join(texts)} over {numbers.counted(int(n), 'request')}"]
        if texts and n
        else []
    )


def _energy(energy: Mapping[str, Any]) -> list[str]:
    sides = (("cpu_joules", "by the processors"), ("gpu_joules", "by the GPUs"))
    measured = [(_number(energy, key), words) for key, words in sides]
    texts = [
        f"{joules:,.0f} J {words}" for joules, words in measured if joules is not None
    ]
    return (
        [*texts, "measured for the whole machine during the run"]
        if texts
        else [_text(energy, "method")]
    )


def _section(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    section = record.get(key)
    return section if isinstance(section, Mapping) else {}


def _text(section: Mapping[str, Any], key: str) -> str:
    text = section.get(key)
    return text if isinstance(text, str) else ""


def _number(section: Mapping[str, Any], key: str) -> float | None:
    number = section.get(key)
    usable = (
        isinstance(number, (int, float))
        and not isinstance(number, bool)
        and 0 <= number < 1e18
    )
    return float(number) if usable and number is not None else None
