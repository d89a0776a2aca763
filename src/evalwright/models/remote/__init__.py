"""Models behind an HTTP interface."""
