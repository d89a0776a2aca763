"""A run is put together: resolved, planned, asked, scored, aggregated, recorded."""
