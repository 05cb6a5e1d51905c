"""Lessons as files, and their questions (the format: explorer/lessons/README.md)."""
