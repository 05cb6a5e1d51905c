"""Lessons: files that a page goes through, and the questions in them (the format: explorer/lessons/README.md)."""
