"""The part "hardware" of `run.json`: the machine, how fast the run was, and what it consumed."""

from __future__ import annotations

import sys
from typing import Any

from evalwright.engine.speed import Speed
from evalwright.models.local.hardware.energy import EnergyMeter
from evalwright.models.local.hardware.machine import find_machine, peak_memory
from evalwright.models.model_interface import LocalModel, Model


class HardwareWatch:
    """Observes the machine while a run is going on; create it when the run begins."""

    def __init__(self) -> None:
        self._energy = EnergyMeter()
        # So that the peak reported at the end is this run's; computations on the card are not
        # affected.
        _reset_gpu_peak()

    def look(self) -> None:
        """Read a counter now and then; call this often."""
        self._energy.look()

    def record(
        self, model: Model, speed: Speed, *, label: str, samples: int, seconds: float
    ) -> dict[str, Any]:
        """Build the part of the record.

        Args:
            model: the model under test.
            speed: the measured request times.
            label: a name for the machine.
            samples: number of recorded samples, including those from the store.
            seconds: duration of the whole run.
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
    """Extract the name of the quantisation method from our settings or a checkpoint's."""
    if isinstance(value, dict):
        value = value.get("method") or value.get("quant_method")
    return _word(value)


def _torch() -> Any:
    """Return torch if something has loaded it and uses a CUDA card; else None.

    It is never imported for this.
    """
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


def _reset_gpu_peak() -> None:
    torch = _torch()
    for index in range(torch.cuda.device_count()) if torch is not None else ():
        torch.cuda.reset_peak_memory_stats(index)


def _gpu_peak() -> int | None:
    """The peak memory that torch allocated for tensors, in bytes over all cards.

    None without any.
    """
    torch = _torch()
    if torch is None:
        return None
    return sum(
        int(torch.cuda.max_memory_allocated(index))
        for index in range(torch.cuda.device_count())
    )
