"""SEA-HELM's own arithmetic, faults included: a class for each family of metric classes, all with
the interface of `scoring.PublishedScoring`.
"""
