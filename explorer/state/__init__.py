"""What is asked: the run, what of it is looked at, settings, continuations, interventions; no answer lives here."""
