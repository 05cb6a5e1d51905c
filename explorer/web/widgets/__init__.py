"""The widgets that Gradio lacks; each is a `.py` with its `.js` and `.css`."""
