"""Text generation: one token after another, drawn from the model's predictions."""

from model.generation.autoregressive import GenerationStep, generate

__all__ = ["GenerationStep", "generate"]
