"""The web page: the only package that imports Gradio."""
