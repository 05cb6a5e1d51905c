"""State of a request: the run, the selection, settings, continuations and interventions; no results."""
