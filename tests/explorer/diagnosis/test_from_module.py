"""Models built from the weights of other modules, whatever their names."""

import pytest
import torch
from torch import nn

from explorer import capture, diagnose, from_module
from explorer.diagnosis.match_weights import match_weights
from explorer.errors import UserError
from model.config import ModelConfig
from tests.course import Attention, TransformerLM, course_model
from tests.course_bugs import COURSE_BUGS, make_buggy_model
from tests.nanogpt import gpt, llama
from tests.subtest_loops import subtest_each

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
THETA = {"rope_type": "default", "rope_theta": 500000.0}
MODELS = {
    "course": course_model,
    "course with few heads": lambda: course_model(num_heads=1),
    "nanogpt": gpt,
    "nanogpt without biases": lambda: gpt(bias=False),
    "llama": llama,
    "llama with shared keys": lambda: llama(num_key_value_heads=1),
    "llama with one table": lambda: llama(tie_word_embeddings=True),
    "llama with another θ": lambda: llama(rope_parameters=THETA),
    "llama with biases": lambda: llama(attention_bias=True, mlp_bias=True),
    "llama with biases of the attention": lambda: llama(attention_bias=True),
    "llama with biases of the feed-forward": lambda: llama(mlp_bias=True),
}


def logits(module, ids=IDS):
    with torch.no_grad():
        output = module(torch.tensor([ids]))
    output = getattr(output, "logits", output)
    return output[0] if isinstance(output, tuple) else output


@subtest_each("name", MODELS)
def test_converted_model_gives_same_logits(name):
    module = MODELS[name]()
    lm = from_module(module, example_ids=IDS)
    with torch.no_grad():
        lm_logits = lm(torch.tensor([IDS]))[:, -1]
    assert torch.allclose(lm_logits, logits(module)[:, -1], atol=1e-4)
    assert capture(lm, IDS)["blocks.1.attn.pattern"].shape[1:] == (len(IDS), len(IDS))


@subtest_each("name", MODELS)
def test_correct_module_is_equal_to_reference(name):
    report = diagnose(MODELS[name]())
    assert report.first is None and report.cause is None and report.is_equal
    assert report.logits_apart < 1e-4
    assert all(row.is_recorded and row.times <= 1 for row in report.rows)


def test_module_with_bug_is_refused():
    with pytest.raises(UserError, match="logits differ by up to"):
        from_module(make_buggy_model("no scale"), example_ids=IDS)


def test_settings_not_in_shapes_are_found_by_trial():
    class AttentionWithoutHeadCount(Attention):
        def __init__(self, d_model, count, rope):
            super().__init__(d_model, count, rope)
            del self.num_heads
            self.__dict__["split"] = lambda x: x.view(*x.shape[:2], count, -1).transpose(1, 2)

    module = COURSE_BUGS["rotation of halves"].plant(course_model(d_model=64, num_heads=4))
    for layer in module.layers:
        attention = layer.attn
        layer.attn = AttentionWithoutHeadCount(64, 4, attention.rope)
        layer.attn.load_state_dict(attention.state_dict())
    lm = from_module(module, example_ids=IDS)
    assert (lm.config.num_heads, lm.config.rope_layout) == (4, "half_split")


class UnusualNames(nn.Module):
    """Model with unusual names, defined in another order."""

    def __init__(self):
        super().__init__()
        inner = course_model()
        self.words, self.stack = inner.token_embeddings, nn.ModuleList()
        for layer in inner.layers:
            block = nn.Module()
            block.look, block.think = nn.Module(), nn.Module()
            block.n_a, block.n_b = layer.ln1, layer.ln2
            block.look.aa, block.look.bb, block.look.cc, block.look.dd = (
                layer.attn.q_proj,
                layer.attn.k_proj,
                layer.attn.v_proj,
                layer.attn.output_proj,
            )
            block.think.one, block.think.two, block.think.three = layer.ffn.w1, layer.ffn.w3, layer.ffn.w2
            self.stack.append(block)
        self.last, self.score = inner.ln_final, inner.lm_head
        self.num_heads, self.whole = inner.layers[0].attn.num_heads, [inner]

    def forward(self, token_ids):
        inner, pairs = self.whole[0], zip(self.whole[0].layers, self.stack, strict=True)
        for layer, block in pairs:
            layer.ln1, layer.ln2 = block.n_a, block.n_b
            layer.attn.q_proj, layer.attn.k_proj = block.look.aa, block.look.bb
            layer.attn.v_proj, layer.attn.output_proj = block.look.cc, block.look.dd
            layer.ffn.w1, layer.ffn.w3, layer.ffn.w2 = block.think.one, block.think.two, block.think.three
        inner.token_embeddings, inner.ln_final, inner.lm_head = self.words, self.last, self.score
        return inner(token_ids)


TABLE = {
    "words": "token_embedding",
    "stack.*.n_a": "blocks.*.attn_norm",
    "stack.*.n_b": "blocks.*.ffn_norm",
    "stack.*.look.aa": "blocks.*.attn.q_proj",
    "stack.*.look.bb": "blocks.*.attn.k_proj",
    "stack.*.look.cc": "blocks.*.attn.v_proj",
    "stack.*.look.dd": "blocks.*.attn.o_proj",
    "stack.*.think.one": "blocks.*.ffn.gate_proj",
    "stack.*.think.two": "blocks.*.ffn.up_proj",
    "stack.*.think.three": "blocks.*.ffn.down_proj",
    "last": "final_norm",
    "score": "lm_head",
}


@pytest.mark.parametrize("names", [None, TABLE])
def test_unusual_names_are_matched_by_order_or_table(names):
    module = UnusualNames()
    lm = from_module(module, names=names, example_ids=IDS)
    with torch.no_grad():
        assert torch.allclose(lm(torch.tensor([IDS])), logits(module), atol=1e-4)
    assert match_weights(module, names).name_table == ("table" if names else "order")
    assert diagnose(module, names=names).is_equal


def test_incomplete_name_table_is_refused():
    module = UnusualNames()
    module.stack[0].extra = nn.Linear(5, 7)
    with pytest.raises(UserError, match=r"stack\.0\.extra"):
        from_module(module, names=TABLE, example_ids=IDS)


class Crashes(TransformerLM):
    def forward(self, token_ids):
        raise RuntimeError("shapes do not fit\nin many lines")


class ReturnsNone(TransformerLM):
    def forward(self, token_ids):
        return None


class ReturnsHidden(TransformerLM):
    def forward(self, token_ids):
        return self.token_embeddings(token_ids)


SIZES = {"vocab_size": 61, "context_length": 32, "d_model": 24, "num_layers": 2, "num_heads": 3, "d_ff": 40}


@subtest_each(
    ("module", "told"),
    [
        (Crashes(**SIZES), r"fails on \d+ tokens: RuntimeError: shapes do not fit \(test_from_module.py, line \d+\)"),
        (ReturnsNone(**SIZES), "gives NoneType in the place of logits"),
        (ReturnsHidden(**SIZES), r"gives \(1, \d+, 24\) for \d+ tokens"),
        (nn.ReLU(), "has no weights"),
        (nn.Linear(3, 4), "^2 of the module’s 2 weights were not recognized"),
        ("no module", "got str"),
    ],
)
def test_errors_are_one_sentence(module, told):
    for call in (lambda: diagnose(module), lambda: from_module(module, example_ids=IDS)):
        with pytest.raises(UserError, match=told) as raised:
            call()
        assert "\n" not in str(raised.value)


def test_mismatched_reference_sizes_are_refused():
    other = ModelConfig.llama_style(**SIZES | {"d_ff": 48})
    with pytest.raises(UserError, match="do not fit a model with vocab_size=61.*gate_proj"):
        diagnose(course_model(), other)
    with pytest.raises(UserError, match="ids from 0 to 60"):
        diagnose(course_model(), example_ids=[61])


def test_module_stays_unchanged():
    module = course_model().train()
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    from_module(module, example_ids=IDS)
    diagnose(module)
    assert module.training and all(weight.requires_grad for weight in module.parameters())
    assert all(torch.equal(before[name], weight) for name, weight in module.state_dict().items())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
