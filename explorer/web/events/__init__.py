"""Handlers of Gradio's events."""
