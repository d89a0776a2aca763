"""The part "hardware" of `run.json`: on what a run was made, how fast it was, and what it took."""

from __future__ import annotations

import sys
from typing import Any

from evalwright.engine.speed import Speed
from evalwright.models.local.hardware.energy import EnergyMeter
from evalwright.models.local.hardware.machine import find_machine, peak_memory
from evalwright.models.model_interface import LocalModel, Model


class HardwareWatch:
    """Looks at the machine while a run goes on. Made when the run begins."""

    def __init__(self) -> None:
        self._energy = EnergyMeter()
        # So that what is said of a card at the end is this run's; it changes nothing for whoever
        # computes there.
        _reset_gpu_peak()

    def look(self) -> None:
        """Called often; reads a counter now and then."""
        self._energy.look()

    def record(
        self, model: Model, speed: Speed, *, label: str, samples: int, seconds: float
    ) -> dict[str, Any]:
        """What the record says. samples: recorded ones, those from the store too; seconds: of the
        whole run.
        """
        local = isinstance(model, LocalModel)
        description = model.describe()
        throughput = speed.throughput()
        return {
            **({"label": label} if label else {}),
            "machine": find_machine().as_dict(),
            "model": {
                "local": local,
                "device": _word(description.get("device"))
                or ("cpu" if local else None),
                "dtype": _word(description.get("dtype")),
                "quantisation": _quantisation(description.get("quantisation")),
            },
            "load_seconds": (
                None if speed.load_seconds is None else round(speed.load_seconds, 3)
            ),
            "memory": {"peak_rss_bytes": peak_memory(), "gpu_peak_bytes": _gpu_peak()},
            "samples_per_second": (
                float(f"{samples / seconds:.4g}") if seconds > 0 else None
            ),
            "throughput": throughput,
            "latency": speed.latency(),
            "energy": self._energy.as_dict(),
        }


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _quantisation(value: Any) -> str | None:
    """The method's name, of settings of ours or those that a checkpoint declares."""
    if isinstance(value, dict):
        value = value.get("method") or value.get("quant_method")
    return _word(value)


def _torch() -> Any:
    """torch, where something has loaded it and uses a CUDA card; else None.

    It is never loaded for this.
    """
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


def _reset_gpu_peak() -> None:
    torch = _torch()
    for index in range(torch.cuda.device_count()) if torch is not None else ():
        torch.cuda.reset_peak_memory_stats(index)


def _gpu_peak() -> int | None:
    """The most bytes that torch held for tensors, over all cards; None where it used none."""
    torch = _torch()
    if torch is None:
        return None
    return sum(
        int(torch.cuda.max_memory_allocated(index))
        for index in range(torch.cuda.device_count())
    )
