"""Lessons as files, and their questions (the format: docs/teaching.md)."""
