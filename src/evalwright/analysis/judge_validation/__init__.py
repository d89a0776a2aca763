"""A judge's verdicts corrected by people: draw what to label, read the labels back, say what the judge is worth.

`verdicts` reads a run's verdicts as arrays, `drawing` draws labelling sets and keeps them beside the run, `sheets` and
`labels` write and read the table that people fill in, `calibration` corrects one run, `difference` two, `probes` look for
the judge's faults, and `conclusions` says it in words. Every number comes from `statistics`.
"""
