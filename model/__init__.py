"""A decoder-only transformer, its tokenizer, its checkpoints and its training."""

from model.checkpoint import CheckpointError, list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig
from model.generation import GenerationStep, generate
from model.layers.attention import KVCache
from model.tokenizer import Tokenizer
from model.transformer_lm import TransformerLM

__all__ = [
    "CheckpointError",
    "GenerationStep",
    "KVCache",
    "ModelConfig",
    "Tokenizer",
    "TransformerLM",
    "generate",
    "list_checkpoints",
    "load_checkpoint",
    "save_checkpoint",
]
