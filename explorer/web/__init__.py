"""The page: the only place that knows Gradio."""
