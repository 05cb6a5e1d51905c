"""LoRA adapters of peft, merged when a model opens: logits match peft's merged model."""

import json
import warnings

import pytest
import torch

from model.checkpoint import CheckpointError, checkpoint_files, load_checkpoint
from model.describe import describe_model

IDS = torch.arange(3, 22)[None]
LINEAR = ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]
PATTERNS = {"rank_pattern": {"v_proj": 3, r"model\.layers\.1\.self_attn\.q_proj": 5}, "alpha_pattern": {"up_proj": 7}}
PATTERNS |= {"r": 4, "lora_alpha": 16}
ADAPTERS = {
    "Llama 2": ("Llama 2", {"r": 4, "lora_alpha": 6, "target_modules": LINEAR}),
    "patterns": ("Llama 2", {"target_modules": LINEAR} | PATTERNS),
    "rsLoRA": ("Llama 2", {"r": 4, "lora_alpha": 6, "use_rslora": True, "target_modules": LINEAR}),
    "embeddings": ("Llama 2", {"r": 4, "target_modules": ["embed_tokens", "lm_head", "k_proj"]}),
    "tied embeddings": ("Qwen2", {"r": 4, "target_modules": ["embed_tokens", "k_proj"]}),
    "whole modules": (
        "Llama 2",
        {"r": 4, "target_modules": ["q_proj"], "modules_to_save": ["lm_head", "embed_tokens"]},
    ),
    "a whole unembedding of a tied model": (
        "Qwen2",
        {"r": 4, "target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    ),
    "biases": ("Qwen2", {"r": 4, "target_modules": ["q_proj"], "bias": "all"}),
    "some layers": ("Gemma 2", {"r": 2, "target_modules": ["q_proj", "gate_proj"], "layers_to_transform": [1]}),
    "GPT-2": ("GPT-2", {"r": 4, "target_modules": ["c_attn", "c_proj", "c_fc"], "fan_in_fan_out": True}),
    "Phi-3": ("Phi-3", {"r": 4, "target_modules": ["qkv_proj", "gate_up_proj"]}),
}


@pytest.fixture
def make_adapter(save_random_model, tmp_path):
    """`make_adapter(kind, **settings)`: base model, adapter with random weights, and merged model."""
    peft = pytest.importorskip("peft")

    def make_adapter(kind: str, **settings):
        model, folder = save_random_model(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings))
            for name, parameter in adapted.named_parameters():
                if parameter.requires_grad:
                    parameter.data.normal_(0, 0.3) if "lora" in name else parameter.data.add_(0.1)
            adapted.save_pretrained(tmp_path / "adapter")
            merged = adapted.merge_and_unload().eval()
        return folder, tmp_path / "adapter", merged

    return make_adapter


@pytest.mark.parametrize("name", ADAPTERS)
def test_logits_match_merged_model(name, make_adapter, caplog):
    kind, settings = ADAPTERS[name]
    folder, adapter, merged = make_adapter(kind, **settings)
    lm, base = load_checkpoint(folder, adapter=adapter)[0], load_checkpoint(folder)[0]
    with torch.no_grad():
        expected = merged(IDS, use_cache=False).logits
    torch.testing.assert_close(lm(IDS), expected, atol=3e-5, rtol=1e-4)
    assert (base(IDS) - expected).abs().max() > 0.1  # the adapter changes much
    assert "merged with the adapter adapter: LoRA of rank" in caplog.text


def test_adapter_alone_opens_its_base_model(make_adapter):
    folder, adapter, _merged = make_adapter("Llama 2", r=4, target_modules=LINEAR)
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(folder)}))
    lm, expected = load_checkpoint(adapter)[0], load_checkpoint(folder, adapter=adapter)[0]
    assert torch.equal(lm(IDS), expected(IDS))
    description = describe_model(adapter)
    assert description.problem is None and dict(description.rows)["rank, alpha"] == "4, 8"
    assert {file.parent for file in checkpoint_files(adapter) if file.exists()} == {adapter, folder}
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "owner/name"}))
    assert "is an adapter (LoRA), and its base" in str(describe_model(adapter).problem)
    with pytest.raises(
        CheckpointError, match=r"it is an adapter \(LoRA\), and its base model cannot be opened: it is not"
    ):
        load_checkpoint(adapter)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_dora": True}, r"the adapter uses DoRA \(use_dora\), which is not supported"),
        ({"peft_type": "IA3"}, "the adapter is of the kind 'IA3': only LORA is supported"),
        ({"rank_pattern": {"(a+)+b": 3}}, r"the adapter’s pattern '\(a\+\)\+b' is not understood"),
        ({"r": 9}, "have rank 4, unlike its config says"),
        ({"lora_alpha": "16"}, "lora_alpha must be a number, got '16'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_unsupported_adapter_is_named(changes, message, make_adapter):
    folder, adapter, _merged = make_adapter("Llama 2", r=4, target_modules=LINEAR)
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | changes))
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(folder, adapter=adapter)


def test_adapter_of_other_model_is_refused(make_adapter, save_random_model):
    _folder, adapter, _merged = make_adapter("Llama 2", r=4, target_modules=LINEAR)
    for kind, message in (
        ("GPT-2", "which the model’s weights lack"),
        ("Qwen3", "the adapter’s update of .* should be"),
    ):
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(save_random_model(kind)[1], adapter=adapter)


def test_gguf_base_model_is_refused(make_adapter, tmp_path):
    _folder, adapter, _merged = make_adapter("Llama 2", r=4, target_modules=LINEAR)
    (tmp_path / "base.gguf").write_bytes(b"GGUF")
    config = json.loads((adapter / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(tmp_path / "base.gguf")
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    for arguments in ({"name_or_path": tmp_path / "base.gguf", "adapter": adapter}, {"name_or_path": adapter}):
        with pytest.raises(CheckpointError, match="not merged into GGUF: .* base.gguf was made from"):
            load_checkpoint(**arguments)
