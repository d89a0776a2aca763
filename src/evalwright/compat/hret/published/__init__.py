"""HRET's own behaviour and arithmetic, faults included (`scoring="published"`)."""
