"""Responses to the browser's requests."""
