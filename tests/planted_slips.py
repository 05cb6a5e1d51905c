"""Mistakes as students make them in the course's model, each written anew in plain PyTorch."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from tests.course import (
    Attention,
    Block,
    RotaryPositionalEmbedding,
    SwiGLU,
    TransformerLM,
    course_model,
    softmax,
)
from tests.mistakes import (
    added_again,
    changing,
    half_then_gain,
    halves,
    in_bfloat16,
    in_half,
    no_final_norm,
    norm,
    norms_after,
    norms_swapped,
    other_way,
    probabilities,
    rms,
    side_by_side,
    stream_overwritten,
    turned_as_a_whole,
    with_zero_rows,
)

INFINITY = float("inf")
Z, NORM, HIDDEN = "attn.z", "attn_norm", "ffn.hidden"


@dataclass(frozen=True)
class Planted:
    """A mistake: how it is made, the name that it is to be given, the first tap that it changes, and whether it is
    in every layer."""

    plant: object
    name: str
    tap: str


PLANTED = {
    "rotation of halves": Planted(
        changing(RotaryPositionalEmbedding, forward=halves), "rotation_of_halves", "blocks.0.attn.q_rot"
    ),
    "rotation the other way": Planted(
        changing(RotaryPositionalEmbedding, forward=other_way), "rotation_backwards", "blocks.0.attn.q_rot"
    ),
    "positions from 1": Planted(
        changing(Attention, positions=lambda self, x: 1 + torch.arange(x.shape[1])),
        "positions_off_by_one",
        "blocks.0.attn.q_rot",
    ),
    "positions of queries from 1": Planted(
        changing(Attention, rotated=lambda self, q, k, m: (self.rope(q, m + 1), self.rope(k, m))),
        "query_positions_off_by_one",
        "blocks.0.attn.q_rot",
    ),
    "keys not turned": Planted(
        changing(Attention, rotated=lambda self, q, k, m: (self.rope(q, m), k)),
        "queries_turned_alone",
        "blocks.0.attn.k_rot",
    ),
    "no rotation": Planted(
        changing(Attention, rotated=lambda self, q, k, m: (q, k)), "rotation_left_out", "blocks.0.attn.q_rot"
    ),
    "scale 1/d": Planted(
        changing(Attention, scaled=lambda self, s: s / self.d_k), "scale_1_over_d", "blocks.0.attn.scores"
    ),
    "no scale": Planted(changing(Attention, scaled=lambda self, s: s), "no_scale", "blocks.0.attn.scores"),
    "scale of the model": Planted(
        changing(Attention, scaled=lambda self, s: s / math.sqrt(self.num_heads * self.d_k)),
        "scale_of_model",
        "blocks.0.attn.scores",
    ),
    "mask sees the next": Planted(
        changing(Attention, mask=lambda self, t: torch.ones(t, t).triu(2) == 0),
        "mask_sees_next",
        "blocks.0.attn.pattern",
    ),
    "mask hides itself": Planted(
        changing(Attention, mask=lambda self, t: torch.ones(t, t).triu() == 0),
        "mask_hides_self",
        "blocks.0.attn.pattern",
    ),
    "mask hides itself, by a large number": Planted(
        changing(Attention, mask=lambda self, t: torch.ones(t, t).triu() == 0, weights=with_zero_rows),
        "mask_hides_self_finite",
        "blocks.0.attn.pattern",
    ),
    "no mask": Planted(
        changing(Attention, mask=lambda self, t: torch.ones(t, t).bool()), "no_mask", "blocks.0.attn.pattern"
    ),
    "mask after the softmax": Planted(
        changing(Attention, weights=lambda self, s, mask: softmax(s, dim=-1) * mask),
        "mask_after_softmax",
        "blocks.0.attn.pattern",
    ),
    "softmax over queries": Planted(
        changing(Attention, weights=lambda self, s, mask: softmax(s.masked_fill(~mask, -INFINITY), dim=-2)),
        "softmax_over_queries",
        "blocks.0.attn.pattern",
    ),
    "softmax over heads": Planted(
        changing(Attention, weights=lambda self, s, mask: softmax(s.masked_fill(~mask, -1e9), dim=1)),
        "softmax_over_heads_finite",
        "blocks.0.attn.pattern",
    ),
    "ε outside of the root": Planted(
        norm(lambda self, x: x / ((x**2).mean(-1, keepdim=True) ** 0.5 + self.eps) * self.weight),
        "epsilon_outside_root",
        "blocks.0.attn_norm",
    ),
    "no ε": Planted(
        norm(lambda self, x: x / (x**2).mean(-1, keepdim=True) ** 0.5 * self.weight), "no_epsilon", "blocks.0.attn_norm"
    ),
    "another ε": Planted(
        norm(lambda self, x: x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-8) * self.weight),
        "epsilon_1e-8",
        "blocks.0.attn_norm",
    ),
    "mean subtracted": Planted(
        norm(lambda self, x: F.layer_norm(x, x.shape[-1:], self.weight, eps=self.eps)),
        "mean_subtracted",
        "blocks.0.attn_norm",
    ),
    "gain left out": Planted(norm(lambda self, x: x / rms(self, x)), "gain_left_out", "blocks.0.attn_norm"),
    "sum in the place of the mean": Planted(
        norm(lambda self, x: x / ((x**2).sum(-1, keepdim=True) + self.eps).sqrt() * self.weight),
        "sum_for_mean",
        "blocks.0.attn_norm",
    ),
    "norm in float16": Planted(norm(in_half), "float16_norm", "blocks.0.attn_norm"),
    "norm in float16, gain in float32": Planted(norm(half_then_gain), "float16_norm", "blocks.0.attn_norm"),
    "norms after": Planted(changing(Block, forward=norms_after), "norm_after", "blocks.0.attn_norm"),
    "sublayers side by side": Planted(changing(Block, forward=side_by_side), "parallel", "blocks.0.resid_mid"),
    "stream overwritten by its norm": Planted(
        changing(Block, forward=stream_overwritten), "normed_stream_before_attention", "blocks.0.resid_mid"
    ),
    "gate and up swapped": Planted(
        changing(SwiGLU, forward=lambda self, x: self.w2(F.silu(self.w3(x)) * self.w1(x))),
        "gate_and_up_swapped",
        "blocks.0.ffn.gate",
    ),
    "GELU in the place of SiLU": Planted(
        changing(SwiGLU, forward=lambda self, x: self.w2(F.gelu(self.w1(x)) * self.w3(x))),
        "gelu_for_silu",
        "blocks.0.ffn.gate",
    ),
    "heads split by a view": Planted(
        changing(Attention, split=lambda self, x: x.reshape(x.shape[0], self.num_heads, x.shape[1], self.d_k)),
        "heads_split_only",
        "blocks.0.attn.q",
    ),
    "heads split across": Planted(
        changing(Attention, split=lambda self, x: x.unflatten(-1, (self.d_k, self.num_heads)).permute(0, 3, 1, 2)),
        "heads_interleaved_split",
        "blocks.0.attn.q",
    ),
    "heads joined by a view": Planted(
        changing(Attention, merge=lambda self, z: z.reshape(z.shape[0], z.shape[2], -1)),
        "heads_joined_wrongly",
        "blocks.0.attn.z",
    ),
    "norm in bfloat16": Planted(norm(in_bfloat16), "bfloat16_norm", "blocks.0.attn_norm"),
    "vectors of length 1": Planted(
        norm(lambda self, x: F.normalize(x, dim=-1) * self.weight), "length_of_one", "blocks.0.attn_norm"
    ),
    "divided by the deviation": Planted(
        norm(lambda self, x: x / (x.std(-1, keepdim=True) + self.eps) * self.weight),
        "deviation_for_mean_square",
        "blocks.0.attn_norm",
    ),
    "turned before heads are split": Planted(
        changing(Attention, forward=turned_as_a_whole), "rotation_before_heads", "blocks.0.attn.q_rot"
    ),
    "mask transposed": Planted(
        changing(Attention, mask=lambda self, t: torch.ones(t, t).triu().bool()),
        "mask_transposed",
        "blocks.0.attn.pattern",
    ),
    "exponentials alone": Planted(
        changing(Attention, weights=lambda self, s, mask: s.masked_fill(~mask, -INFINITY).exp()),
        "softmax_not_divided",
        "blocks.0.attn.pattern",
    ),
    "pattern transposed": Planted(
        changing(Attention, weights=lambda self, s, mask: Attention.weights(self, s, mask).transpose(-1, -2)),
        "pattern_transposed",
        "blocks.0.attn.z",
    ),
    "norms swapped": Planted(changing(Block, forward=norms_swapped), "norms_swapped", "blocks.0.attn_norm"),
    "feed-forward first": Planted(
        changing(Block, forward=lambda self, x: (y := x + self.ffn(self.ln2(x))) + self.attn(self.ln1(y))),
        "feed_forward_first",
        "blocks.0.attn_norm",
    ),
    "stream added again": Planted(changing(Block, forward=added_again), "entry_twice", "blocks.0.resid_post"),
    "feed-forward forgotten": Planted(
        changing(Block, forward=lambda self, x: (y := x + self.attn(self.ln1(x))) + 0 * self.ffn(self.ln2(y))),
        "feed_forward_not_added",
        "blocks.0.resid_post",
    ),
    "gate taken twice": Planted(
        changing(SwiGLU, forward=lambda self, x: self.w2(F.silu(self.w1(x)) * self.w1(x))),
        "gate_for_up",
        "blocks.0.ffn.hidden",
    ),
    "attention counted for a half": Planted(
        changing(Block, forward=lambda self, x: (lambda y: y + self.ffn(self.ln2(y)))(x + self.attn(self.ln1(x)) / 2)),
        "another_sum",
        "blocks.0.resid_mid",
    ),
    "no final norm": Planted(changing(TransformerLM, forward=no_final_norm), "final_norm_missing", "final_norm"),
    "softmax of the logits": Planted(changing(TransformerLM, forward=probabilities), "logits_softmaxed", "logits"),
}
UNEXPLAINED = {  # what no slip is: where it is seen
    "temperature of 0.9": (
        changing(Attention, scaled=lambda self, s: 0.9 * s / math.sqrt(self.d_k)),
        "blocks.0.attn.z",
    ),
    "tanh in the feed-forward": (
        changing(SwiGLU, forward=lambda self, x: self.w2(torch.tanh(self.w1(x)) * self.w3(x))),
        "blocks.0.ffn.hidden",
    ),
    "norm of absolute values": (
        norm(lambda self, x: x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight),
        "blocks.0.attn_norm",
    ),
    "logits capped": (
        changing(TransformerLM, forward=lambda self, ids: 2 * torch.tanh(TransformerLM.forward(self, ids) / 2)),
        "logits",
    ),
}


def planted(name):
    return PLANTED[name].plant(course_model())
