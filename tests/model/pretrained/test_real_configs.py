"""Configs of published models at tiny sizes; `tests/data/configs.json` has the content and source of each.

Logits match transformers with the same random weights, or the file is refused for the field in the
data.

`python -m tests.model.pretrained.test_real_configs` prints the table.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.exhaustive import exhaustive
from tests.model.pretrained.logit_differences import NoReferenceError, max_logit_difference
from tests.subtest_loops import subtest_each

CONFIGS = json.loads((Path(__file__).parents[2] / "data" / "configs.json").read_text(encoding="utf-8"))
VOCAB, POSITIONS, LAYERS, FEED_FORWARD = 60, 32, 4, 24
WINDOW, NO_WINDOW = 5, 40  # sizes of real windows, and of windows that cover all positions
FEED_FORWARDS = ("intermediate_size", "ffn_dim", "n_inner")
LISTS = ("layer_types", "no_rope_layers", "attention_layers")


def shrink_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the config of a tiny model: sizes are smaller, with the ratios that matter; other fields are unchanged."""
    fields = dict(config)

    def find_field(*names: str) -> str | None:
        return next((name for name in names if isinstance(fields.get(name), int)), None)

    width, heads = find_field("n_embd", "hidden_size"), find_field("n_head", "num_heads", "num_attention_heads")
    layers, context = (
        find_field("n_layer", "num_layers", "num_hidden_layers"),
        find_field("n_positions", "max_position_embeddings"),
    )
    groups = fields.get("num_key_value_heads") or fields[heads]
    share = fields.get("partial_rotary_factor", 1)
    d_head = fields.get("head_dim") or fields[width] // fields[heads]
    shared = fields[heads] // groups
    new_groups = 1 if shared > 4 else min(groups, 2)
    new_d_head = next(size for size in (8, 10, 20) if int(size * share) % 2 == 0)
    ratio = fields[width] / (fields[heads] * d_head)
    fields["vocab_size"] = min(fields["vocab_size"], VOCAB)
    for field, value in config.items():
        if field.endswith("_token_id") and value is not None:
            last = fields["vocab_size"] - 1
            fields[field] = [min(token_id, last) for token_id in value] if isinstance(value, list) else min(value, last)
    if fields.get("num_key_value_heads") and width == "hidden_size" and "ffn_dim" not in fields:
        fields["num_key_value_heads"] = new_groups
    fields[heads] = shared * new_groups if groups != config[heads] else min(config[heads], 4)
    if groups == config[heads] and "num_key_value_heads" in fields:
        fields["num_key_value_heads"] = fields[heads]
    fields[width] = round(ratio * new_d_head) * fields[heads]
    if "head_dim" in fields:
        fields["head_dim"] = new_d_head
    for field in FEED_FORWARDS:
        if fields.get(field):
            fields[field] = FEED_FORWARD
    if fields.get("word_embed_proj_dim"):
        fields["word_embed_proj_dim"] = fields[width] // (config[width] // config["word_embed_proj_dim"] or 1)
    if fields.get("query_pre_attn_scalar"):
        fields["query_pre_attn_scalar"] = round(new_d_head * config["query_pre_attn_scalar"] / d_head)
    fields[layers] = min(config[layers], LAYERS)
    fields |= {field: fields[field][: fields[layers]] for field in LISTS if fields.get(field)}
    if types := fields.get("attention_types"):
        fields["attention_types"] = [[types[0][0], fields[layers] // len(types[0][0])]]
    if fields.get("max_window_layers"):
        fields["max_window_layers"] = fields[layers] if config["max_window_layers"] >= config[layers] else 1
    for field in ("sliding_window", "window_size"):
        if fields.get(field):
            fields[field] = WINDOW if config[field] < config[context] else NO_WINDOW
    fields[context] = POSITIONS
    fields |= {"n_ctx": POSITIONS} if "n_ctx" in fields else {}
    original_context = config[context]
    if "original_max_position_embeddings" in fields:
        fields = shrink_rope(fields, original_context, 0)
    for field in ("rope_scaling", "rope_parameters"):
        if isinstance(fields.get(field), dict):
            fields[field] = shrink_rope(fields[field], original_context, int(new_d_head * share) // 2)
    return fields


def shrink_rope(rotation: dict[str, Any], context: int, num_pairs: int) -> dict[str, Any]:
    """Return the rotary fields for `num_pairs` pairs of dimensions; `context` is the original model's."""
    fields = dict(rotation)
    if "original_max_position_embeddings" in fields:
        shorter = POSITIONS * fields["original_max_position_embeddings"] // context
        fields["original_max_position_embeddings"] = max(shorter, 8)
    return fields | {field: fields[field][:num_pairs] for field in ("short_factor", "long_factor") if field in fields}


def mark_exhaustive(configs: list[dict[str, Any]]) -> list:
    """Return the configs as test parameters; only the first of each type and set of fields is in the core suite."""
    kinds: set = set()
    cases = []
    for entry in configs:
        config = entry["config"]
        kind = config.get("model_type"), bool(config.get("rope_scaling")), "refused" in entry
        case = pytest.param(entry, id=entry["name"])
        cases.append(exhaustive(case) if kind in kinds else case)
        kinds.add(kind)
    return cases


def test_configs_are_many_unique_and_complete():
    assert len(CONFIGS) > 60 and len({entry["name"] for entry in CONFIGS}) == len(CONFIGS)
    assert all(entry["seen"] and entry["config"] for entry in CONFIGS)


@subtest_each("entry", mark_exhaustive(CONFIGS), per_case=30)
def test_config_matches_transformers_or_is_refused_by_name(entry, tmp_path):
    try:
        result = max_logit_difference(shrink_config(entry["config"]), tmp_path)
    except NoReferenceError:
        assert "refused" in entry  # for example, its weights need a package that is not installed
        return
    if "refused" in entry:
        assert entry["refused"] in str(result)
    else:
        assert isinstance(result, float) and result < 1e-4, result


def main():
    """Print each config, whether it opens, and its largest difference of logits."""
    for entry in CONFIGS:
        try:
            difference_or_refusal = max_logit_difference(shrink_config(entry["config"]), Path(tempfile.mkdtemp()))
            outcome = (
                f"opens, {difference_or_refusal:.1e}"
                if isinstance(difference_or_refusal, float)
                else f"refused: {difference_or_refusal.partition(': ')[2]}"
            )
        except NoReferenceError as error:
            outcome = f"transformers makes none: {str(error).strip().splitlines()[-1]}"
        print(f"{entry['name']} | {entry['seen']} | {outcome}", flush=True)


if __name__ == "__main__":
    main()
