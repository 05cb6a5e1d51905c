"""The language model, and the initialisation of its weights.

Shapes, here and in every layer:
    B batch, T positions, C context length, D = d_model, L blocks, H heads, d = D / H head width,
    F neurons of the feed-forward (in RoPE: pairs of dimensions, d / 2), V vocabulary.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from model.config import ModelConfig
from model.errors import LoadingNote, ModelError, NonFiniteLogitsError
from model.layers.attention import KVCache, softcap
from model.layers.basic_layers import NORMS, Dropout, Embedding, Linear, Tap
from model.layers.positions import RotaryPositionalEmbedding, SinusoidalPositionalEmbedding
from model.layers.transformer_block import BLOCKS

if TYPE_CHECKING:
    from model.weight_placement import OffloadedWeights


class TransformerLM(nn.Module):
    """Decoder-only transformer: token ids to next-token logits at every position."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.offloaded: OffloadedWeights | None = None  # of a model whose weights are on several devices
        self.notes: tuple[LoadingNote, ...] = ()  # on how its files were read
        self.token_embedding = Embedding(config.vocab_size, config.d_model)
        self.position_embedding = self.rope = self.local_rope = None
        if config.position == "rope":
            width, rotary_dim = config.d_head, config.rotary_dim
            self.rope = RotaryPositionalEmbedding(config.rope_theta, width, config.rope_scaling, rotary_dim)
            if config.local_rope_theta is not None:
                self.local_rope = RotaryPositionalEmbedding(config.local_rope_theta, width, rotary_dim=rotary_dim)
        elif config.position == "sinusoidal":
            self.position_embedding = SinusoidalPositionalEmbedding(config.d_model)
        elif config.position == "learned":
            self.position_embedding = Embedding(config.context_length, config.d_model)
        if self.position_embedding:
            self.position_embed = Tap()
        self.embed = Tap()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(BLOCKS[config.norm_placement](config, layer) for layer in range(config.num_layers))
        # Post-norm blocks leave the stream normalised.
        post = config.norm_placement == "post"
        self.final_norm = Tap() if post else NORMS[config.norm](config.d_model, config.norm_eps)
        self.lm_head = Linear(config.d_model, config.vocab_size, config.unembedding_bias)
        self.logits = Tap()
        if config.tie_embeddings:
            self.tie_embeddings()

    def tie_embeddings(self):
        """Make the unembedding the embedding table itself (Press & Wolf 2017).

        The table starts from the unembedding's smaller initialisation: with unit-variance rows a fresh model's logits
        would have standard deviation √D.
        """
        self.token_embedding.weight = self.lm_head.weight

    def forward(
        self,
        token_ids: Tensor,
        cache: KVCache | None = None,
        *,
        token_positions: Tensor | None = None,
        padding: Tensor | None = None,
        last_only: bool = False,
    ) -> Tensor:
        """Return logits (B, T, V) for token ids (B, T); only the last position's, (B, 1, V), if `last_only`.

        Args:
            token_ids: integers in [0, V).
            cache: keys and values of earlier positions; the tokens continue them and are appended to it.
            token_positions: (B or 1, T) integers in [0, C), the position of each token; None: in order. The causal
                mask follows the order in `token_ids` in any case.
            padding: (B, K) booleans, False where one of the K = cached + T positions holds no token; None: all
                hold one.
            last_only: saves memory, and in a small model most of the time, on a long text.

        Raises:
            ValueError: no tokens, or more positions than the context length.
        """
        start = cache.length if cache else 0
        end = start + token_ids.shape[-1]
        if not start < end <= self.config.context_length:
            raise ValueError(
                f"the model sees 1 to {self.config.context_length} positions, got {end - start} tokens after {start}"
            )
        if token_positions is None:
            token_positions = torch.arange(start, end, device=token_ids.device)[None]  # (1, T): the same for all
        x = self.dropout(self.embed_tokens(token_ids, token_positions))  # (B, T, D)
        rotation, local_rotation = (rope(token_positions) if rope else None for rope in (self.rope, self.local_rope))
        for layer, block in enumerate(self.blocks):
            turns = local_rotation if self.config.uses_local_rope(layer) else rotation
            x = block(x, turns, padding, cache, layer)
        if cache:
            cache.length = end
        x = self.final_norm(x)
        if last_only:
            x = x[:, -1:]
        logits = softcap(self.lm_head(x), self.config.logit_cap)
        return self.logits(logits)  # (B, T or 1, V)

    def embed_tokens(self, token_ids: Tensor, token_positions: Tensor) -> Tensor:
        """Embed (B, T) token ids at (B or 1, T) positions: the initial residual stream (B, T, D)."""
        x = self.token_embedding(token_ids)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        if self.position_embedding is not None:
            x = (x + self.position_embed(self.position_embedding(token_positions))).to(x.dtype)  # waves have float32
        return self.embed(x)

    @cached_property
    def taps(self) -> dict[str, nn.Module]:
        """Name -> module of every value that hooks can reach: the `Tap`s of a forward pass, and the norms."""
        tapped_types = (Tap, *NORMS.values())
        unused_suffixes = () if self.rope else (".q_rot", ".k_rot")
        modules = self.named_modules()
        return {
            name: module
            for name, module in modules
            if isinstance(module, tapped_types) and not name.endswith(unused_suffixes)
        }

    @property
    def device(self) -> torch.device:
        """Device of the token ids."""
        return self.offloaded.device if self.offloaded else self.token_embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the residual stream and of all matrices."""
        return self.token_embedding.weight.dtype


def check_finite(values: Tensor, dtype: torch.dtype) -> None:
    """Raise NonFiniteLogitsError unless all values are finite numbers.

    Args:
        values: logits, or the input of the unembedding.
        dtype: the type that the model computes with.
    """
    if not values.numel() or all(map(math.isfinite, values.detach().aminmax())):
        return
    name = str(dtype).removeprefix("torch.")
    if dtype == torch.float16:
        reason = ModelError(
            "the numbers of this model overflow in {dtype}, which ends at 65,504: open it in float32 (python app.py "
            "--dtype float32, or load_checkpoint(…, dtype=torch.float32))",
            dtype=name,
        )
    else:
        reason = ModelError(
            "the numbers of this run overflow in {dtype}: weaken its interventions, or check the model’s weights",
            dtype=name,
        )
    raise NonFiniteLogitsError("{why}", why=reason)


def truncated_normal(weight: torch.Tensor) -> None:
    """Draw from N(0, 2 / (d_in + d_out)) cut at 3 standard deviations, as a new `Linear` does."""
    std = math.sqrt(2 / sum(weight.shape))
    nn.init.trunc_normal_(weight, std=std, a=-3 * std, b=3 * std)


def xavier(weight: torch.Tensor) -> None:
    """Draw uniformly within ± √(6 / (d_in + d_out)) (Glorot & Bengio 2010, eq. 16)."""
    nn.init.xavier_uniform_(weight)


def kaiming(weight: torch.Tensor) -> None:
    """Draw from N(0, 2 / d_in), which preserves the scale of signals through ReLUs (He et al. 2015, eq. 10)."""
    nn.init.kaiming_normal_(weight, nonlinearity="relu")


def small_normal(weight: torch.Tensor) -> None:
    """Draw from N(0, 0.02²) (Radford et al. 2018, §4.1)."""
    nn.init.normal_(weight, std=0.02)


INITIALISATIONS = {"truncated_normal": truncated_normal, "xavier": xavier, "kaiming": kaiming, "gpt2": small_normal}


@torch.no_grad()
def initialise(lm: TransformerLM, name: str) -> TransformerLM:
    """Redraw all weights in place: the blocks' matrices by the named rule, biases 0, gains unchanged.

    The embeddings and the unembedding keep their own rules, a normal distribution of standard deviation 1 and
    `truncated_normal`, so that a fresh model's loss is near ln V whatever the rule. Only "gpt2" draws them with
    standard deviation 0.02 as well, and divides the matrices that write to the residual stream by √(2 L), since
    the stream is the sum of their outputs (Radford et al. 2019, §2.3).

    Raises:
        ValueError: there is no rule of that name.
    """
    if name not in INITIALISATIONS:
        raise ValueError(f"the initialisation must be one of {', '.join(INITIALISATIONS)}, got {name!r}")
    draw, gpt2 = INITIALISATIONS[name], name == "gpt2"
    for module_name, module in lm.named_modules():
        if isinstance(module, Embedding):
            draw(module.weight) if gpt2 else nn.init.trunc_normal_(module.weight, std=1.0, a=-3.0, b=3.0)
        elif isinstance(module, Linear):
            # The unembedding comes after the embedding, so that a tied table ends as the smaller of the two.
            draw(module.weight) if gpt2 or module is not lm.lm_head else truncated_normal(module.weight)
            if module.bias is not None:
                module.bias.zero_()
            if gpt2 and module_name.endswith(("o_proj", "down_proj")):
                module.weight /= math.sqrt(2 * lm.config.num_layers)
    return lm
