"""Running models: capture of all values, interventions, caches and jobs."""
