"""The datasets of HRET by their names, and a place for a user's own: `register_dataset`, `load_datasets`, `BaseDataset`."""

from __future__ import annotations

from evalwright.compat.hret.datasets.base import (
    DATASET_REGISTRY,
    BaseDataset,
    load_datasets,
    register_dataset,
)

__all__ = ["DATASET_REGISTRY", "BaseDataset", "load_datasets", "register_dataset"]
