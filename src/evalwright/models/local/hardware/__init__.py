"""The machine that a run was made on, and how fast it went.

Nothing heavy is imported, and no run fails because something cannot be read.
"""
