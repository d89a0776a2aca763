"""Programs that models write: run apart from this process, where they can reach nothing, and
tested.
"""
