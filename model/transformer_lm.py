"""The language model.

Shapes, here and in every layer:
    B batch, T positions, C context length, D = d_model, L blocks, H heads, d = D / H head width,
    F neurons of the feed-forward (in RoPE: pairs of dimensions, d / 2), V vocabulary.
"""

from functools import cached_property

import torch
from torch import Tensor, nn

from model.config import ModelConfig
from model.kv_cache import KVCache
from model.layers.dropout import Dropout
from model.layers.embedding import Embedding
from model.layers.linear import Linear
from model.layers.rope import RotaryPositionalEmbedding
from model.layers.transformer_block import NORMS, TransformerBlock
from model.tap import Tap


class TransformerLM(nn.Module):
    """Decoder-only transformer: token ids -> a score for every possible next token, at every position."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.token_embedding = Embedding(config.vocab_size, config.d_model)
        self.embed = Tap()
        self.dropout = Dropout(config.dropout)
        self.rope = (
            RotaryPositionalEmbedding(config.rope_theta, config.d_head, config.context_length)
            if config.position == "rope"
            else None
        )
        self.blocks = nn.ModuleList(TransformerBlock(config) for _ in range(config.num_layers))
        self.final_norm = NORMS[config.norm](config.d_model, config.norm_eps)
        self.lm_head = Linear(config.d_model, config.vocab_size)
        self.logits = Tap()
        if config.tie_embeddings:
            self.tie_embeddings()

    def tie_embeddings(self):
        """Make the unembedding the embedding table itself (Press & Wolf 2017).

        The table starts from the unembedding's smaller initialisation: with unit-variance rows a fresh model's logits
        would have standard deviation √D.
        """
        self.token_embedding.weight = self.lm_head.weight

    def forward(self, token_ids: Tensor, cache: KVCache | None = None) -> Tensor:
        """(B, T) token ids -> (B, T, V) logits.

        Args:
            token_ids: integers in [0, V).
            cache: what the earlier positions left; the tokens continue them, and it is extended by these.

        Raises:
            ValueError: no tokens, or more positions than the context length.
        """
        start = cache.length if cache else 0
        end = start + token_ids.shape[-1]
        if not start < end <= self.config.context_length:
            raise ValueError(
                f"the model sees 1 to {self.config.context_length} positions, got {end - start} tokens after {start}"
            )
        x = self.dropout(self.embed(self.token_embedding(token_ids)))  # (B, T, D)
        positions = torch.arange(start, end, device=x.device)[None]  # (1, T): the same for every sequence
        rotation = self.rope(positions) if self.rope else None
        for layer, block in enumerate(self.blocks):
            x = block(x, rotation, cache, layer)
        if cache:
            cache.length = end
        return self.logits(self.lm_head(self.final_norm(x)))  # (B, T, V)

    @cached_property
    def taps(self) -> dict[str, nn.Module]:
        """Name -> the module whose output that value is: every `Tap`, and the norms."""
        named = (Tap, *NORMS.values())
        return {name: module for name, module in self.named_modules() if isinstance(module, named)}

    @property
    def device(self) -> torch.device:
        return self.token_embedding.weight.device
