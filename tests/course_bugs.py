"""Common student bugs in the course's model, each implemented independently in plain PyTorch."""

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
from tests.course_bug_methods import (
    bfloat16_norm,
    block_input_twice,
    finite_mask_softmax,
    float16_norm,
    float16_norm_then_gain,
    no_final_norm,
    norms_after,
    norms_swapped,
    parallel_block,
    replace_methods,
    replace_norm,
    root_mean_square,
    rotate_backwards,
    rotate_halves,
    rotated_before_split,
    softmaxed_logits,
    stream_overwritten,
)

INFINITY = float("inf")
Z, NORM, HIDDEN = "attn.z", "attn_norm", "ffn.hidden"


@dataclass(frozen=True)
class PlantedBug:
    """A bug: the function that plants it, its expected name in a diagnosis, and the first tap that it changes."""

    plant: object
    name: str
    tap: str


COURSE_BUGS = {
    "rotation of halves": PlantedBug(
        replace_methods(RotaryPositionalEmbedding, forward=rotate_halves), "rotation_of_halves", "blocks.0.attn.q_rot"
    ),
    "rotation the other way": PlantedBug(
        replace_methods(RotaryPositionalEmbedding, forward=rotate_backwards),
        "rotation_backwards",
        "blocks.0.attn.q_rot",
    ),
    "positions from 1": PlantedBug(
        replace_methods(Attention, positions=lambda self, x: 1 + torch.arange(x.shape[1])),
        "positions_off_by_one",
        "blocks.0.attn.q_rot",
    ),
    "positions of queries from 1": PlantedBug(
        replace_methods(Attention, rotated=lambda self, q, k, m: (self.rope(q, m + 1), self.rope(k, m))),
        "query_positions_off_by_one",
        "blocks.0.attn.q_rot",
    ),
    "keys not turned": PlantedBug(
        replace_methods(Attention, rotated=lambda self, q, k, m: (self.rope(q, m), k)),
        "queries_turned_alone",
        "blocks.0.attn.k_rot",
    ),
    "no rotation": PlantedBug(
        replace_methods(Attention, rotated=lambda self, q, k, m: (q, k)), "rotation_left_out", "blocks.0.attn.q_rot"
    ),
    "scale 1/d": PlantedBug(
        replace_methods(Attention, scaled=lambda self, s: s / self.d_k), "scale_1_over_d", "blocks.0.attn.scores"
    ),
    "no scale": PlantedBug(replace_methods(Attention, scaled=lambda self, s: s), "no_scale", "blocks.0.attn.scores"),
    "scale of the model": PlantedBug(
        replace_methods(Attention, scaled=lambda self, s: s / math.sqrt(self.num_heads * self.d_k)),
        "scale_of_model",
        "blocks.0.attn.scores",
    ),
    "mask sees the next": PlantedBug(
        replace_methods(Attention, mask=lambda self, t: torch.ones(t, t).triu(2) == 0),
        "mask_sees_next",
        "blocks.0.attn.pattern",
    ),
    "mask hides itself": PlantedBug(
        replace_methods(Attention, mask=lambda self, t: torch.ones(t, t).triu() == 0),
        "mask_hides_self",
        "blocks.0.attn.pattern",
    ),
    "mask hides itself, by a large number": PlantedBug(
        replace_methods(Attention, mask=lambda self, t: torch.ones(t, t).triu() == 0, weights=finite_mask_softmax),
        "mask_hides_self_finite",
        "blocks.0.attn.pattern",
    ),
    "no mask": PlantedBug(
        replace_methods(Attention, mask=lambda self, t: torch.ones(t, t).bool()), "no_mask", "blocks.0.attn.pattern"
    ),
    "mask after the softmax": PlantedBug(
        replace_methods(Attention, weights=lambda self, s, mask: softmax(s, dim=-1) * mask),
        "mask_after_softmax",
        "blocks.0.attn.pattern",
    ),
    "softmax over queries": PlantedBug(
        replace_methods(Attention, weights=lambda self, s, mask: softmax(s.masked_fill(~mask, -INFINITY), dim=-2)),
        "softmax_over_queries",
        "blocks.0.attn.pattern",
    ),
    "softmax over heads": PlantedBug(
        replace_methods(Attention, weights=lambda self, s, mask: softmax(s.masked_fill(~mask, -1e9), dim=1)),
        "softmax_over_heads_finite",
        "blocks.0.attn.pattern",
    ),
    "ε outside of the root": PlantedBug(
        replace_norm(lambda self, x: x / ((x**2).mean(-1, keepdim=True) ** 0.5 + self.eps) * self.weight),
        "epsilon_outside_root",
        "blocks.0.attn_norm",
    ),
    "no ε": PlantedBug(
        replace_norm(lambda self, x: x / (x**2).mean(-1, keepdim=True) ** 0.5 * self.weight),
        "no_epsilon",
        "blocks.0.attn_norm",
    ),
    "another ε": PlantedBug(
        replace_norm(lambda self, x: x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-8) * self.weight),
        "epsilon_1e-8",
        "blocks.0.attn_norm",
    ),
    "mean subtracted": PlantedBug(
        replace_norm(lambda self, x: F.layer_norm(x, x.shape[-1:], self.weight, eps=self.eps)),
        "mean_subtracted",
        "blocks.0.attn_norm",
    ),
    "gain left out": PlantedBug(
        replace_norm(lambda self, x: x / root_mean_square(self, x)), "gain_left_out", "blocks.0.attn_norm"
    ),
    "sum in the place of the mean": PlantedBug(
        replace_norm(lambda self, x: x / ((x**2).sum(-1, keepdim=True) + self.eps).sqrt() * self.weight),
        "sum_for_mean",
        "blocks.0.attn_norm",
    ),
    "norm in float16": PlantedBug(replace_norm(float16_norm), "float16_norm", "blocks.0.attn_norm"),
    "norm in float16, gain in float32": PlantedBug(
        replace_norm(float16_norm_then_gain), "float16_norm", "blocks.0.attn_norm"
    ),
    "norms after": PlantedBug(replace_methods(Block, forward=norms_after), "norm_after", "blocks.0.attn_norm"),
    "sublayers side by side": PlantedBug(
        replace_methods(Block, forward=parallel_block), "parallel", "blocks.0.resid_mid"
    ),
    "stream overwritten by its norm": PlantedBug(
        replace_methods(Block, forward=stream_overwritten), "normed_stream_before_attention", "blocks.0.resid_mid"
    ),
    "gate and up swapped": PlantedBug(
        replace_methods(SwiGLU, forward=lambda self, x: self.w2(F.silu(self.w3(x)) * self.w1(x))),
        "gate_and_up_swapped",
        "blocks.0.ffn.gate",
    ),
    "GELU in the place of SiLU": PlantedBug(
        replace_methods(SwiGLU, forward=lambda self, x: self.w2(F.gelu(self.w1(x)) * self.w3(x))),
        "gelu_for_silu",
        "blocks.0.ffn.gate",
    ),
    "heads split by a view": PlantedBug(
        replace_methods(Attention, split=lambda self, x: x.reshape(x.shape[0], self.num_heads, x.shape[1], self.d_k)),
        "heads_split_only",
        "blocks.0.attn.q",
    ),
    "heads split across": PlantedBug(
        replace_methods(
            Attention, split=lambda self, x: x.unflatten(-1, (self.d_k, self.num_heads)).permute(0, 3, 1, 2)
        ),
        "heads_interleaved_split",
        "blocks.0.attn.q",
    ),
    "heads joined by a view": PlantedBug(
        replace_methods(Attention, merge=lambda self, z: z.reshape(z.shape[0], z.shape[2], -1)),
        "heads_joined_wrongly",
        "blocks.0.attn.z",
    ),
    "norm in bfloat16": PlantedBug(replace_norm(bfloat16_norm), "bfloat16_norm", "blocks.0.attn_norm"),
    "vectors of length 1": PlantedBug(
        replace_norm(lambda self, x: F.normalize(x, dim=-1) * self.weight), "length_of_one", "blocks.0.attn_norm"
    ),
    "divided by the deviation": PlantedBug(
        replace_norm(lambda self, x: x / (x.std(-1, keepdim=True) + self.eps) * self.weight),
        "deviation_for_mean_square",
        "blocks.0.attn_norm",
    ),
    "turned before heads are split": PlantedBug(
        replace_methods(Attention, forward=rotated_before_split), "rotation_before_heads", "blocks.0.attn.q_rot"
    ),
    "mask transposed": PlantedBug(
        replace_methods(Attention, mask=lambda self, t: torch.ones(t, t).triu().bool()),
        "mask_transposed",
        "blocks.0.attn.pattern",
    ),
    "exponentials alone": PlantedBug(
        replace_methods(Attention, weights=lambda self, s, mask: s.masked_fill(~mask, -INFINITY).exp()),
        "softmax_not_divided",
        "blocks.0.attn.pattern",
    ),
    "pattern transposed": PlantedBug(
        replace_methods(Attention, weights=lambda self, s, mask: Attention.weights(self, s, mask).transpose(-1, -2)),
        "pattern_transposed",
        "blocks.0.attn.z",
    ),
    "norms swapped": PlantedBug(replace_methods(Block, forward=norms_swapped), "norms_swapped", "blocks.0.attn_norm"),
    "feed-forward first": PlantedBug(
        replace_methods(Block, forward=lambda self, x: (y := x + self.ffn(self.ln2(x))) + self.attn(self.ln1(y))),
        "feed_forward_first",
        "blocks.0.attn_norm",
    ),
    "stream added again": PlantedBug(
        replace_methods(Block, forward=block_input_twice), "entry_twice", "blocks.0.resid_post"
    ),
    "feed-forward forgotten": PlantedBug(
        replace_methods(Block, forward=lambda self, x: (y := x + self.attn(self.ln1(x))) + 0 * self.ffn(self.ln2(y))),
        "feed_forward_not_added",
        "blocks.0.resid_post",
    ),
    "gate taken twice": PlantedBug(
        replace_methods(SwiGLU, forward=lambda self, x: self.w2(F.silu(self.w1(x)) * self.w1(x))),
        "gate_for_up",
        "blocks.0.ffn.hidden",
    ),
    "attention counted for a half": PlantedBug(
        replace_methods(
            Block, forward=lambda self, x: (lambda y: y + self.ffn(self.ln2(y)))(x + self.attn(self.ln1(x)) / 2)
        ),
        "another_sum",
        "blocks.0.resid_mid",
    ),
    "no final norm": PlantedBug(
        replace_methods(TransformerLM, forward=no_final_norm), "final_norm_missing", "final_norm"
    ),
    "softmax of the logits": PlantedBug(
        replace_methods(TransformerLM, forward=softmaxed_logits), "logits_softmaxed", "logits"
    ),
}
UNEXPLAINED = {  # bugs that the diagnosis does not know -> first tap that differs
    "temperature of 0.9": (
        replace_methods(Attention, scaled=lambda self, s: 0.9 * s / math.sqrt(self.d_k)),
        "blocks.0.attn.z",
    ),
    "tanh in the feed-forward": (
        replace_methods(SwiGLU, forward=lambda self, x: self.w2(torch.tanh(self.w1(x)) * self.w3(x))),
        "blocks.0.ffn.hidden",
    ),
    "norm of absolute values": (
        replace_norm(lambda self, x: x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight),
        "blocks.0.attn_norm",
    ),
    "logits capped": (
        replace_methods(TransformerLM, forward=lambda self, ids: 2 * torch.tanh(TransformerLM.forward(self, ids) / 2)),
        "logits",
    ),
}


def make_buggy_model(name):
    return COURSE_BUGS[name].plant(course_model())
