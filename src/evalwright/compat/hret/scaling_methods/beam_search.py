"""The class of the scaling method `beam_search`, where HRET's documents import it from."""

from evalwright.compat.hret.scaling_methods.base import BeamSearch

__all__ = ["BeamSearch"]
