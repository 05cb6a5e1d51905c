"""Writing on: one token after another, drawn from what the model predicts."""

from model.generation.autoregressive import GenerationStep, generate

__all__ = ["GenerationStep", "generate"]
