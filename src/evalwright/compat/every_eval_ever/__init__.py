"""The shared schema of Every Eval Ever: runs written as its records, and its records read as runs."""
