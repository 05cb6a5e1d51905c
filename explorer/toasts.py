"""Telling the visitor what was wrong."""

import html

import gradio as gr


def warn(error: ValueError):
    """Show an error's sentence as text; Gradio would read it as HTML."""
    gr.Warning(html.escape(str(error)))
