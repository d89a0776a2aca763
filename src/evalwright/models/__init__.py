"""Models: whatever answers requests.

`registry.open_model("provider/name", {...})` finds a model's backend and opens it.
"""
