"""The widgets that Gradio lacks; a folder each: Python, script and style."""
