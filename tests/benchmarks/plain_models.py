"""Twins of the bundled models in plain PyTorch, like nanoGPT: PyTorch's own layers, one matrix for q, k and v."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model import ModelConfig
from model.layers.positions import SinusoidalPositionalEmbedding


class Block(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        D, Fd, bias = config.d_model, config.d_ff, config.bias
        norm = nn.LayerNorm if config.norm == "layernorm" else nn.RMSNorm
        self.num_heads, self.gated = config.num_heads, config.ffn == "swiglu"
        self.attn_norm, self.ffn_norm = norm(D, eps=config.norm_eps), norm(D, eps=config.norm_eps)
        self.qkv, self.o = nn.Linear(D, 3 * D, bias=bias), nn.Linear(D, D, bias=bias)
        self.up, self.down = nn.Linear(D, (1 + self.gated) * Fd, bias=bias), nn.Linear(Fd, D, bias=bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, rotation: tuple[Tensor, Tensor] | None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(self.attn_norm(x)).view(B, T, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        if rotation:
            q, k = rotate(q, *rotation), rotate(k, *rotation)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.o(z.transpose(1, 2).reshape(B, T, D)))
        hidden = self.up(self.ffn_norm(x))
        if self.gated:
            gate, up = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * up
        else:
            hidden = F.relu(hidden)
        return x + self.dropout(self.down(hidden))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class PlainLM(nn.Module):
    """`TransformerLM(config)` for the llama and gpt styles with tied embeddings; weights are its own."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        positions, angles = None, None
        if config.position == "sinusoidal":
            positions = SinusoidalPositionalEmbedding(config.d_model)(torch.arange(config.context_length))
        else:
            frequencies = config.rope_theta ** (-torch.arange(0, config.d_head, 2) / config.d_head)
            angles = torch.outer(torch.arange(config.context_length), frequencies)
        self.register_buffer("positions", positions)
        self.register_buffer("angles", angles)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        norm = nn.LayerNorm if config.norm == "layernorm" else nn.RMSNorm
        self.norm = norm(config.d_model, eps=config.norm_eps)

    def forward(self, ids: Tensor) -> Tensor:
        T = ids.shape[1]
        x = self.embedding(ids) * self.scale
        if self.positions is not None:
            x = x + self.positions[:T]
        x = self.dropout(x)
        rotation = None if self.angles is None else (self.angles[:T].cos(), self.angles[:T].sin())
        for block in self.blocks:
            x = block(x, rotation)
        return F.linear(self.norm(x), self.embedding.weight)
