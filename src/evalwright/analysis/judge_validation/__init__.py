"""A judge's verdicts corrected by people: draw what to label, read the labels back, say what the
judge is worth.

`verdicts` reads a run's verdicts as arrays, `drawing` draws labelling sets and keeps them beside
the run, `labels` reads the table that people fill in, `calibration` corrects one run or the
difference of two, `probes` look for the judge's faults, and `panels` holds several judges against
each other. Every number comes from `statistics`.
"""
