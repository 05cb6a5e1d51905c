"""The web page: the only package that imports Gradio."""

from explorer.web import gradio_without_stubs as gradio_without_stubs  # before any module of the page imports Gradio
