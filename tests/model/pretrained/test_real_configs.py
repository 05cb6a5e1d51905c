"""Configs as strangers have them (`tests/data/configs.json`: what each says, and where it was seen), at tiny sizes: the
logits are those of transformers with the same random weights, or the file is refused for the field that the data names.

`python -m tests.model.pretrained.test_real_configs` prints the table.
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.exhaustive import exhaustive
from tests.model.pretrained.reference import NoReference, difference

CONFIGS = json.loads((Path(__file__).parents[2] / "data" / "configs.json").read_text(encoding="utf-8"))
VOCAB, POSITIONS, LAYERS, FEED_FORWARD = 60, 32, 4, 24
WINDOW, NO_WINDOW = 5, 40  # of layers that see less than all positions, and of those that do not
FEED_FORWARDS = ("intermediate_size", "ffn_dim", "n_inner")
LISTS = ("layer_types", "no_rope_layers", "attention_layers")


def shrunk(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a tiny model: sizes are less, in the ratios that matter; all else is as it was."""
    fields = dict(config)

    def name(*names: str) -> str | None:
        return next((name for name in names if isinstance(fields.get(name), int)), None)

    width, heads = name("n_embd", "hidden_size"), name("n_head", "num_heads", "num_attention_heads")
    layers, context = name("n_layer", "num_layers", "num_hidden_layers"), name("n_positions", "max_position_embeddings")
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
            fields[field] = [min(each, last) for each in value] if isinstance(value, list) else min(value, last)
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
    whole = config[context]
    if "original_max_position_embeddings" in fields:
        fields = slowed(fields, whole, 0)
    for field in ("rope_scaling", "rope_parameters"):
        if isinstance(fields.get(field), dict):
            fields[field] = slowed(fields[field], whole, int(new_d_head * share) // 2)
    return fields


def slowed(rotation: dict[str, Any], whole: int, pairs: int) -> dict[str, Any]:
    """The fields of a rotation of so many pairs of dimensions, in a model whose context was `whole`."""
    fields = dict(rotation)
    if "original_max_position_embeddings" in fields:
        shorter = POSITIONS * fields["original_max_position_embeddings"] // whole
        fields["original_max_position_embeddings"] = max(shorter, 8)
    return fields | {field: fields[field][:pairs] for field in ("short_factor", "long_factor") if field in fields}


def seldom(configs: list[dict[str, Any]]) -> list:
    """Parameters of a test: in the core suite are those of each type and set of fields that are the first."""
    kinds: set = set()
    cases = []
    for entry in configs:
        config = entry["config"]
        kind = config.get("model_type"), bool(config.get("rope_scaling")), "refused" in entry
        case = pytest.param(entry, id=entry["name"])
        cases.append(exhaustive(case) if kind in kinds else case)
        kinds.add(kind)
    return cases


def test_at_least_sixty_are_known_of_all_families_and_no_name_twice():
    assert len(CONFIGS) > 60 and len({entry["name"] for entry in CONFIGS}) == len(CONFIGS)
    assert all(entry["seen"] and entry["config"] for entry in CONFIGS)


@pytest.mark.parametrize("entry", seldom(CONFIGS))
def test_a_config_is_read_as_by_transformers_or_refused_by_name(entry, tmp_path):
    try:
        found = difference(shrunk(entry["config"]), tmp_path)
    except NoReference:
        assert "refused" in entry  # such as one whose weights need a package that is not there
        return
    if "refused" in entry:
        assert entry["refused"] in str(found)
    else:
        assert isinstance(found, float) and found < 1e-4, found


def main():
    """Print each config, whether it opens, and its largest difference of logits."""
    for entry in CONFIGS:
        try:
            found = difference(shrunk(entry["config"]), Path(tempfile.mkdtemp()))
            result = f"opens, {found:.1e}" if isinstance(found, float) else f"refused: {found.partition(': ')[2]}"
        except NoReference as error:
            result = f"transformers makes none: {str(error).strip().splitlines()[-1]}"
        print(f"{entry['name']} | {entry['seen']} | {result}", flush=True)


if __name__ == "__main__":
    main()
