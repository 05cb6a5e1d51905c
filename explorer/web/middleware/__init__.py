"""Middleware of the web server: checks of requests, rate limits, and headers of responses."""
