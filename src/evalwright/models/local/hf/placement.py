"""Where the parts of one model lie: spread over several devices, in memory and on disk, by the library accelerate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import ConfigurationError, MissingExtra, closest

AUTOMATIC = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways of spreading that accelerate knows by name."""

_DEVICE = r"(cpu|disk|mps|(cuda|xpu|npu|hpu)(:\d+)?|\d+)"


@dataclass(frozen=True, slots=True)
class Placement:
    """device_map: a name of `AUTOMATIC`, or modules with their devices. max_memory: by device, bytes or a text ("20GiB")."""

    device_map: str | Mapping[str, int | str]
    max_memory: Mapping[int | str, int | str] | None = None
    offload_folder: str | None = None

    @property
    def on_cpu(self) -> bool:
        """Whether nothing lies on a GPU, as far as the map itself says."""
        return not isinstance(self.device_map, str) and set(self.device_map.values()) <= {"cpu", "disk"}

    def arguments(self) -> dict[str, Any]:
        """What `from_pretrained` is handed."""
        given = {"max_memory": self.max_memory, "offload_folder": self.offload_folder}
        own = self.device_map if isinstance(self.device_map, str) else dict(self.device_map)
        return {"device_map": own, **{name: value for name, value in given.items() if value is not None}}


def resolve_placement(device_map: Any, max_memory: Any, offload_folder: Any, device: str) -> Placement | None:
    """Check the arguments; None where the model lies on one device, by `device`.

    Raises ConfigurationError for what does not fit, MissingExtra without accelerate.
    """
    if device_map is None:
        for name, value in (("max_memory", max_memory), ("offload_folder", offload_folder)):
            if value is not None:
                raise ConfigurationError(f"{name} can only be used with device_map: add device_map=auto.")
        return None
    if device != "auto":
        raise ConfigurationError(
            f"device={device!r} and device_map cannot both be given: device_map already places every part."
        )
    if find_spec("accelerate") is None:
        raise MissingExtra("A model with device_map", "hf", "accelerate")
    if offload_folder is not None and not isinstance(offload_folder, str):
        raise ConfigurationError(f"offload_folder={offload_folder!r} must be a folder.")
    return Placement(_device_map(device_map), _memory(max_memory), offload_folder)


def input_device(model: Any) -> str:
    """The device that token ids are handed to: where the embeddings are computed."""
    embeddings = model.get_input_embeddings()
    hook = getattr(embeddings, "_hf_hook", None)
    # Weights that wait in memory or on disk lie on "meta"; the hook knows where they go to be used.
    device = getattr(hook, "execution_device", None)
    if device is None:
        return str(embeddings.weight.device)
    return f"cuda:{device}" if isinstance(device, int) else str(device)


def is_spread(model: Any) -> bool:
    """Whether parts of the model lie apart from others, so that its inner results do too."""
    return len({str(device) for device in (getattr(model, "hf_device_map", None) or {}).values()}) > 1


def _device_map(value: Any) -> str | dict[str, int | str]:
    if isinstance(value, Mapping):
        return {str(module): _device(device, f"device_map[{module!r}]") for module, device in value.items()}
    if value in AUTOMATIC:
        return str(value)
    if isinstance(value, (str, int)) and re.fullmatch(_DEVICE, str(value)):
        return {"": _device(value, "device_map")}
    near = closest(str(value), AUTOMATIC)
    raise ConfigurationError(
        f"device_map={value!r} is not known{f'; did you mean {near[0]!r}?' if near else '.'} Use "
        f"{', '.join(AUTOMATIC)}, a device, or a mapping from modules to devices."
    )


def _device(value: Any, where: str) -> int | str:
    if isinstance(value, bool) or not re.fullmatch(_DEVICE, str(value)):
        raise ConfigurationError(
            f"{where}={value!r} is not a device: use a GPU's number, 'cuda:0', 'cpu' or 'disk'."
        )
    return int(value) if str(value).isdecimal() else str(value)


def _memory(value: Any) -> dict[int | str, int | str] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"max_memory={value!r} must be a mapping from devices to memory, for example '{{0: 20GiB, cpu: 60GiB}}'."
        )
    out: dict[int | str, int | str] = {}
    for device, size in value.items():
        if isinstance(size, bool) or not re.fullmatch(r"\d+(\.\d+)? ?([KMGT]i?B)?", str(size), re.IGNORECASE):
            raise ConfigurationError(
                f"max_memory[{device!r}]={size!r} is not an amount of memory: use bytes or '20GiB'."
            )
        out[_device(device, "a key of max_memory")] = size if isinstance(size, int) else str(size)
    return out
