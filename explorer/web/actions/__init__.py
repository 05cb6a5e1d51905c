"""Actions on the page's state, and text generation."""
