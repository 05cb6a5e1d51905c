"""What Gradio's events change."""
