"""Who is asked: one small file per backend. `registry.open_model("provider/name", {...})` finds and makes them."""
