"""Every field of a family's config: missing, null, or with another value.

We compute the same as transformers, or refuse the file and name the field. The fields are those declared by the config
classes of transformers.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from model.pretrained.config_reader import (
    ACTIVATIONS,
    ALIASES,
    COMMON_FIELDS,
    DEFAULTS,
    GATES,
    NULL_IS_NONE,
    WITHOUT_EFFECT,
    HFConfigFields,
)
from model.pretrained.hugging_face_loader import FAMILIES
from tests.hugging_face import transformers
from tests.model.pretrained.logit_differences import NoReferenceError, max_logit_difference
from tests.subtest_loops import subtest_each

SIZES = {"vocab_size": 60, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
WINDOWS = {"sliding_window": 5, "use_sliding_window": True, "max_window_layers": 1}
GEMMA = SIZES | {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 6}
BASES = {
    "llama": SIZES,
    "mistral": SIZES | {"sliding_window": 5},
    "qwen2": SIZES | WINDOWS,
    "qwen3": SIZES | WINDOWS | {"head_dim": 6},
    "gemma": SIZES | {"head_dim": 6},
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
    "nanochat": SIZES,
    "olmo2": SIZES,
    "granite": SIZES,
    "smollm3": SIZES | {"sliding_window": 5, "use_sliding_window": True, "no_rope_layer_interval": 2},
    "phi": SIZES,
    "phi3": SIZES | {"sliding_window": 5},
    "gpt_neox": {name: value for name, value in SIZES.items() if name != "num_key_value_heads"},
    "gpt2": {"vocab_size": 60, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 32},
    "gpt_neo": {"vocab_size": 60, "hidden_size": 32, "num_layers": 3, "num_heads": 4, "max_position_embeddings": 32}
    | {"attention_types": [[["global", "local", "global"], 1]], "window_size": 5},
    "opt": {"vocab_size": 60, "hidden_size": 32, "ffn_dim": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
    | {"max_position_embeddings": 32},
}
NO_IDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
FULL, SLIDING = {"rope_type": "default", "rope_theta": 50.0}, {"rope_type": "default", "rope_theta": 20.0}
ROTATIONS = [
    {},
    FULL,
    {"rope_theta": 50},
    FULL | {"partial_rotary_factor": 0.5},
    FULL | {"partial_rotary_factor": None},
    {"type": "linear", "factor": 2.0},
    {"rope_type": "linear", "factor": 2.0, "rope_theta": 50.0},
    {"type": "default", "factor": 2.0},
    {"factor": 2.0},
    LLAMA3 | {"original_max_position_embeddings": 16},
    {"full_attention": FULL, "sliding_attention": SLIDING},
    {"full_attention": {"rope_theta": 50.0}},
    {"full_attention": {"rope_type": "linear", "factor": 2.0}, "sliding_attention": {}},
    FULL | {"mrope_section": [1, 1, 2]},
]
VALUES = {  # for fields whose annotation gives no values, and for fields that no class declares
    "layer_types": [
        ["full_attention", "sliding_attention", "full_attention"],
        ["sliding_attention"] * 3,
        ["attention"] * 3,
        ["full_attention"] * 2,
        ["chunked_attention"] * 3,
    ],
    "no_rope_layers": [[1, 0, 1], [0, 0, 0], [1, 0], [0, 1, 1, 0]],
    "attention_types": [[[["local"], 3]], [[["global"], 1], [["local"], 2]], [[["global", "local"], 1]], "global"],
    "attention_layers": [["local"] * 3, ["local", "global", "global"], ["global"]],
    "rope_parameters": ROTATIONS,
    "rope_scaling": ROTATIONS[::3],
    "rope_theta": [50.0, 20],
    "rope_local_base_freq": [30.0],
    "partial_rotary_factor": [0.5, 1.0],
    "rotary_pct": [0.5, 1.0],
    "rotary_emb_base": [50],
    "rotary_dim": [4],
    "sliding_window_pattern": [2, 1],
    "_sliding_window_pattern": [2],
    "attn_logit_softcapping": [0.5],
    "final_logit_softcapping": [1.5],
    "head_dim": [6],
    "original_max_position_embeddings": [16],
    "n_embd": [16],
    "n_layer": [2],
    "n_head": [2],
    "num_layers": [2],
    "num_heads": [2],
    "hidden_size": [64],
    "num_hidden_layers": [2],
    "num_attention_heads": [2],
    "n_ctx": [16],
    "clip_qkv": [0.1],
    "layer_norm_eps": [0.1],
    "layer_norm_epsilon": [0.1],
    "norm_eps": [0.1],
    "rms_norm_eps": [0.1],
    "activation_function": ["relu"],
    "embedding_multiplier": [2.0],
    "attention_multiplier": [0.5],
    "sliding_window": [5],
    "use_sliding_window": [True],
    "max_window_layers": [1],
    "attention_bias": [True],
    "mlp_bias": [True],
    "query_pre_attn_scalar": [6],
    "logits_scaling": [2.0],
    "residual_multiplier": [0.5],
    "use_bidirectional_attention": [True],
    "qk_layernorm": [True],
    "use_parallel_residual": [False],
    "scale_attn_weights": [False],
    "enable_bias": [False],
    "use_qk_norm": [True],
    "qkv_bias": [True],
}


def declared_fields(kind: str) -> dict[str, Any]:
    """Return the fields that the config class of a family declares itself, by name."""
    base = {field.name for field in dataclasses.fields(transformers.PreTrainedConfig)}
    every = dataclasses.fields(transformers.AutoConfig.for_model(kind).__class__)
    return {field.name: field for field in every if field.name not in base}


def other_values(field: dataclasses.Field) -> list[Any]:
    """Return other values of a field, chosen by its name or declared type."""
    if field.name in VALUES:
        return VALUES[field.name]
    if field.name.endswith("token_id"):
        return [1]
    kinds = str(field.type)
    if "bool" in kinds:
        return [True, False]
    if "float" in kinds:
        return [0.5]
    if "int" in kinds:
        return [1, 3]
    return [*ACTIVATIONS, *GATES, "tanh", "leaky_relu"] if "act" in field.name else ["x"]


def iter_variations(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each field that the family may read, with configs where it is missing, null or has another value."""
    base = BASES[kind] | {"model_type": kind} | NO_IDS
    fields = declared_fields(kind)
    for name in sorted({*fields, *DEFAULTS[kind], *ALIASES.get(kind, {})} - WITHOUT_EFFECT):
        others = other_values(fields[name]) if name in fields else VALUES.get(name, [])
        default = DEFAULTS[kind].get(name)
        if not (isinstance(default, int) and default > 256) and (
            "head" not in name or name not in base
        ):  # not for a large one
            yield name, {other: value for other, value in base.items() if other != name}
        for value in [None, *others]:
            yield name, base | {name: value}


@subtest_each("kind", BASES)
def test_fields_have_defaults_of_transformers(kind):
    """Check that each field we read is declared with our default, or is another name that transformers reads."""
    our_defaults, hf_fields = DEFAULTS[kind], declared_fields(kind)
    aliases = {"rope_scaling", "rope_theta", "rope_local_base_freq", "rotary_pct", "rotary_emb_base", "head_dim"}
    aliases |= {"partial_rotary_factor", "original_max_position_embeddings", "sliding_window_pattern"}
    aliases |= {"attention_layers"}
    assert set(our_defaults) - set(hf_fields) <= aliases
    for name in set(our_defaults) & set(hf_fields):
        assert our_defaults[name] == hf_fields[name].default, name
    assert not set(our_defaults) & (WITHOUT_EFFECT | COMMON_FIELDS)


def test_every_family_has_defaults_and_aliases_of_transformers():
    assert set(DEFAULTS) == set(FAMILIES) == set(BASES) and set().union(*DEFAULTS.values()) >= NULL_IS_NONE
    for kind in DEFAULTS:
        assert ALIASES.get(kind, {}) == transformers.AutoConfig.for_model(kind).attribute_map


@pytest.mark.parametrize("kind", BASES)
def test_foreign_fields_are_ignored_and_listed(kind, tmp_path, caplog):
    """The config has the fields of all other families at once."""
    base = BASES[kind] | {"model_type": kind} | NO_IDS
    family_fields = {*DEFAULTS[kind], *ALIASES.get(kind, {}), *declared_fields(kind), *NO_IDS}
    foreign = {name: options[0] for name, options in VALUES.items() if name not in family_fields and options[0]}
    foreign |= {"is_llama_config": True, "use_mrope": False, "unknown": {"any": [1]}}
    if kind in ("gpt_neox",):  # its code uses the field for angles but not for rows
        foreign.pop("head_dim", None)
    assert max_logit_difference(base | foreign, tmp_path) < 1e-4
    unused = sorted(set(foreign) - WITHOUT_EFFECT)
    assert f"{len(unused)} fields of config.json were not used: {', '.join(unused)[:100]}" in caplog.text
    assert HFConfigFields(base).notes() == ()


@subtest_each("kind", BASES)
def test_missing_fields_take_defaults_of_transformers(kind, tmp_path):
    """All fields except sizes are left out: default sizes would be large."""
    large = {name for name, default in DEFAULTS[kind].items() if isinstance(default, int) and default > 256}
    fields = {name: value for name, value in BASES[kind].items() if name in large or name.startswith(("num", "n_l"))}
    heads = {"num_attention_heads": 4, "n_head": 4, "num_heads": 4}
    fields |= {name: count for name, count in heads.items() if name in DEFAULTS[kind]}
    fields |= {"attention_types": BASES[kind]["attention_types"]} if kind == "gpt_neo" else {}
    assert max_logit_difference(fields | {"model_type": kind} | NO_IDS, tmp_path) < 1e-4


@subtest_each("kind", ["mistral", "qwen2", "qwen3", "gemma2", "nanochat", "smollm3"])
def test_null_differs_from_missing_field(kind, tmp_path):
    fields = declared_fields(kind)
    empty = [name for name in fields if "None" in str(fields[name].type) and DEFAULTS[kind].get(name) is not None]
    if kind.startswith("gemma"):  # its code makes one mask for all layers, or none
        empty = [name for name in empty if name != "sliding_window"]
    assert max_logit_difference(BASES[kind] | {"model_type": kind} | NO_IDS | dict.fromkeys(empty), tmp_path) < 1e-4


@pytest.mark.by_hand
@subtest_each("kind", BASES)
def test_every_field_value_is_computed_or_refused_by_name(kind, tmp_path):
    wrong, compared, cases = [], 0, list(iter_variations(kind))
    for name, fields in cases:
        try:
            result = max_logit_difference(fields, tmp_path)
        except NoReferenceError:
            continue
        compared += 1
        names = [name, ALIASES.get(kind, {}).get(name, name)]
        is_deep = name not in fields and name.endswith(("layers", "n_layer"))  # rounding grows over dozens of layers
        tolerance = 5e-4 if is_deep else 1e-4
        if not (result < tolerance if isinstance(result, float) else any(alias in result for alias in names)):
            wrong.append(f"{name} {fields.get(name, '(left out)')!r}: {result}")
    assert compared > len(cases) / 3 and wrong == []
