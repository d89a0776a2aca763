"""How asking happens: the door, the durable store, batching for local models, pacing for remote
ones.

`store.Store.open(home)` opens the answers of all runs; `engine.Engine(store)` asks; its
`door({"target": model})` is the `ask` that strategies and scorers are handed.
"""
