"""Widgets that Gradio lacks; one folder each, with Python, script and style sheet."""
