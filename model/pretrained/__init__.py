"""Models that others trained, from the files that they come in."""
