"""Widgets that Gradio lacks, in folders by subject, each with Python, script and style sheet."""
