"""Models: what answers requests.

`registry.open_model("provider/name", {...})` finds and makes them.
"""
