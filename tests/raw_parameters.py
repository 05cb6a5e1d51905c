"""Course model with raw parameters: attention holds plain tensors, and linear maps name their weight W."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.course import Embedding, RMSNorm, RotaryPositionalEmbedding

NAMES = {f"layers.*.attn.w{name}": f"blocks.*.attn.{name}_proj" for name in "qkvo"}


def multiply_and_sum(x, weight):
    """Return a matrix product without PyTorch's functions for products."""
    return (x.unsqueeze(-2) * weight).sum(-1)


class Map(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_out, d_in) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.W.T


class Attention(nn.Module):
    def __init__(self, d_model, num_heads, rope, scale, product):
        super().__init__()
        self.num_heads, self.rope, self.scale, self.product = num_heads, rope, scale, product
        for name in "qkvo":
            setattr(self, f"w{name}", nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model)))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            self.product(x, w).view(b, t, self.num_heads, -1).transpose(1, 2) for w in (self.wq, self.wk, self.wv)
        )
        q, k = self.rope(q, torch.arange(t)), self.rope(k, torch.arange(t))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        return self.product(z.transpose(1, 2).flatten(2), self.wo)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w2, self.w3 = Map(d_model, d_ff), Map(d_ff, d_model), Map(d_model, d_ff)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Layer(nn.Module):
    def __init__(self, attention, feed_forward, d_model):
        super().__init__()
        self.ln1, self.attn, self.ln2, self.ffn = RMSNorm(d_model), attention, RMSNorm(d_model), feed_forward


class TransformerLM(nn.Module):
    """Model that runs its layers itself; they have no forward of their own."""

    def __init__(self, vocab_size=61, d_model=24, num_layers=2, num_heads=3, d_ff=40, scale=None, product=F.linear):
        super().__init__()
        rope = RotaryPositionalEmbedding(10000.0, d_model // num_heads, 32)
        self.token_embeddings = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            Layer(Attention(d_model, num_heads, rope, scale, product), SwiGLU(d_model, d_ff), d_model)
            for _ in range(num_layers)
        )
        self.ln_final, self.lm_head = RMSNorm(d_model), Map(d_model, vocab_size)

    def forward(self, token_ids):
        x = self.token_embeddings(token_ids)
        for layer in self.layers:
            x = x + layer.attn(layer.ln1(x))
            x = x + layer.ffn(layer.ln2(x))
        return self.lm_head(self.ln_final(x))
