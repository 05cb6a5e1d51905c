"""Model in named steps, each of which can have a bug, such as omission, a flipped sign or repetition."""

import math
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from model.config import ModelConfig

SIZES = {"vocab_size": 47, "context_length": 32, "d_model": 24, "num_layers": 2, "num_heads": 4, "d_ff": 36}
LLAMA = ModelConfig.llama_style(**SIZES)
GROUPED = ModelConfig.llama_style(**SIZES, num_kv_heads=2, tie_embeddings=True, scale_embeddings=True)
GPT = ModelConfig.gpt_style(**SIZES)
LEFT_OUT, FLIPPED, TWICE = "left out", "sign flipped", "applied twice"


@dataclass(frozen=True)
class Bug:
    """A bug of one step.

    Attributes:
        step: the step's name.
        kind: what is wrong with it.
        tap: the first value that it changes, "*" for the layer.
        layer: the only layer that has it; None: all.
    """

    step: str = ""
    kind: str = ""
    tap: str = ""
    layer: int | None = None


class BuggyModule(nn.Module):
    """Module that knows which of its steps has a bug."""

    def __init__(self, bug: Bug, layer: int | None = None):
        super().__init__()
        self.bug, self.layer = bug, layer

    def has(self, step: str, *kinds: str) -> bool:
        """Return whether a step has a bug of one of the kinds (of any, if none is given) in this layer."""
        is_here = self.layer is None or self.bug.layer in (None, self.layer)
        return is_here and self.bug.step == step and (not kinds or self.bug.kind in kinds)

    def do(self, step: str, function, x, *more):
        if self.has(step, LEFT_OUT):
            return x
        if self.has(step, FLIPPED):
            return -function(x, *more)
        if self.has(step, TWICE):
            return function(function(x, *more), *more)
        return function(x, *more)

    def add(self, step: str, x, y):
        """Return the sum of the stream and an update, with the step's bug."""
        if self.has(step, "nothing added"):
            return x
        if self.has(step, LEFT_OUT):
            return y
        if self.has(step, FLIPPED):
            return x - y
        if self.has(step, TWICE):
            return x + y + y
        if self.has(step, "stream flipped"):
            return y - x
        if self.has(step, "stream twice"):
            return x + x + y
        if self.has(step, "multiplied"):
            return x * y
        return x + y


class Linear(nn.Module):
    def __init__(self, d_in: int, d_out: int, bias: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / math.sqrt(d_in))
        self.bias = nn.Parameter(torch.randn(d_out) / 3) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(BuggyModule):
    def __init__(self, name: str, config: ModelConfig, bug: Bug, layer: int | None = None):
        super().__init__(bug, layer)
        self.name, self.eps, self.has_mean = name, config.norm_eps, config.norm == "layernorm"
        self.weight = nn.Parameter(torch.rand(config.d_model) + 0.5)
        self.bias = nn.Parameter(torch.randn(config.d_model) / 3) if self.has_mean else None

    def step_name(self, part_name: str) -> str:
        return f"{self.name} {part_name}"

    def forward(self, x):
        gain, shift = self.weight, self.bias
        if self.has_mean:
            if self.has(self.step_name("mean"), FLIPPED):
                x = x + x.mean(-1, keepdim=True)
            elif not self.has(self.step_name("mean"), LEFT_OUT):
                x = x - x.mean(-1, keepdim=True)
        y = x / self.root(x)
        if self.has(self.step_name("gain"), "before the division"):
            return x * gain / self.root(x * gain) + (0 if shift is None else shift)
        if self.has(self.step_name("shift"), "before the gain"):
            return (y + shift) * gain
        y = self.do(self.step_name("gain"), lambda y: y * gain, y)
        if shift is None or self.has(self.step_name("shift"), LEFT_OUT):
            return y
        if self.has(self.step_name("shift"), FLIPPED):
            return y - shift
        return y + shift * (2 if self.has(self.step_name("shift"), TWICE) else 1)

    def root(self, x):
        eps, mean = self.eps, x.square().mean(-1, keepdim=True)
        if self.has(self.step_name("epsilon"), "outside the root"):
            return mean.sqrt() + eps
        if self.has(self.step_name("epsilon"), "outside the reciprocal root"):
            return 1 / (mean.rsqrt() + eps)
        if self.has(self.step_name("epsilon"), LEFT_OUT):
            eps = 0.0
        if self.has(self.step_name("epsilon"), TWICE):
            eps = 2 * eps
        if self.has(self.step_name("epsilon"), FLIPPED):
            eps = -eps
        if self.has(self.step_name("mean square"), LEFT_OUT):
            mean = x.square().sum(-1, keepdim=True)
        if self.has(self.step_name("division"), LEFT_OUT):
            return torch.ones_like(mean)
        if self.has(self.step_name("division"), TWICE):
            return mean + eps
        if self.has(self.step_name("division"), "multiplies"):
            return (mean + eps).rsqrt()
        root = mean + eps if self.has(self.step_name("root"), LEFT_OUT) else (mean + eps).sqrt()
        return root.sqrt() if self.has(self.step_name("root"), TWICE) else root


class Attention(BuggyModule):
    def __init__(self, config: ModelConfig, bug: Bug, layer: int):
        super().__init__(bug, layer)
        self.config, (h, g, d) = config, (config.num_heads, config.kv_heads, config.d_head)
        self.q_proj, self.o_proj = (
            Linear(config.d_model, h * d, config.bias),
            Linear(h * d, config.d_model, config.bias),
        )
        self.k_proj, self.v_proj = (Linear(config.d_model, g * d, config.bias) for _ in "kv")
        self.others: tuple[Attention, ...] = ()  # of all layers

    def map(self, name: str):
        """Return a linear map by name, with the bug if it has one."""
        if self.has(name, "of another layer"):
            return getattr(self.others[(self.layer + 1) % len(self.others)], name)
        if self.has(name) and self.bug.kind.endswith("'s weight"):
            return getattr(self, self.bug.kind.removesuffix("'s weight"))
        if self.has(name, "transposed"):
            weight_map = getattr(self, name)
            return lambda x: F.linear(x, weight_map.weight.T, weight_map.bias)
        if self.has(name, "bias left out", "bias subtracted", "bias twice"):
            weight_map, factor = (
                getattr(self, name),
                {"bias left out": 0, "bias subtracted": -1, "bias twice": 2}[self.bug.kind],
            )
            return lambda x: F.linear(x, weight_map.weight) + factor * weight_map.bias
        return getattr(self, name)

    def split(self, x, heads):
        if self.has("split", "without transposing"):
            return x.reshape(heads, len(x), -1)
        if self.has("split", "interleaved"):
            return x.unflatten(-1, (-1, heads)).permute(2, 0, 1)
        return x.unflatten(-1, (heads, -1)).transpose(0, 1)

    def rotate(self, x, sign=1, first=0, base=None):
        d = self.config.d_head
        frequencies = (base or self.config.rope_theta) ** (-torch.arange(0, d, 2) / d)
        angles = sign * torch.outer(torch.arange(x.shape[-2]) + first, frequencies)
        cos, sin = angles.cos(), angles.sin()
        a, b = x[..., 0::2], x[..., 1::2]
        if self.has("rope", "other pairs"):
            a, b = x.chunk(2, -1)
            return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    def apply_rope(self, step, x):
        for step_name in (step, "rope"):
            if self.has(step_name, LEFT_OUT):
                return x
            if self.has(step_name, FLIPPED):
                return -self.rotate(x)
            if self.has(step_name, "minus the angle"):
                return self.rotate(x, -1)
            if self.has(step_name, TWICE):
                return self.rotate(self.rotate(x))
            if self.has(step_name, "from position 1"):
                return self.rotate(x, first=1)
            if self.has(step_name, "another base"):
                return self.rotate(x, base=500000.0)
        return self.rotate(x)

    def scale(self, scores):
        if self.has("scale", "after the softmax"):
            return scores
        return self.do("scale", lambda scores: scores / math.sqrt(self.config.d_head), scores)

    def pattern(self, scores):
        length = scores.shape[-1]
        allowed = torch.ones(length, length).tril().bool()
        if self.has("mask", LEFT_OUT):
            allowed = torch.ones_like(allowed)
        if self.has("mask", FLIPPED):
            allowed = allowed.T
        if self.has("mask", "sees the next"):
            allowed = torch.ones(length, length).tril(1).bool()
        dim = -2 if self.has("softmax", "over queries") else 0 if self.has("softmax", "over heads") else -1
        soften = partial(torch.softmax, dim=dim)
        if self.has("softmax", "scores flipped"):
            scores = -scores
        if self.has("mask", "after the softmax"):
            return soften(scores) * allowed
        if self.has("softmax", LEFT_OUT, "after the sum"):
            return scores * allowed
        if self.has("softmax", TWICE):
            return soften(soften(scores.masked_fill(~allowed, -1e9)))
        if self.has("softmax", "twice, masked twice"):
            once = soften(scores.masked_fill(~allowed, -1e9))
            return soften(once.masked_fill(~allowed, -1e9))
        pattern = soften(scores.masked_fill(~allowed, -1e9))
        if self.has("scale", "after the softmax"):
            pattern = pattern / math.sqrt(self.config.d_head)
        return -pattern if self.has("softmax", FLIPPED) else pattern

    def weighted_sum(self, pattern, v):
        if self.has("sum", LEFT_OUT):
            return v
        if self.has("sum", TWICE):
            return pattern @ pattern @ v
        if self.has("sum", "transposed"):
            pattern = pattern.transpose(-1, -2)
        if self.has("softmax", "after the sum"):
            return torch.softmax(pattern @ v, -1)
        return -(pattern @ v) if self.has("sum", FLIPPED) else pattern @ v

    def forward(self, x, stream):
        x, c = x[0], self.config
        reads = {
            name: stream[0] if self.has(name, "reads the stream") else x for name in ("q_proj", "k_proj", "v_proj")
        }
        q, k, v = (self.do(name, self.map(name), reads[name]) for name in ("q_proj", "k_proj", "v_proj"))
        if self.has("projections", "q and k swapped"):
            q, k = k, q
        if self.has("projections", "k and v swapped"):
            k, v = v, k
        if self.has("rope", "before the split"):
            width = c.d_model
            angles = torch.outer(torch.arange(len(x)), c.rope_theta ** (-torch.arange(0, width, 2) / width))
            q, k = (
                torch.stack((a * s - b * t, a * t + b * s), -1).flatten(-2)
                for y in (q, k)
                for a, b, s, t in [
                    (y[..., 0::2], y[..., 1::2], *(f()[:, : y.shape[-1] // 2] for f in (angles.cos, angles.sin)))
                ]
            )
        q, k, v = self.split(q, c.num_heads), self.split(k, c.kv_heads), self.split(v, c.kv_heads)
        if self.has("rope", "on values, not keys"):
            q, v = self.rotate(q), self.rotate(v)
        elif c.position == "rope" and not self.has("rope", "before the split", "on the embeddings"):
            q, k = self.apply_rope("rope of q", q), self.apply_rope("rope of k", k)
            if self.has("rope", "on values, too"):
                v = self.rotate(v)
        if c.kv_heads < c.num_heads:
            times = c.num_heads // c.kv_heads
            k, v = (
                y.repeat(times, 1, 1) if self.has("sharing", "tiled") else y.repeat_interleave(times, 0) for y in (k, v)
            )
        pattern = self.pattern(self.scale(q @ k.transpose(-1, -2)))
        z = self.weighted_sum(pattern, v)
        if self.has("merge", "without transposing"):
            z = z.reshape(z.shape[1], -1)
        elif self.has("merge", "interleaved"):
            z = z.permute(1, 2, 0).flatten(-2)
        else:
            z = z.transpose(0, 1).flatten(-2)
        if self.has("o_proj", "after the residual"):
            z = z + stream[0]
        return self.do("o_proj", self.map("o_proj"), z)[None]


class FeedForward(BuggyModule):
    def __init__(self, config: ModelConfig, bug: Bug, layer: int):
        super().__init__(bug, layer)
        self.gated = config.is_gated
        if self.gated:
            self.gate_proj = Linear(config.d_model, config.d_ff, config.bias)
        self.up_proj = Linear(config.d_model, config.d_ff, config.bias)
        self.down_proj = Linear(config.d_ff, config.d_model, config.bias)
        self.activation = F.silu if self.gated else {"relu": F.relu, "gelu": F.gelu}.get(config.ffn, F.gelu)
        self.others: tuple[FeedForward, ...] = ()

    map = Attention.map

    def forward(self, x):
        if self.has("activation", "before the maps"):
            x = self.activation(x)
        if not self.gated:
            up = self.do("up_proj", self.map("up_proj"), x)
            if self.has("activation", "after the down map"):
                return self.activation(self.map("down_proj")(up))
            if self.has("activation", "argument flipped"):
                up = -up
            return self.do("down_proj", self.map("down_proj"), self.do("activation", self.activation, up))
        gate, up = self.do("gate_proj", self.map("gate_proj"), x), self.do("up_proj", self.map("up_proj"), x)
        if self.has("activation", "of up"):
            gate, up = up, gate
        if self.has("activation", "of the product"):
            hidden = self.activation(gate * up)
        elif self.has("activation", "after the down map"):
            return self.activation(self.map("down_proj")(gate * up))
        else:
            if self.has("activation", "argument flipped"):
                gate = -gate
            hidden = self.product(self.do("activation", self.activation, gate), up)
        return self.do("down_proj", self.map("down_proj"), hidden)

    def product(self, active, up):
        if self.has("product", LEFT_OUT):
            return active
        if self.has("product", "gate left out"):
            return up
        if self.has("product", FLIPPED):
            return -(active * up)
        if self.has("product", TWICE):
            return active * up * up
        return active + up if self.has("product", "added") else active * up


class Block(BuggyModule):
    def __init__(self, config: ModelConfig, bug: Bug, layer: int):
        super().__init__(bug, layer)
        self.attn_norm, self.ffn_norm = (Norm(name, config, bug, layer) for name in ("attn_norm", "ffn_norm"))
        self.attn, self.ffn = Attention(config, bug, layer), FeedForward(config, bug, layer)
        self.others: tuple[Block, ...] = ()

    map = Attention.map

    def apply_norm(self, name, x):
        return self.do(name, self.map(name), x)

    def attend(self, x, stream):
        if self.has("attention", TWICE):
            x = self.attn(x, stream)
        y = self.attn(x, stream)
        return -y if self.has("attention", FLIPPED) else y

    def feed(self, x):
        y = self.ffn(x)
        if self.has("feed-forward", TWICE):
            y = self.ffn(y)
        return -y if self.has("feed-forward", FLIPPED) else y

    def forward(self, x):
        if self.has("block", LEFT_OUT):
            return x
        y = self.compute(x)
        if self.has("block", TWICE):
            y = self.compute(y)
        return -y if self.has("block", FLIPPED) else y

    def compute(self, x):
        if self.has("block", "sublayers in the other order"):
            y = x + self.ffn(self.ffn_norm(x))
            return y + self.attn(self.attn_norm(y), y)
        if self.has("block", "parallel sublayers"):
            return x + self.attn(self.attn_norm(x), x) + self.ffn(self.ffn_norm(x))
        middle = self.after_attention(x)
        if self.has("feed-forward", LEFT_OUT):
            return middle
        if self.has("ffn_norm", "after the sublayer"):
            return middle + self.ffn_norm(self.ffn(middle))
        if self.has("ffn_norm", "after the addition"):
            return self.ffn_norm(middle + self.ffn(middle))
        read = self.apply_norm("ffn_norm", middle)
        if self.has("ffn residual", "of the normalised stream"):
            middle = read
        if self.has("ffn residual", "of the block's input"):
            middle = x
        if self.has("ffn residual", "before the map"):  # the last map reads the sum, as if it were the last step
            return self.ffn(read + middle)
        return self.add("ffn residual", middle, self.feed(read))

    def after_attention(self, x):
        if self.has("attention", LEFT_OUT):
            return x
        if self.has("attn_norm", "after the sublayer"):
            return x + self.attn_norm(self.attn(x, x))
        if self.has("attn_norm", "after the addition"):
            return self.attn_norm(x + self.attn(x, x))
        read = self.apply_norm("attn_norm", x)
        if self.has("o_proj", "after the residual"):
            return self.attn(read, x)
        if self.has("attn residual", "of the normalised stream"):
            return read + self.attn(read, x)
        return self.add("attn residual", x, self.attend(read, x))


class StepLM(BuggyModule):
    """Model whose only bug is `bug`."""

    def __init__(self, config: ModelConfig, bug: Bug = Bug()):
        super().__init__(bug)
        self.config = config
        self.token_embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList(Block(config, bug, layer) for layer in range(config.num_layers))
        for block in self.blocks:
            block.others = tuple(self.blocks)
            block.attn.others = tuple(other.attn for other in self.blocks)
            block.ffn.others = tuple(other.ffn for other in self.blocks)
        self.final_norm = Norm("final_norm", config, bug)
        self.lm_head = Linear(config.d_model, config.vocab_size, False)
        if config.tie_embeddings:
            self.lm_head.weight = self.token_embedding.weight
        self.register_buffer("positions", sinusoids(config.context_length, config.d_model), persistent=False)

    def embed(self, token_ids):
        c = self.config
        x = self.token_embedding(token_ids)
        if self.has("embedding", FLIPPED, TWICE):
            x = -x if self.bug.kind == FLIPPED else x + x
        if self.has("embedding", "lm_head's weight"):
            x = self.lm_head.weight[token_ids]
        if c.scale_embeddings:
            if self.has("embedding scale", "divides"):
                x = x / math.sqrt(c.d_model)
            else:
                x = self.do("embedding scale", lambda x: x * math.sqrt(c.d_model), x)
        if c.position == "sinusoidal" and not self.has("positions", "after the blocks", "in every block"):
            table = self.positions[: x.shape[1]]
            if self.has("positions", "from position 1"):
                table = self.positions[1 : x.shape[1] + 1]
            if self.has("positions", "halves in the place of pairs"):
                table = torch.cat((table[..., 0::2], table[..., 1::2]), -1)
            x = x if self.has("positions", LEFT_OUT) else self.add("positions", x, table)
        if self.has("rope", "on the embeddings"):
            x = Attention.rotate(self.blocks[0].attn, x.unflatten(-1, (c.num_heads, -1)).transpose(1, 2))
            x = x.transpose(1, 2).flatten(-2)
        return self.final_norm(x) if self.has("final_norm", "before the blocks") else x

    def forward(self, token_ids):
        x = self.embed(token_ids)
        blocks = list(self.blocks)
        if self.has("blocks", "in reverse order"):
            blocks = blocks[::-1]
        if self.has("blocks", "the first for all"):
            blocks = [blocks[0] for _ in blocks]
        for block in blocks:
            if self.has("positions", "in every block"):
                x = x + self.positions[: x.shape[1]]
            x = block(x)
        if self.has("positions", "after the blocks"):
            x = x + self.positions[: x.shape[1]]
        if self.has("final_norm", "ffn_norm's weight"):
            x = self.blocks[-1].ffn_norm(x)
        elif not self.has("final_norm", "before the blocks"):
            x = self.do("final_norm", self.final_norm, x)
        if self.has("lm_head", "token_embedding's weight"):
            return F.linear(x, self.token_embedding.weight)
        logits = self.do("lm_head", self.lm_head, x)
        return torch.softmax(logits, -1) if self.has("lm_head", "softmaxed") else logits


def sinusoids(length: int, width: int):
    angles = torch.outer(torch.arange(length), 10000.0 ** (-torch.arange(0, width, 2) / width))
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)


def catalogue(config: ModelConfig) -> list[Bug]:
    """Return every bug that a model of a config can have, in all layers."""
    rope, gated, biased = config.position == "rope", config.is_gated, config.bias
    grouped, tied, centred = config.kv_heads < config.num_heads, config.tie_embeddings, config.norm == "layernorm"
    bugs: list[Bug] = []

    def plant(step: str, tap: str, *kinds: str) -> None:
        bugs.extend(Bug(step, kind, tap) for kind in kinds)

    plant("embedding", "embed", FLIPPED, TWICE, *["lm_head's weight"] * (not tied))
    if config.scale_embeddings:
        plant("embedding scale", "embed", LEFT_OUT, FLIPPED, TWICE, "divides")
    if config.position == "sinusoidal":
        plant("positions", "embed", LEFT_OUT, FLIPPED, TWICE, "stream flipped", "stream twice", "multiplied")
        plant("positions", "embed", "from position 1", "halves in the place of pairs", "after the blocks")
        plant("positions", "blocks.1.resid_pre", "in every block")
    for norm in ("attn_norm", "ffn_norm", "final_norm"):
        tap = norm if norm == "final_norm" else f"blocks.*.{norm}"
        plant(norm, tap, LEFT_OUT, FLIPPED, TWICE)
        if norm != "final_norm":
            plant(norm, tap, "of another layer", "after the sublayer", "after the addition")
        plant(f"{norm} epsilon", tap, LEFT_OUT, FLIPPED, TWICE, "outside the root", "outside the reciprocal root")
        plant(f"{norm} mean square", tap, LEFT_OUT)
        plant(f"{norm} division", tap, LEFT_OUT, TWICE, "multiplies")
        plant(f"{norm} root", tap, LEFT_OUT, TWICE)
        plant(f"{norm} gain", tap, LEFT_OUT, FLIPPED, TWICE, "before the division")
        if centred:
            plant(f"{norm} mean", tap, LEFT_OUT, FLIPPED)
            plant(f"{norm} shift", tap, LEFT_OUT, FLIPPED, TWICE, "before the gain")
    plant("attn_norm", "blocks.*.attn_norm", "ffn_norm's weight")
    plant("ffn_norm", "blocks.*.ffn_norm", "attn_norm's weight")
    plant("final_norm", "final_norm", "ffn_norm's weight")
    plant("final_norm", "embed", "before the blocks")
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        tap, square = f"blocks.*.attn.{'out' if name == 'o_proj' else name[0]}", not grouped or name[0] in "qo"
        plant(name, tap, FLIPPED, *[LEFT_OUT, TWICE, "transposed"] * square, "of another layer")
        if biased and (rope or name != "k_proj"):  # without rotation a key's bias adds as much to all scores of a row
            plant(name, tap, "bias left out", "bias subtracted", "bias twice")
    plant("q_proj", "blocks.*.attn.q", "reads the stream", *["k_proj's weight"] * (not grouped))
    plant("k_proj", "blocks.*.attn.k", "reads the stream", "v_proj's weight", *["q_proj's weight"] * (not grouped))
    plant("v_proj", "blocks.*.attn.v", "reads the stream", "k_proj's weight", *["q_proj's weight"] * (not grouped))
    plant("o_proj", "blocks.*.attn.out", "q_proj's weight", *["v_proj's weight"] * (not grouped))
    plant("o_proj", "blocks.*.attn.z", "after the residual")
    plant("projections", "blocks.*.attn.k", "k and v swapped")
    if not grouped:
        plant("projections", "blocks.*.attn.scores", "q and k swapped")  # gives transposed scores
    plant("split", "blocks.*.attn.q", "without transposing", "interleaved")
    if rope:
        rope_kinds = LEFT_OUT, FLIPPED, "minus the angle", TWICE, "from position 1", "another base"
        plant("rope of q", "blocks.*.attn.q_rot", *rope_kinds)
        plant("rope of k", "blocks.*.attn.k_rot", *rope_kinds)
        plant("rope", "blocks.*.attn.q_rot", LEFT_OUT, "minus the angle", TWICE, "from position 1", "another base")
        plant("rope", "blocks.*.attn.q_rot", "other pairs", "before the split")
        plant("rope", "blocks.*.attn.z", "on values, too")
        plant("rope", "blocks.*.attn.k_rot", "on values, not keys")
        plant("rope", "embed", "on the embeddings")
    if grouped:
        plant("sharing", "blocks.*.attn.scores", "tiled")
    plant("scale", "blocks.*.attn.scores", LEFT_OUT, FLIPPED, TWICE)
    plant("scale", "blocks.*.attn.scores", "after the softmax")
    plant("mask", "blocks.*.attn.pattern", LEFT_OUT, FLIPPED, "sees the next", "after the softmax")
    plant("softmax", "blocks.*.attn.pattern", LEFT_OUT, FLIPPED, TWICE, "twice, masked twice")
    plant("softmax", "blocks.*.attn.scores", "scores flipped")
    plant("softmax", "blocks.*.attn.pattern", "over queries", "over heads", "after the sum")
    plant("sum", "blocks.*.attn.z", LEFT_OUT, FLIPPED, TWICE, "transposed")
    plant("merge", "blocks.*.attn.z", "without transposing", "interleaved")
    add = LEFT_OUT, FLIPPED, TWICE, "stream flipped", "stream twice", "multiplied", "of the normalised stream"
    plant("attention", "blocks.*.resid_mid", LEFT_OUT, FLIPPED, TWICE)
    plant("attn residual", "blocks.*.resid_mid", *add)
    plant("feed-forward", "blocks.*.resid_post", LEFT_OUT, FLIPPED, TWICE)
    plant("ffn residual", "blocks.*.resid_post", *add, "of the block's input")
    plant("ffn residual", "blocks.*.ffn_norm", "before the map")
    if gated:
        plant("gate_proj", "blocks.*.ffn.gate_pre", FLIPPED, "of another layer", "up_proj's weight")
        plant("up_proj", "blocks.*.ffn.hidden", "gate_proj's weight")  # the gate is multiplied by its own input
        plant("activation", "blocks.*.ffn.gate", "of up")
        plant("activation", "blocks.*.ffn.hidden", "of the product")
        plant("product", "blocks.*.ffn.hidden", LEFT_OUT, "gate left out", FLIPPED, TWICE, "added")
    plant("up_proj", "blocks.*.ffn.up", FLIPPED, "of another layer")
    plant("down_proj", "blocks.*.ffn.out", FLIPPED, "of another layer")
    if biased:
        plant("up_proj", "blocks.*.ffn.up", "bias left out", "bias subtracted", "bias twice")
        plant("down_proj", "blocks.*.ffn.out", "bias left out", "bias subtracted", "bias twice")
    twice = [TWICE] * (config.ffn != "relu")  # ReLU of ReLU is ReLU
    active = "blocks.*.ffn.gate" if gated else "blocks.*.ffn.hidden"
    plant("activation", active, LEFT_OUT, FLIPPED, *twice, "after the down map")
    plant("activation", "blocks.*.ffn.gate_pre" if gated else "blocks.*.ffn.up", "before the maps", "argument flipped")
    plant("block", "blocks.*.resid_post", LEFT_OUT, FLIPPED, TWICE)
    plant("block", "blocks.*.attn_norm", "sublayers in the other order")
    plant("block", "blocks.*.resid_mid", "parallel sublayers")
    plant("blocks", "blocks.0.resid_pre", "in reverse order")
    plant("blocks", "blocks.1.resid_pre", "the first for all")
    plant("lm_head", "logits", FLIPPED, "softmaxed", *["token_embedding's weight"] * (not tied))
    return bugs
