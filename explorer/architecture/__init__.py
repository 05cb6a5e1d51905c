"""What the instrument may know of a model's build."""
