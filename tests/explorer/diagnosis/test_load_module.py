"""Weight files as students' training scripts write them: loaded correctly, or refused with the reason."""

import argparse
import dataclasses
import enum
import json
import os
import pickle
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from explorer.diagnosis.load_module import load_module, load_user_module
from explorer.errors import UserError
from tests import course, nanogpt
from tests.course import TransformerLM
from tests.nanogpt import GPT, GPTConfig
from tests.subtest_loops import subtest_each

SIZES = {"vocab_size": 50, "context_length": 20, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 48}
COURSE = f"{course.__file__}:TransformerLM"
IDS = torch.tensor([[3, 1, 4, 1, 5, 9]])
CONFIGS = """
from __future__ import annotations
import argparse
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import NamedTuple, TypedDict

import torch
from pydantic import BaseModel

from course import TransformerLM as LM


def model(c, num_heads=None):
    return LM(c.vocab_size, c.context_length, c.d_model, c.num_layers, num_heads or c.num_heads, c.d_ff)


class Pydantic(BaseModel):
    vocab_size: int
    context_length: int
    d_model: int
    num_layers: int
    num_heads: int = 8
    d_ff: int


class Named(NamedTuple):
    vocab_size: int
    context_length: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int


class PlainConfig:
    vocab_size, context_length, d_model, num_layers, num_heads, d_ff = 50257, 1024, 768, 12, 12, 3072


@dataclass
class AttentionConfig:
    num_heads: int = 8


@dataclass
class Outer:
    vocab_size: int = 1
    context_length: int = 1
    d_model: int = 1
    num_layers: int = 1
    d_ff: int = 1
    attention: AttentionConfig = field(default_factory=AttentionConfig)


def pydantic(cfg: Pydantic): return model(cfg)
def optional(cfg: Pydantic | None = None): return model(cfg)
def named(config: Named): return model(config)
def plain(config: PlainConfig): return model(config)
def nested(config: Outer = Outer()): return model(config, config.attention.num_heads)
def namespace(args: argparse.Namespace): return model(args)
def simple(args: SimpleNamespace): return model(args)
def starred(cfg: dict): return LM(**cfg)
def on_device(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, device="cuda", dtype=None):
    return LM(vocab_size, context_length, d_model, num_layers, num_heads, d_ff).to(device)
def numbers(vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
    rates = [rate.item() for rate in torch.linspace(0, 1, num_layers)]  # which the device "meta" cannot say
    return LM(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)
"""

DICTIONARY = """
from course import TransformerLM as LM

BASE = {"vocab_size": 50257, "emb_dim": 768, "n_layers": 12, "n_heads": 12, "drop_rate": 0.1}

def own_keys(cfg):
    assert cfg["drop_rate"] == 0.1
    return LM(cfg["vocab_size"], cfg.get("context_length", 20), cfg["emb_dim"], cfg["n_layers"], cfg["n_heads"], 48)
"""


class Kind(enum.Enum):
    LARGE = 1


@dataclasses.dataclass
class ModelArgs:
    num_heads: int = 4


class AttributeDict(dict):
    pass


class MaliciousPickle:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


@pytest.fixture(scope="module")
def reference_model():
    torch.manual_seed(1)
    return TransformerLM(**SIZES).eval()


@pytest.fixture
def state(reference_model):
    return reference_model.state_dict()


@torch.no_grad()
def logits(module):
    return module.eval()(IDS)


def add_prefix(state, prefix):
    return {prefix + name: weight for name, weight in state.items()}


def insert_wrapper(state, wrapper):
    return {re.sub(r"^(layers\.\d+)\.", rf"\1.{wrapper}.", name): weight for name, weight in state.items()}


WEIGHT_LAYOUTS = {
    "wrapped by layer, and as a whole": lambda state: {
        "model": add_prefix(insert_wrapper(state, "_orig_mod"), "module._orig_mod.")
    },
    "checkpointed and sharded": lambda state: insert_wrapper(
        insert_wrapper(state, "_checkpoint_wrapped_module"), "_fsdp_wrapped_module"
    ),
    "Lightning": lambda state: {"state_dict": add_prefix(state, "model.net.") | {"criterion.weight": torch.ones(5)}},
    "any key": lambda state: {
        "checkpoint": {"my_network": state},
        "optimizer": {"state": {0: {"exp_avg": torch.ones(9, 9)}}},
    },
    "an average beside": lambda state: {"ema": {name: weight + 1 for name, weight in state.items()}, "network": state},
    "two in one": lambda state: (
        add_prefix({n: w + 1 for n, w in state.items()}, "ema_model.") | add_prefix(state, "online_model.")
    ),
    "numpy": lambda state: {name: weight.numpy() for name, weight in state.items()},
    "numbers of numpy and objects": lambda state: {
        "model": state,
        "loss": np.float64(1),
        "kind": {Kind.LARGE: Kind.LARGE},
    },
    "masks and tables": lambda state: (
        state | {"mask": torch.ones(9, 9).tril(), "freqs": torch.polar(torch.ones(9, 4), torch.ones(9, 4))}
    ),
}


@subtest_each("spelling", WEIGHT_LAYOUTS)
def test_weights_are_found_in_any_layout(tmp_path, reference_model, state, spelling):
    torch.save(WEIGHT_LAYOUTS[spelling](state), tmp_path / "x.pt")
    assert torch.equal(logits(load_module(COURSE, tmp_path / "x.pt", {"num_heads": 4})), logits(reference_model))


class WrappedModel(torch.nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.model = TransformerLM(**SIZES | {"num_heads": num_heads})


def test_note_names_chosen_weights(tmp_path, state):
    def load_notes(content, module_path=COURSE):
        torch.save(content, tmp_path / "x.pt")
        return load_user_module(module_path, tmp_path / "x.pt", {"num_heads": 4}).notes

    average = {name: weight + 1 for name, weight in state.items()}
    assert load_notes({"ema": average, "trained": state}) == (
        "x.pt has several sets of weights that fit: trained was taken, not ema.",
    )
    assert load_notes(add_prefix(average, "ema_model.") | add_prefix(state, "online_model.")) == (
        "x.pt has several sets of weights that fit: online_model was taken, not ema_model.",
    )
    assert load_notes({"ema": {"shadow": average}}) == (
        "The weights are a running average of those of training: ema.shadow of x.pt.",
    )
    for whole in (state, add_prefix(state, "model.")):
        assert load_notes(whole, f"{__file__}:WrappedModel") == ()


SETTINGS = {
    "model_args": {"model_args": SIZES, "config": {"num_heads": 8}},
    "nested": {"config": {"train": {"num_heads": 8, "steps": 3}, "model": SIZES}},
    "numpy": {"hparams": {"n_head": np.int64(4)}},
    "namespace": {"args": argparse.Namespace(num_heads=4, out=Path("out"))},
    "dataclass": {"config": ModelArgs()},
    "dictionary": {"cfg": AttributeDict(num_heads=4), "more": defaultdict(list, a=[1])},
    "beside the weights": {"n_heads": 4, "epoch": 3},
}


@subtest_each("said", SETTINGS)
@subtest_each("is_zip", [True, False])
def test_number_of_heads_is_read_from_file(tmp_path, reference_model, state, said, is_zip):
    torch.save({"model": state, **SETTINGS[said]}, tmp_path / "x.pt", _use_new_zipfile_serialization=is_zip)
    loaded = load_user_module(COURSE, tmp_path / "x.pt")
    assert torch.equal(logits(loaded.module), logits(reference_model))
    assert loaded.sizes == {"num_heads": 4} and any(
        note.startswith("There are 4 heads, by x.pt") for note in loaded.notes
    )


def test_class_default_does_not_set_number_of_heads(tmp_path):
    """nanoGPT's class defaults to 12 heads."""
    torch.manual_seed(0)
    args = {"block_size": 32, "vocab_size": 61, "n_layer": 2, "n_head": 4, "n_embd": 24}
    module = GPT(GPTConfig(**args))
    module_path, file = f"{nanogpt.__file__}:GPT", tmp_path / "ckpt.pt"
    torch.save(
        {"model": add_prefix(module.state_dict(), "_orig_mod."), "model_args": args, "config": {"n_head": 12}}, file
    )
    assert torch.equal(logits(load_module(module_path, file))[0], logits(module)[0])
    torch.save(module.state_dict(), file)
    with pytest.raises(UserError, match=r"It needs n_head: .* --config num_heads="):
        load_module(module_path, file)
    assert torch.equal(logits(load_module(module_path, file, {"num_heads": 4}))[0], logits(module)[0])


@subtest_each(
    "name",
    [
        "pydantic",
        "optional",
        "named",
        "plain",
        "nested",
        "namespace",
        "simple",
        "starred",
        "own_keys",
        "on_device",
        "numbers",
    ],
)
def test_config_of_any_type_is_built(tmp_path, reference_model, state, name):
    (tmp_path / "course.py").write_text(Path(course.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "configs.py").write_text(DICTIONARY if name == "own_keys" else CONFIGS, encoding="utf-8")
    module_path, file = f"{tmp_path}/configs.py:{name}", tmp_path / "x.pt"
    torch.save({"model": state, "config": SIZES, "args": {"device": "cuda:1"}}, file)
    assert torch.equal(logits(load_module(module_path, file)), logits(reference_model))
    torch.save(state, file)
    unknown = (
        "cannot be made" if name == "starred" else "neither the weights nor their file determine the number of heads"
    )
    with pytest.raises(UserError, match=unknown):
        load_module(module_path, file)
    assert torch.equal(logits(load_module(module_path, file, SIZES)), logits(reference_model))


def test_safetensors_folders_and_shards_are_loaded(tmp_path, reference_model, state):
    save_file(state, tmp_path / "model.safetensors", metadata={"config": json.dumps(SIZES)})
    assert torch.equal(logits(load_module(COURSE, tmp_path)), logits(reference_model))
    folder, names = tmp_path / "sharded", list(state)
    (folder / "parts").mkdir(parents=True)
    weight_map = {name: "parts/a.safetensors" if index % 2 else "b.safetensors" for index, name in enumerate(names)}
    for shard in set(weight_map.values()):
        save_file({name: state[name] for name in names if weight_map[name] == shard}, folder / shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps({"num_heads": 4}))
    assert torch.equal(logits(load_module(COURSE, folder)), logits(reference_model))


class Tied(TransformerLM):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.lm_head.weight = self.token_embeddings.weight


def test_tied_weights_need_one_tensor(tmp_path, reference_model, state):
    module_path, file = f"{__file__}:Tied", tmp_path / "x.pt"
    tied = state | {"lm_head.weight": state["token_embeddings.weight"]}
    for left_out in ("lm_head.weight", "token_embeddings.weight"):
        torch.save({name: weight for name, weight in tied.items() if name != left_out}, file)
        module = load_module(module_path, file, {"num_heads": 4})
        assert torch.equal(module.lm_head.weight, tied["lm_head.weight"])
    torch.save(state, file)
    with pytest.raises(UserError, match="two different ones"):
        load_module(module_path, file, {"num_heads": 4})


def test_saved_rope_table_overrides_class_default(tmp_path):
    """The model was trained with θ = 500,000; the class defaults to 10,000 and saves no table."""
    trained_model = TransformerLM(**SIZES, rope_theta=5e5)
    tables = {name: table for name, table in trained_model.named_buffers() if "rope" in name}
    torch.save(trained_model.state_dict() | tables, tmp_path / "x.pt")
    assert tables and torch.equal(
        logits(load_module(COURSE, tmp_path / "x.pt", {"num_heads": 4})), logits(trained_model)
    )


@subtest_each(
    ("made", "told"),
    [
        (
            lambda state, whole: whole,
            r"whole module, tests\.course\.TransformerLM, .*torch\.save\(model\.state_dict\(\)",
        ),
        (lambda state, whole: {"model": whole, "cfg": AttributeDict(a=1)}, "whole module"),
        (
            lambda state, whole: {"model": state, "x": MaliciousPickle(os.system, ("touch RUN",))},
            r"asks for posix\.system to be run",
        ),
        (lambda state, whole: [state], "it is a list"),
        (
            lambda state, whole: {"optimizer": torch.optim.AdamW(whole.parameters()).state_dict()},
            "it is a dict of optimizer",
        ),
        (
            lambda state, whole: state | {"layers.2.ln1.weight": torch.randn(32)},
            r"no place for: 1, such as layers\.2\.ln1",
        ),
        (lambda state, whole: state | {"lm_head.weight": torch.zeros(50, 31)}, r"lm_head\.weight is \(50, 32\) there"),
        (lambda state, whole: state | {"lm_head.weight": torch.ones(50, 32).char()}, "quantized"),
        (lambda state, whole: state | {"lm_head.weight": torch.full((50, 32), torch.nan)}, "not finite"),
    ],
)
def test_invalid_weights_are_refused(tmp_path, monkeypatch, reference_model, state, made, told):
    monkeypatch.chdir(tmp_path)
    torch.save(made(state, reference_model), "x.pt")
    with pytest.raises(UserError, match=told) as error:
        load_module(COURSE, "x.pt", SIZES)
    assert "\x1b" not in str(error.value) and not Path("RUN").exists()


def test_pickled_code_is_not_run(tmp_path, monkeypatch, reference_model, state):
    monkeypatch.chdir(tmp_path)
    torch.save(
        {"model": state, "x": MaliciousPickle(eval, ("open('RUN', 'w')",)), "y": MaliciousPickle(open, ("RUN", "w"))},
        "x.pt",
    )
    assert torch.equal(logits(load_module(COURSE, "x.pt", SIZES)), logits(reference_model)) and not Path("RUN").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b"GGUF" + bytes(99), "it is a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (pickle.dumps({"a": 1}), "torch.save did not write it"),
    ],
)
def test_foreign_file_is_named(tmp_path, content, told):
    (tmp_path / "x.pt").write_bytes(content)
    with pytest.raises(UserError, match=told):
        load_module(COURSE, tmp_path / "x.pt")


@pytest.mark.parametrize("numbers", [True, False])
def test_memory_is_limited_by_weights(tmp_path, state, numbers):
    size = 1 << 16  # 16 GB per matrix
    line = "torch.ones(1).item()" if numbers else "pass"
    (tmp_path / "huge.py").write_text(
        "import torch\nclass Huge(torch.nn.Module):\n    def __init__(self, num_heads):\n        super().__init__()\n"
        f"        {line}\n        self.maps = torch.nn.ModuleList(torch.nn.Linear({size}, {size}) for _ in range(9))\n"
    )
    torch.save(state, tmp_path / "x.pt")
    with pytest.raises(UserError, match="takes more than .* of memory" if numbers else "The weights lack"):
        load_module(f"{tmp_path}/huge.py:Huge", tmp_path / "x.pt", SIZES)
