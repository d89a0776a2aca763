"""Describes the machine of a run: its hardware, memory and energy.

Nothing heavy is imported, and no run fails because something cannot be read.
"""
