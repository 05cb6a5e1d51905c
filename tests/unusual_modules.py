"""Correct models with unknown weight names, each with options for one or two bugs."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.course import RMSNorm, RotaryPositionalEmbedding, TransformerLM, course_model

V, C, D, L, H, M = 61, 32, 24, 2, 3, 40
ROOT = math.sqrt(D // H)


def random_parameter(*shape):
    return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[-1]))


class FusedModel(nn.Module):
    """Model with one projection for q, k and v, layers without `forward`, and PyTorch's fused attention."""

    def __init__(self, order="qkv", causal=True, gate=F.silu):
        super().__init__()
        torch.manual_seed(0)
        self.num_heads, self.order, self.causal, self.gate = H, order, causal, gate
        self.words, self.stack, self.rope = (
            nn.Embedding(V, D),
            nn.ModuleList(),
            RotaryPositionalEmbedding(1e4, D // H, C),
        )
        for _ in range(L):
            layer = nn.Module()
            layer.one, layer.all, layer.mix = RMSNorm(D), nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
            layer.two, layer.w1, layer.w3 = RMSNorm(D), nn.Linear(D, M, bias=False), nn.Linear(D, M, bias=False)
            layer.w2 = nn.Linear(M, D, bias=False)
            self.stack.append(layer)
        self.last, self.score = RMSNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x, positions = self.words(ids), torch.arange(ids.shape[1])
        for layer in self.stack:
            projections = dict(zip(self.order, layer.all(layer.one(x)).chunk(3, -1), strict=True))
            q, k, v = (projections[name].unflatten(-1, (H, -1)).transpose(1, 2) for name in "qkv")
            q, k = self.rope(q, positions), self.rope(k, positions)
            z = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            x = x + layer.mix(z.transpose(1, 2).flatten(2))
            y = layer.two(x)
            x = x + layer.w2(self.gate(layer.w1(y)) * layer.w3(y))
        return self.score(self.last(x))


FLAT = {f"w{name}.*": f"blocks.*.attn.{name}_proj" for name in "qkvo"} | {
    "table": "token_embedding",
    "w1.*": "blocks.*.ffn.gate_proj",
    "w3.*": "blocks.*.ffn.up_proj",
    "w2.*": "blocks.*.ffn.down_proj",
    "g1.*": "blocks.*.attn_norm",
    "g2.*": "blocks.*.ffn_norm",
    "g": "final_norm",
    "out": "lm_head",
}


class FlatModel(nn.Module):
    """Model without submodules: parameter lists and functions."""

    def __init__(self, eps=1e-5, divisor=ROOT, diagonal=1, gate="w1", other="w3"):
        super().__init__()
        torch.manual_seed(0)
        self.num_heads, self.said = H, (eps, divisor, diagonal, gate, other)
        self.table, self.out, self.g = random_parameter(V, D), random_parameter(V, D), nn.Parameter(torch.ones(D))
        sizes = dict.fromkeys(("wq", "wk", "wv", "wo"), (D, D)) | {"w1": (M, D), "w2": (D, M), "w3": (M, D)}
        for name, size in sizes.items():
            setattr(self, name, nn.ParameterList([random_parameter(*size) for _ in range(L)]))
        self.g1, self.g2 = (nn.ParameterList([nn.Parameter(torch.ones(D)) for _ in range(L)]) for _ in range(2))
        rope = RotaryPositionalEmbedding(1e4, D // H, C)
        self.register_buffer("cos", rope.cos)
        self.register_buffer("sin", rope.sin)

    def rotate(self, x):
        cos, sin, (a, b) = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]], x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    def forward(self, ids):
        x, (eps, divisor, diagonal, gate, other) = self.table[ids], self.said
        norm = lambda x, g: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * g  # noqa: E731
        for i in range(L):
            y = norm(x, self.g1[i])
            q, k, v = (torch.einsum("btd,ed->bte", y, getattr(self, f"w{name}")[i]) for name in "qkv")
            q, k, v = (projected.unflatten(-1, (H, -1)).transpose(1, 2) for projected in (q, k, v))
            scores = torch.einsum("bhqd,bhkd->bhqk", self.rotate(q), self.rotate(k)) / divisor
            pattern = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(diagonal).bool(), -math.inf).softmax(-1)
            x = x + torch.einsum("bhqk,bhkd->bqhd", pattern, v).flatten(-2) @ self.wo[i].T
            y = norm(x, self.g2[i])
            active = F.silu(y @ getattr(self, gate)[i].T)
            x = x + (active * (y @ getattr(self, other)[i].T)) @ self.w2[i].T
        return norm(x, self.g) @ self.out.T


class TransposedLinear(nn.Module):
    """A linear map whose weight is (in, out)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out) / math.sqrt(d_in))

    def forward(self, x):
        return x @ self.weight


def make_transposed_model():
    """Return the course's model with all linear maps' weights transposed."""
    model = course_model()
    for module in [*model.modules()]:
        for name, child in module.named_children():
            if type(child).__name__ == "Linear":
                setattr(module, name, TransposedLinear(*reversed(child.weight.shape)))
    return model


class OlderModel(nn.Module):
    """Model with LayerNorm, sinusoidal positions, ReLU and PyTorch's own attention, which has biases."""

    def __init__(self, post=False, first=0, diagonal=1, activation=torch.relu, before=False):
        super().__init__()
        torch.manual_seed(0)
        self.post, self.said = post, (first, diagonal, activation, before)
        self.embed, self.layers, self.out = nn.Embedding(V, D), nn.ModuleList(), nn.Linear(D, V, bias=False)
        angles = torch.arange(C)[:, None] * 10000.0 ** -(torch.arange(0, D, 2) / D)
        self.register_buffer("waves", torch.stack((angles.sin(), angles.cos()), -1).flatten(-2))
        for _ in range(L):
            self.layers.append(OlderBlock(post and not before, diagonal, activation))
        self.last = None if post else nn.LayerNorm(D)

    def forward(self, ids):
        first, length = self.said[0], ids.shape[1]
        x = self.embed(ids) + self.waves[first : first + length]
        for layer in self.layers:
            x = layer(x)
        return self.out(x if self.post else self.last(x))


class OlderBlock(nn.Module):
    def __init__(self, post, diagonal, activation):
        super().__init__()
        self.post, self.diagonal, self.activation = post, diagonal, activation
        self.n1, self.n2, self.attn = nn.LayerNorm(D), nn.LayerNorm(D), nn.MultiheadAttention(D, H, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(D, M), nn.Linear(M, D)

    def look(self, x):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(self.diagonal).bool()
        return self.attn(x, x, x, attn_mask=mask, need_weights=False)[0]

    def think(self, x):
        return self.fc2(self.activation(self.fc1(x)))

    def forward(self, x):
        if self.post:
            x = self.n1(x + self.look(x))
            return self.n2(x + self.think(x))
        x = x + self.look(self.n1(x))
        return x + self.think(self.n2(x))


class ModelWithoutFinalNorm(TransformerLM):
    """Course model without a final norm."""

    def __init__(self):
        super().__init__(V, C, D, L, H, M)
        del self.ln_final

    def forward(self, ids):
        x = self.token_embeddings(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


class GainlessNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)


def make_gainless_model():
    """Return the course's model with norms that have no gains."""
    model = course_model()
    for layer in model.layers:
        layer.ln1, layer.ln2 = GainlessNorm(), GainlessNorm()
    model.ln_final = GainlessNorm()
    return model
