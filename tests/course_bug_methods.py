"""Common student bugs in the formulas of the course's model, in plain PyTorch."""

import torch

from tests.course import (
    Block,
    RMSNorm,
    RotaryPositionalEmbedding,
    TransformerLM,
    softmax,
)


def replace_methods(cls, **methods):
    """Return a function that replaces methods of all modules of a class in a model."""
    patched_class = type(cls.__name__, (cls,), methods)

    def plant(model, condition=lambda name: True):
        for name, module in model.named_modules():
            if type(module) is cls and condition(name):
                module.__class__ = patched_class
        return model

    return plant


def replace_norm(forward):
    return replace_methods(RMSNorm, forward=forward)


def rotate_halves(self, x, positions):
    cos, sin = self.cos[positions], self.sin[positions]
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def rotate_backwards(self, x, positions):
    cos, sin = self.cos[positions], self.sin[positions]
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1).flatten(-2)


def root_mean_square(self, x):
    return torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + self.eps)


def float16_norm(self, x):
    x = x.to(torch.float16)
    scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
    return (x * scale * self.weight.to(torch.float16)).to(torch.float32)


def bfloat16_norm(self, x):
    x = x.bfloat16()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight.bfloat16()).float()


def float16_norm_then_gain(self, x):
    x = x.half()
    return (x / (x.square().mean(-1, keepdim=True) + self.eps).sqrt()).float() * self.weight


def norms_after(self, x):
    y = self.ln1(x + self.attn(x))
    return self.ln2(y + self.ffn(y))


def parallel_block(self, x):
    return x + self.attn(self.ln1(x)) + self.ffn(self.ln2(x))


def stream_overwritten(self, x):
    x = self.ln1(x)
    x = x + self.attn(x)
    return x + self.ffn(self.ln2(x))


def norms_swapped(self, x):
    x = x + self.attn(self.ln2(x))
    return x + self.ffn(self.ln1(x))


def block_input_twice(self, x):
    return x + Block.forward(self, x)


def rotated_before_split(self, x):
    rope = RotaryPositionalEmbedding(10000.0, x.shape[-1], x.shape[1])
    q, k = (rope(projection(x), self.positions(x)) for projection in (self.q_proj, self.k_proj))
    q, k, v = (self.split(projected) for projected in (q, k, self.v_proj(x)))
    scores = self.scaled(q @ k.transpose(-1, -2))
    return self.output_proj(self.merge(self.weights(scores, self.mask(x.shape[1])) @ v))


def no_final_norm(self, token_ids):
    x = self.token_embeddings(token_ids)
    for layer in self.layers:
        x = layer(x)
    return self.lm_head(x)


def softmaxed_logits(self, token_ids):
    return torch.softmax(TransformerLM.forward(self, token_ids), dim=-1)


def finite_mask_softmax(self, scores, mask):
    return softmax(scores.masked_fill(~mask, -1e9), dim=-1)
