"""HTTP: checks of requests, and headers of responses."""
