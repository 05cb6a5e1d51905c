"""Modules whose heads are modules of their own, as students write them after "Let's build GPT"."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from explorer.diagnosis.diagnose import diagnose
from explorer.diagnosis.load_module import load_module
from explorer.diagnosis.match_weights import infer_sizes, match_weights
from explorer.diagnosis.run_module import from_module
from explorer.errors import UserError

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
V, C, D, H, L = 65, 32, 24, 3, 2
LECTURE = {"key": "key", "query": "query", "value": "value", "heads": "heads", "proj": "proj", "sa": "sa"}
OTHER = {"key": "k", "query": "q", "value": "v", "heads": "parts", "proj": "mix", "sa": "look"}


class RowVectorLinear(nn.Module):
    """A map stored as (in, out)."""

    def __init__(self, inputs, outputs, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)

    def forward(self, x):
        return x @ self.weight


class Head(nn.Module):
    def __init__(self, names, linear, bias, width=D // H, scale=None, mask=True):
        super().__init__()
        self.names, self.scale, self.mask = names, scale or width**-0.5, mask
        for name in ("key", "query", "value"):
            setattr(self, names[name], linear(D, width, bias=bias))

    def forward(self, x):
        key, query, value = (getattr(self, self.names[name])(x) for name in ("key", "query", "value"))
        scores = query @ key.transpose(-2, -1) * self.scale
        if self.mask:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, float("-inf"))
        return F.softmax(scores, dim=-1) @ value


class HeadList(nn.Module):
    """`heads.0.query`."""

    def __init__(self, names, linear, bias, order=range(H), **options):
        super().__init__()
        self.names, self.order = names, order
        setattr(self, names["heads"], nn.ModuleList(Head(names, linear, bias, **options) for _ in range(H)))
        setattr(self, names["proj"], linear(D, D))

    def forward(self, x):
        heads = getattr(self, self.names["heads"])
        return getattr(self, self.names["proj"])(torch.cat([heads[i](x) for i in self.order], dim=-1))


class ProjectionLists(nn.Module):
    """`query.0`."""

    def __init__(self, names, linear, bias):
        super().__init__()
        self.query, self.key, self.value = (
            nn.ModuleList(linear(D, D // H, bias=bias) for _ in range(H)) for _ in "qkv"
        )
        self.proj = linear(D, D)

    def forward(self, x):
        q, k, v = (torch.stack([m(x) for m in maps], 1) for maps in (self.query, self.key, self.value))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, names, linear, attention):
        super().__init__()
        self.names, self.ffwd = names, nn.Module()
        setattr(self, names["sa"], attention)
        self.ffwd.net = nn.Sequential(linear(D, 4 * D), nn.ReLU(), linear(4 * D, D), nn.Dropout(0.2))
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x):
        x = x + getattr(self, self.names["sa"])(self.ln1(x))
        return x + self.ffwd.net(self.ln2(x))


class LectureGPT(nn.Module):
    """Model without an attribute for the number of heads."""

    def __init__(self, names=LECTURE, attention=HeadList, linear=nn.Linear, bias=False, **options):
        super().__init__()
        torch.manual_seed(0)
        self.token_embedding_table, self.position_embedding_table = nn.Embedding(V, D), nn.Embedding(C, D)
        self.blocks = nn.Sequential(
            *(Block(names, linear, attention(names, linear, bias, **options)) for _ in range(L))
        )
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, idx, targets=None):
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x))), None


MODELS = {
    "as in the lecture": LectureGPT,
    "with other names": partial(LectureGPT, OTHER),
    "with biases": partial(LectureGPT, bias=True),
    "three lists": partial(LectureGPT, attention=ProjectionLists),
    "(in, out)": partial(LectureGPT, linear=RowVectorLinear),
}


@pytest.mark.parametrize("kind", MODELS)
def test_separate_heads_are_joined_without_table(kind):
    module = MODELS[kind]()
    lm = from_module(module, example_ids=IDS)
    with torch.no_grad():
        torch.testing.assert_close(lm(torch.tensor([IDS])), module.eval()(torch.tensor([IDS]))[0], rtol=0, atol=1e-4)
    assert (lm.config.num_heads, lm.config.bias, lm.config.has_qkv_bias) == (
        H,
        kind != "(in, out)",
        kind == "with biases",
    )
    report = diagnose(module)
    assert report.is_equal and report.cause is None and all(row.is_recorded for row in report.rows)
    assert report.spelling == ("lecture" if kind in ("as in the lecture", "with biases", "(in, out)") else "order")


def test_second_star_in_table_names_all_heads():
    module = LectureGPT(OTHER)
    with pytest.raises(UserError, match=r"blocks\.0\.look\.parts\.\*\.k\.weight"):
        module.extra = nn.Linear(5, 7)
        match_weights(module)
    del module.extra
    table = {
        "token_embedding_table": "token_embedding",
        "position_embedding_table": "position_embedding",
        **{f"blocks.*.look.parts.*.{kind}": f"blocks.*.attn.{kind}_proj" for kind in "qkv"},
        "blocks.*.look.mix": "blocks.*.attn.o_proj",
        "blocks.*.ln1": "blocks.*.attn_norm",
        "blocks.*.ln2": "blocks.*.ffn_norm",
        "blocks.*.ffwd.net.0": "blocks.*.ffn.up_proj",
        "blocks.*.ffwd.net.2": "blocks.*.ffn.down_proj",
        "ln_f": "final_norm",
        "lm_head": "lm_head",
    }
    assert match_weights(module, table).name_table == "table" and diagnose(module, names=table).is_equal


def test_head_rows_are_in_numeric_order():
    """Eleven heads: 10 comes after 9, not after 1."""
    maps = {f"blocks.0.sa.heads.{head}.query.weight": torch.full((2, 22), float(head)) for head in (10, *range(10))}
    sizes = infer_sizes(maps | {"token_embedding_table.weight": torch.zeros(V, 22)})
    assert (sizes["num_heads"], sizes["q_rows"]) == (11, 22)
    module = LectureGPT()
    query = match_weights(module).matched_modules["blocks.1.attn.q_proj"]
    expected = torch.cat([head.query.weight for head in module.blocks[1].sa.heads])
    assert torch.equal(query.weight, expected) and query.heads[2] == "blocks.1.sa.heads.2.query"


def test_other_matrices_are_not_joined():
    module = LectureGPT()
    module.blocks[0].ffwd.net = nn.Sequential(nn.Linear(D, D), nn.ReLU(), nn.Linear(D, D))
    names = match_weights(module).matched_modules
    assert names["blocks.0.ffn.up_proj"].weight is not names["blocks.0.ffn.down_proj"].weight
    assert names["blocks.0.ffn.down_proj"].module == "blocks.0.ffwd.net.2"


@pytest.mark.parametrize(
    ("options", "tap", "cause"),
    [
        ({"scale": D**-0.5}, "blocks.0.attn.scores", "scale_of_model"),
        ({"mask": False}, "blocks.0.attn.pattern", "no_mask"),
        ({"order": (0, 0, 0)}, "blocks.0.attn.z", None),
    ],
    ids=["scaled by the model's width", "no mask", "heads in wrong order"],
)
def test_bugs_in_heads_are_named(options, tap, cause):
    report = diagnose(LectureGPT(**options))
    print(report)
    assert report.first == tap and (report.cause and report.cause.name) == cause


def test_training_checkpoint_opens_without_settings(tmp_path):
    """Neither the file nor the class gives the number of heads; the weights do."""
    (tmp_path / "gpt.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Head(nn.Module):\n"
        "    def __init__(self, n, d):\n"
        "        super().__init__(); self.key, self.query, self.value = (nn.Linear(n, d, bias=False) for _ in 'kqv')\n"
        "class GPT(nn.Module):\n"
        "    def __init__(self, vocab_size, n_embd, n_head, n_layer):\n"
        "        super().__init__(); self.token_embedding_table = nn.Embedding(vocab_size, n_embd)\n"
        "        self.blocks = nn.ModuleList(nn.ModuleDict({'sa': nn.ModuleDict({'heads': nn.ModuleList(\n"
        "            Head(n_embd, n_embd // n_head) for _ in range(n_head))})}) for _ in range(n_layer))\n"
    )
    weights = {"token_embedding_table.weight": torch.randn(V, D)}
    for layer in range(L):
        for head in range(H):
            for kind in ("key", "query", "value"):
                weights[f"blocks.{layer}.sa.heads.{head}.{kind}.weight"] = torch.randn(D // H, D)
    torch.save({"model": weights, "step": 5}, tmp_path / "ckpt.pt")
    module = load_module(f"{tmp_path}/gpt.py:GPT", tmp_path / "ckpt.pt")
    assert len(module.blocks) == L and len(module.blocks[0]["sa"]["heads"]) == H
