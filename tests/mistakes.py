"""Formulas of the course's model as students get them wrong, in plain PyTorch."""

import torch

from tests.course import (
    Block,
    RMSNorm,
    RotaryPositionalEmbedding,
    TransformerLM,
    softmax,
)


def changing(of, **methods):
    """Model -> all of its parts of a class have these methods instead."""
    changed = type(of.__name__, (of,), methods)

    def plant(model, where=lambda name: True):
        for name, part in model.named_modules():
            if type(part) is of and where(name):
                part.__class__ = changed
        return model

    return plant


def norm(forward):
    return changing(RMSNorm, forward=forward)


def halves(self, x, positions):
    cos, sin = self.cos[positions], self.sin[positions]
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def other_way(self, x, positions):
    cos, sin = self.cos[positions], self.sin[positions]
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1).flatten(-2)


def rms(self, x):
    return torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + self.eps)


def in_half(self, x):
    x = x.to(torch.float16)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    return (x * scale * self.weight.to(torch.float16)).to(torch.float32)


def in_bfloat16(self, x):
    x = x.bfloat16()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight.bfloat16()).float()


def half_then_gain(self, x):
    x = x.half()
    return (x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()).float() * self.weight


def norms_after(self, x):
    y = self.ln1(x + self.attn(x))
    return self.ln2(y + self.ffn(y))


def side_by_side(self, x):
    return x + self.attn(self.ln1(x)) + self.ffn(self.ln2(x))


def stream_overwritten(self, x):
    x = self.ln1(x)
    x = x + self.attn(x)
    return x + self.ffn(self.ln2(x))


def norms_swapped(self, x):
    x = x + self.attn(self.ln2(x))
    return x + self.ffn(self.ln1(x))


def added_again(self, x):
    return x + Block.forward(self, x)


def turned_as_a_whole(self, x):
    rope = RotaryPositionalEmbedding(10000.0, x.shape[-1], x.shape[1])
    q, k = (rope(part(x), self.positions(x)) for part in (self.q_proj, self.k_proj))
    q, k, v = (self.split(each) for each in (q, k, self.v_proj(x)))
    scores = self.scaled(q @ k.transpose(-1, -2))
    return self.output_proj(self.merge(self.weights(scores, self.mask(x.shape[1])) @ v))


def no_final_norm(self, token_ids):
    x = self.token_embeddings(token_ids)
    for layer in self.layers:
        x = layer(x)
    return self.lm_head(x)


def probabilities(self, token_ids):
    return torch.softmax(TransformerLM.forward(self, token_ids), dim=-1)


def with_zero_rows(self, scores, mask):
    return softmax(scores.masked_fill(~mask, -1e9), dim=-1)
