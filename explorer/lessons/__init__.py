"""What to try and what to look for: examples, and advice on a prompt."""
