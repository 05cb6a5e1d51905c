"""Facts about a model's architecture."""
