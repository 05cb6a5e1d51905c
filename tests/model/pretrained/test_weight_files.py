"""Weights under names and in files found in practice open, and logits agree with transformers."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from model.checkpoint import CheckpointError, load_checkpoint
from tests.subtest_loops import subtest_each

IDS = torch.arange(7, 26)[None]
PREFIXES = {"Llama 2": "model.", "GPT-2": "transformer.", "GPT-NeoX": "gpt_neox.", "OPT": "model.", "Gemma 3": "model."}
INDEX = "model.safetensors.index.json"


def rewrite_weights(folder: Path, change):
    """Replace the saved weights by `change(weights)`."""
    weights = {name: weight.clone() for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(change(weights), folder / "model.safetensors", metadata={"format": "pt"})


def rename_all(rename):
    return lambda weights: {rename(name): weight for name, weight in weights.items()}


def transformers_logits(folder: Path) -> torch.Tensor:
    from tests.hugging_face import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        return model(IDS).logits


def split_weights(folder: Path, files: list[str], index: str | None = INDEX):
    """Distribute the weights over files."""
    weights, weight_map = load_file(folder / "model.safetensors"), {}
    for file_index, file in enumerate(files):
        shard = dict(sorted(weights.items())[file_index :: len(files)])
        (folder / file).parent.mkdir(exist_ok=True)
        save_file(shard, folder / file)
        weight_map |= dict.fromkeys(shard, file)
    if index:
        (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize("kind", PREFIXES)
@torch.no_grad()
def test_family_prefix_of_names_is_optional(save_random_model, kind):
    model, folder = save_random_model(kind)
    expected, prefix = model(IDS).logits, PREFIXES[kind]
    bare = [name.removeprefix(prefix) for name in load_file(folder / "model.safetensors")]
    prefixed = set(bare[::2])
    for rename in (
        lambda name: name.removeprefix(prefix),
        lambda name: prefix + name.removeprefix(prefix) if name.removeprefix(prefix) in prefixed else name,
        lambda name: f"module._orig_mod.{name}",
    ):
        rewrite_weights(folder, rename_all(rename))
        assert_close(load_checkpoint(folder)[0](IDS), expected, rtol=0, atol=1e-4)


BUFFERS = {
    "Llama 2": {
        "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
        "model.rotary_emb.cos_cached": torch.ones(1, 1, 9, 8),
        "model.position_ids": torch.arange(9),
        "model.layers.0.mlp.up_proj.bias": torch.zeros(56),  # added by old converters
    },
    "GPT-2": {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 9, 9, dtype=torch.bool),
        "h.1.attn.masked_bias": torch.tensor(-1e4),
    },
    "GPT-NeoX": {"gpt_neox.layers.0.attention.bias": torch.ones(1, 1, 9, 9).byte()},
}


@pytest.mark.parametrize("kind", BUFFERS)
@torch.no_grad()
def test_derived_buffers_are_ignored(save_random_model, kind):
    model, folder = save_random_model(kind)
    rewrite_weights(folder, lambda weights: weights | BUFFERS[kind])
    lm, _tokenizer = load_checkpoint(folder)
    assert_close(lm(IDS), model(IDS).logits, rtol=0, atol=1e-4)
    assert not any("not used" in str(note) for note in lm.notes)


def test_unused_heads_and_layers_are_noted(save_random_model):
    _model, folder = save_random_model("Llama 3.1")
    rewrite_weights(
        folder, lambda weights: weights | {"score.weight": torch.ones(2, 32), "v_head.0.weight": torch.ones(1, 32)}
    )
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": 2}
    (folder / "config.json").write_text(json.dumps(config))
    lm, _tokenizer = load_checkpoint(folder)
    assert_close(lm(IDS), transformers_logits(folder), rtol=0, atol=1e-4)
    notes = " · ".join(map(str, lm.notes))
    assert "the layers from 2 on in the file are not used" in notes and "score.weight, v_head.0.weight" in notes


@pytest.mark.parametrize("kind", ["Llama 3.1", "GPT-2", "Granite, tied"])
def test_stored_unembedding_overrides_tied_config(save_random_model, kind):
    """transformers does the same; Granite's factors then go into other weights."""
    model, folder = save_random_model(kind)
    table = model.get_input_embeddings().weight.detach()
    rewrite_weights(folder, lambda weights: weights | {"lm_head.weight": table.flip(0).contiguous()})
    lm, _tokenizer = load_checkpoint(folder)
    assert not lm.config.tie_embeddings and any("another lm_head" in str(note) for note in lm.notes)
    assert_close(lm(IDS), transformers_logits(folder), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", ["Llama 3.1", "Granite, tied"])
@torch.no_grad()
def test_duplicate_or_single_tied_table_is_tied(save_random_model, kind):
    model, folder = save_random_model(kind)
    expected, table = model(IDS).logits, model.get_input_embeddings().weight.detach()
    for left_out in ("", "model.embed_tokens.weight"):
        rewrite_weights(folder, lambda weights: weights | {"lm_head.weight": table.clone()})
        rewrite_weights(folder, lambda weights: {name: w for name, w in weights.items() if name != left_out})  # noqa: B023
        lm, _tokenizer = load_checkpoint(folder)
        assert lm.lm_head.weight is lm.token_embedding.weight
        assert not any("lm_head" in str(note) for note in lm.notes)
        assert_close(lm(IDS), expected, rtol=0, atol=1e-4)


INVALID_CHANGES = {
    "embedding model": ({"lm_head.weight": None}, "lack lm_head.weight, as those of embedding models"),
    "other names": (lambda name: f"backbone.{name}", r"lack token_embedding.weight: .*\(backbone\.lm_head"),
    "a bias": (
        {"model.layers.0.mlp.up_proj.bias": torch.ones(56)},
        r"hold blocks\.0\.ffn\.up_proj\.bias, which ",
    ),
    "a norm": ({"model.layers.0.self_attn.sink.weight": torch.ones(8)}, r"hold model\.layers\.0\.self_attn\.sink\.wei"),
    "two values": (
        {"norm.weight": torch.ones(32)},
        r"final_norm\.weight twice .*as model\.norm\.weight .*as norm\.",
    ),
    "GPTQ": ({"model.layers.0.mlp.up_proj.qweight": torch.ones(4, 56).int()}, r"quantized \(.*\.qweight is I32\)"),
    "8 bits": ({"model.layers.0.mlp.up_proj.weight": torch.ones(56, 32).char()}, r"quantized \(.*weight is I8\)"),
    "FP8": ({"model.layers.0.mlp.up_proj.weight_scale": torch.ones(1)}, r"quantized \(.*weight_scale is F32\)"),
    "bitsandbytes": ({"model.layers.0.mlp.up_proj.weight.absmax": torch.ones(9)}, r"quantized \(.*absmax is F32\)"),
    "LoRA": (
        {"model.layers.0.mlp.up_proj.lora_A.weight": torch.ones(4, 32)},
        r"an adapter \(LoRA\) that",
    ),
    "not a number": (
        {"model.norm.weight": torch.full((32,), torch.nan)},
        r"final_norm\.weight holds numbers",
    ),
}


@subtest_each(("change", "told"), INVALID_CHANGES.values(), ids=INVALID_CHANGES)
def test_weights_that_change_computation_are_refused(save_random_model, change, told):
    _model, folder = save_random_model("Llama 2")
    if callable(change):
        rewrite_weights(folder, rename_all(change))
    else:
        rewrite_weights(folder, lambda all_: {name: w for name, w in (all_ | change).items() if w is not None})
    with pytest.raises(CheckpointError, match=told):
        load_checkpoint(folder)


def test_float8_weights_without_scales_are_read(save_random_model):
    _model, folder = save_random_model("Llama 2")
    rewrite_weights(folder, lambda weights: {name: w.to(torch.float8_e4m3fn) for name, w in weights.items()})
    lm, _tokenizer = load_checkpoint(folder)
    assert_close(lm(IDS), transformers_logits(folder), rtol=0, atol=1e-4)


def test_weights_beyond_range_of_dtype_are_named(save_random_model):
    _model, folder = save_random_model("Llama 2")
    rewrite_weights(folder, lambda weights: weights | {"lm_head.weight": torch.full((300, 32), 1e6)})
    with pytest.raises(CheckpointError, match=r"lm_head\.weight holds numbers beyond the range of float16: open it"):
        load_checkpoint(folder, dtype=torch.float16)
    assert load_checkpoint(folder)[0].lm_head.weight.max() == 1e6


FILES = {
    "in a folder": (["weights/model-00001.safetensors", "weights/model-00002.safetensors"], INDEX),
    "in several folders": (["a/one.safetensors", "two.safetensors"], INDEX),
    "of a variant": (["one.fp16.safetensors", "two.fp16.safetensors"], "model.safetensors.index.fp16.json"),
    "without an index": (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"], None),
    "of another name": (["model.fp16.safetensors"], None),
}


@pytest.mark.parametrize(("files", "index"), FILES.values(), ids=FILES)
@torch.no_grad()
def test_unambiguous_weight_files_are_found(save_random_model, files, index):
    model, folder = save_random_model("Llama 2")
    split_weights(folder, files, index)
    inside = [file for file in files if "/" not in file]
    for path in (folder, *(folder / file for file in inside)):
        assert_close(load_checkpoint(path)[0](IDS), model(IDS).logits, rtol=0, atol=1e-4)


@torch.no_grad()
def test_file_in_folder_opens_folder_or_its_own_weights(save_random_model):
    model, folder = save_random_model("Llama 2")
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert_close(load_checkpoint(folder / name)[0](IDS), model(IDS).logits, rtol=0, atol=1e-4)
    others = {name: weight / 2 for name, weight in load_file(folder / "model.safetensors").items()}
    save_file(others, folder / "averaged.safetensors")
    assert_close(load_checkpoint(folder)[0](IDS), model(IDS).logits, rtol=0, atol=1e-4)
    lm, _tokenizer = load_checkpoint(folder / "averaged.safetensors")
    assert torch.equal(lm.token_embedding.weight, model.get_input_embeddings().weight / 2)


def test_missing_shards_and_ambiguous_weights_are_reported(save_random_model):
    _model, folder = save_random_model("Llama 2")
    split_weights(folder, ["model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"], None)
    with pytest.raises(CheckpointError, match=r"1 of its 3 files of weights are missing, beside model-00001-of-00003"):
        load_checkpoint(folder)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"a": "sub/a.safetensors", "b": "sub/b.safetensors"}}))
    with pytest.raises(CheckpointError, match=r"2 of its 2 files of weights are missing, such as sub/a\.safetensors"):
        load_checkpoint(folder)
    _model, folder = save_random_model("Llama 2")
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    shutil.copy(folder / "a.safetensors", folder / "b.safetensors")
    with pytest.raises(CheckpointError, match=r"may be any of a\.safetensors, b\.safetensors: open the file"):
        load_checkpoint(folder)
    assert load_checkpoint(folder / "b.safetensors")
