"""Folders saved by transformers load as models with the same logits, streams and patterns."""

import json

import pytest
import torch
from torch.testing import assert_close

from explorer.tracing.capture import capture
from model.checkpoint import CheckpointError, load_checkpoint
from model.generation.autoregressive import generate
from tests.exhaustive import first_in_core
from tests.model.pretrained.model_kinds import KINDS
from tests.subtest_loops import subtest_each

LONG = {"rope_type": "longrope", "short_factor": [1.0] * 3, "long_factor": [4.0] * 3}
IDS = torch.arange(7, 26)[None]  # longer than the attention windows


def one_of_each_family() -> list:
    """Return all kinds as parameters; the first kind of each family is core, the others are exhaustive."""
    families = [family for family, _config in KINDS.values()]
    return [
        pytest.param(kind, marks=pytest.mark.exhaustive if family in families[:index] else ())
        for index, (kind, family) in enumerate(zip(KINDS, families, strict=True))
    ]


@subtest_each("kind", one_of_each_family())
@torch.no_grad()
def test_logits_streams_and_patterns_match_transformers(save_random_model, kind):
    model, folder = save_random_model(kind)
    lm, _tokenizer = load_checkpoint(folder)
    if hasattr(model, "set_attn_implementation"):
        model.set_attn_implementation("eager")  # the only one that returns patterns
    hf_output = model(IDS, output_hidden_states=True, output_attentions=True)
    trace = capture(lm, IDS[0].tolist())
    assert_close(torch.tensor(trace["logits"]), hf_output.logits[0], rtol=0, atol=1e-4)
    for i, pattern in enumerate(hf_output.attentions):
        assert_close(torch.tensor(trace[f"blocks.{i}.attn.pattern"]), pattern[0], rtol=0, atol=1e-4)
        assert_close(torch.tensor(trace[f"blocks.{i}.resid_pre"]), hf_output.hidden_states[i][0], rtol=0, atol=1e-4)


@subtest_each("kind", first_in_core(list(KINDS)))
def test_greedy_continuation_matches_transformers(save_random_model, kind):
    model, folder = save_random_model(kind)
    lm, _tokenizer = load_checkpoint(folder)
    expected = model.generate(IDS[:, :5], max_new_tokens=12, do_sample=False, pad_token_id=0)[0, 5:].tolist()
    assert [step.token_id for step in generate(lm, IDS[0, :5].tolist(), max_new_tokens=12, temperature=0)] == expected


def test_sharded_weights_form_one_model(save_random_model):
    model, folder = save_random_model("Llama 2", max_shard_size="20KB")
    assert not (folder / "model.safetensors").exists()
    lm, _tokenizer = load_checkpoint(folder)
    assert_close(lm(IDS), model(IDS).logits, rtol=0, atol=1e-4)


def test_weights_keep_dtype_unless_another_is_requested(save_random_model):
    model, folder = save_random_model("Qwen2")
    model.to(torch.bfloat16).save_pretrained(folder)
    assert load_checkpoint(folder)[0].lm_head.weight.dtype == torch.bfloat16
    assert load_checkpoint(folder, dtype=torch.float32)[0].lm_head.weight.dtype == torch.float32


@torch.no_grad()
def test_multipliers_folded_into_weights_are_exact_in_float32(save_random_model):
    """Granite's multipliers are no powers of two; a tied unembedding stays tied."""
    model, folder = save_random_model("Granite, tied")
    for parameter in model.parameters():
        parameter.copy_(parameter.bfloat16())
    hf_logits = model(IDS).logits
    model.to(torch.bfloat16).save_pretrained(folder)
    lm, _tokenizer = load_checkpoint(folder, dtype=torch.float32)
    assert lm.lm_head.weight is lm.token_embedding.weight and lm.config.embedding_multiplier == 15
    assert_close(lm(IDS), hf_logits, rtol=0, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["Gemma 3", "Gemma 3, slowed"])
def test_older_gemma3_config_is_read(save_random_model, kind):
    model, folder = save_random_model(kind)
    config = json.loads((folder / "config.json").read_text())
    rope_parameters, layer_types = config.pop("rope_parameters"), config.pop("layer_types")
    slowed = rope_parameters["full_attention"]["rope_type"] != "default"
    config |= {"rope_theta": 100.0, "rope_local_base_freq": rope_parameters["sliding_attention"]["rope_theta"]}
    config |= {"rope_scaling": {"rope_type": "linear", "factor": 4.0} if slowed else None, "sliding_window_pattern": 2}
    (folder / "config.json").write_text(json.dumps(config))
    lm, _tokenizer = load_checkpoint(folder)
    assert [window is None for window in lm.config.windows] == [kind == "full_attention" for kind in layer_types]
    assert_close(lm(IDS), model(IDS).logits, rtol=0, atol=1e-4)
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if "_base_freq" not in k}))
    assert load_checkpoint(folder)[0].config.local_rope_theta == 10_000


@torch.no_grad()
def test_unrotated_layers_default_to_interval(save_random_model):
    model, folder = save_random_model("SmolLM3, windows")
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("no_rope_layers") == [1, 1, 0] and config["no_rope_layer_interval"] == 3
    (folder / "config.json").write_text(json.dumps(config))
    lm, _tokenizer = load_checkpoint(folder)
    assert_close(lm(IDS), model(IDS).logits, rtol=0, atol=1e-4)
    (folder / "config.json").write_text(json.dumps(config | {"no_rope_layer_interval": None}))
    assert load_checkpoint(folder)[0].config.rotary_layers == (True, True, True)


@subtest_each(
    ("kind", "change", "message"),
    [
        ("Llama 2", {"model_type": "bloom"}, "models of the type 'bloom' are not understood"),
        ("Llama 2", {"model_type": ["llama"]}, "models of the type ['llama'] are not understood"),
        (
            "Llama 2",
            {"quantization_config": {"quant_method": "gptq", "bits": 4}},
            "(quantization_config: gptq), which is",
        ),
        ("Llama 2", {"quantization": {"bits": 4}}, "its weights are quantized (quantization: 4 bits)"),
        ("Llama 2", {"pruned_heads": {"0": [1]}}, "pruned_heads {'0': [1]} is not understood"),
        ("Llama 2", {"num_local_experts": 8}, "num_local_experts 8 is not understood"),
        ("Llama 2", {"is_encoder_decoder": True}, "is_encoder_decoder True is not understood"),
        ("Llama 2", {"per_layer_config": {"0": {"head_dim": 4}}}, "says per_layer_config, which is not understood"),
        ("Llama 2", {"rms_norm_eps": "1e-6"}, "rms_norm_eps must be a positive number, got '1e-6'"),
        ("Llama 2", {"hidden_size": 32.5}, "hidden_size must be a positive integer, got 32.5"),
        ("Llama 2", {"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false, got 'no'"),
        ("Llama 2", {"rope_scaling": "linear"}, "rope_scaling must be an object of named settings, got 'linear'"),
        (
            "Phi",
            {"rope_parameters": None, "partial_rotary_factor": 1.5},
            "partial_rotary_factor 1.5 turns 24 of a head",
        ),
        ("Qwen3", {"layer_types": [["full_attention"]] * 3}, "layer_types must be a list of words"),
        (
            "GPT-Neo",
            {"attention_layers": None, "attention_types": "global"},
            "attention_types 'global' is not understood",
        ),
        ("GPT-2", {"add_cross_attention": True}, "add_cross_attention True is not understood"),
        ("Llama 2", {"hidden_act": "gelu"}, "hidden_act 'gelu' is not understood"),
        ("Llama 2", {"attention_bias": "yes"}, "attention_bias must be true or false, got 'yes'"),
        ("Llama 2", {"mlp_bias": True}, "lack blocks.0.ffn.gate_proj.bias"),
        ("Llama 2", {"rope_parameters": {"rope_type": "proportional"}}, "rope_type 'proportional' is not understood"),
        (
            "Llama, LongRoPE",
            {"rope_parameters": {"rope_type": "longrope"}},
            "lacks rope_parameters.short_factor",
        ),
        ("Llama 2", {"num_key_value_heads": 4}, "k_proj.weight should be (32, 32) by its config, got (16, 32)"),
        ("Llama 2", {"vocab_size": 100}, "by its config"),
        ("Qwen3", {"layer_types": ["linear_attention"] * 3}, "layer_types"),
        ("GPT-2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx True"),
        ("GPT-2", {"n_embd": None}, "should be (768,) by its config, got (32,)"),
        ("GPT-NeoX", {"hidden_act": "quick_gelu"}, "hidden_act 'quick_gelu' is not understood"),
        (
            "GPT-Neo",
            {"attention_layers": ["global", "sparse", "local"]},
            "attention_layers ['global', 'sparse', 'local']",
        ),
        ("Phi-3", {"rope_parameters": LONG}, "needs 4 pair_factors, one a pair, got 3"),
        ("Granite", {"residual_multiplier": 0}, "residual_multiplier must be a positive number, got 0"),
        ("Granite", {"attention_multiplier": "1"}, "attention_multiplier must be a positive number, got '1'"),
        ("Phi", {"qk_layernorm": True}, "qk_layernorm True is not understood, only False"),
        ("SmolLM3", {"no_rope_layers": [1, 0]}, "no_rope_layers [1, 0] is not understood, only [1, 1, 1]"),
        ("SmolLM3", {"no_rope_layers": [1, 2, 0]}, "no_rope_layers [1, 2, 0] is not understood"),
        ("Gemma 2", {"use_bidirectional_attention": True}, "use_bidirectional_attention True is not understood"),
        ("Gemma 2", {"hidden_activation": "gelu"}, "hidden_activation 'gelu' is not understood"),
        ("Gemma 2", {"layer_types": ["full_attention"] * 2}, "layer_types ['full_attention', 'full_attention']"),
        ("Gemma 2", {"attn_logit_softcapping": -1}, "attn_logit_softcapping must be a positive number, got -1"),
        ("Gemma 3", {"rope_parameters": {"full_attention": {"rope_type": "axial"}}}, "rope_type 'axial' is not under"),
        ("Gemma 3", {"rope_parameters": {"sliding_attention": LONG}}, "rope_type 'longrope' is not understood"),
        ("nanochat", {"tie_word_embeddings": True}, "tie_word_embeddings True is not understood, only False"),
        ("nanochat", {"hidden_act": "silu"}, "hidden_act 'silu' is not understood"),
        ("OPT", {"layer_norm_elementwise_affine": False}, "layer_norm_elementwise_affine False is not understood"),
        ("OPT", {"word_embed_proj_dim": 16}, "word_embed_proj_dim 16 is not understood, only 32"),
    ],
)
def test_unsupported_config_is_refused_by_name(save_random_model, kind, change, message):
    _model, folder = save_random_model(kind)
    config = folder / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    with pytest.raises(CheckpointError) as refused:
        load_checkpoint(folder)
    assert message in str(refused.value)


def test_pickled_weights_are_never_opened(save_random_model):
    model, folder = save_random_model("Llama 2")
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    message = "pickled, which could run code of others. Convert them once: python -c"
    for path in (folder, folder / "pytorch_model.bin"):
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(path)


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "a/../../b.safetensors", "/etc/passwd", "C:\\x.safetensors", 7]
)
def test_shard_index_cannot_name_outside_files(save_random_model, name):
    _model, folder = save_random_model("Llama 2", max_shard_size="20KB")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": name}}))
    with pytest.raises(CheckpointError, match="names no files of weights in its folder"):
        load_checkpoint(folder)
