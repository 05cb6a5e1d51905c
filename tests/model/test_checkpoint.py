import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from model.checkpoint import CheckpointError, is_checkpoint, list_checkpoints, load_checkpoint, save_checkpoint
from model.config import ModelConfig, RopeScaling
from model.transformer_lm import TransformerLM

SIZES = {"context_length": 32, "d_model": 24, "num_layers": 2, "num_heads": 3}
KINDS = {
    "gpt": ModelConfig.gpt_style(vocab_size=300, **SIZES),
    "gpt, tied, learned, post-norm": ModelConfig.gpt_style(
        vocab_size=300, **SIZES, tie_embeddings=True, position="learned", norm_placement="post"
    ),
    "grouped, normalised, slowed": ModelConfig.llama_style(
        vocab_size=300,
        **SIZES,
        num_kv_heads=1,
        qk_norm=True,
        qkv_bias=True,
        rope_layout="half_split",
        rope_scaling=RopeScaling(kind="llama3", factor=4, original_context_length=16),
    ),
}


def test_saved_model_loads_unchanged(tiny_checkpoint, tiny_lm, tiny_tokenizer, token_ids):
    lm, tokenizer = load_checkpoint("tiny")
    assert lm.config == tiny_lm.config
    torch.testing.assert_close(lm(token_ids), tiny_lm(token_ids), rtol=0, atol=0)
    assert tokenizer.encode("the fox") == tiny_tokenizer.encode("the fox")


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
@torch.no_grad()
def test_every_kind_of_model_loads_unchanged(checkpoints_folder, config, tiny_tokenizer, token_ids):
    saved = TransformerLM(config).eval()
    for parameter in saved.parameters():
        parameter.add_(torch.randn_like(parameter) / 10)  # changes initial gains and biases, too
    folder = save_checkpoint(saved, tiny_tokenizer, "kind", dtype=torch.float32)
    lm, _ = load_checkpoint("kind")
    assert lm.config == config
    torch.testing.assert_close(lm(token_ids), saved(token_ids), rtol=0, atol=0)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors") or not config.tie_embeddings


def test_old_config_file_loads_unchanged(tiny_checkpoint, tiny_lm, token_ids):
    settings = json.loads((tiny_checkpoint / "config.json").read_text())
    old = ["vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta", "norm"]
    old += ["position", "ffn", "dropout", "norm_eps", "tie_embeddings"]
    (tiny_checkpoint / "config.json").write_text(json.dumps({name: settings[name] for name in old}))
    lm, _ = load_checkpoint("tiny")
    torch.testing.assert_close(lm(token_ids), tiny_lm(token_ids), rtol=0, atol=0)


def test_loaded_model_is_frozen_and_in_eval_mode(tiny_checkpoint):
    lm, _ = load_checkpoint("tiny")
    assert not lm.training
    assert not any(parameter.requires_grad for parameter in lm.parameters())
    assert {parameter.dtype for parameter in lm.parameters()} == {torch.float32}


def test_path_works_like_name(tmp_path, checkpoints_folder, tiny_lm, tiny_tokenizer):
    folder = save_checkpoint(tiny_lm, tiny_tokenizer, tmp_path / "elsewhere" / "deep")
    assert folder == tmp_path / "elsewhere" / "deep"
    assert list_checkpoints() == []
    for path in (folder, str(folder), Path(os.path.relpath(folder))):
        assert load_checkpoint(path)[0].config == tiny_lm.config


def test_weights_are_stored_in_float16_and_computed_in_float32(checkpoints_folder, tiny_lm, tiny_tokenizer, token_ids):
    folder = save_checkpoint(tiny_lm, tiny_tokenizer, "half")
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}
    lm, _ = load_checkpoint("half")
    assert lm.lm_head.weight.dtype == torch.float32
    torch.testing.assert_close(lm(token_ids), tiny_lm(token_ids), atol=0.02, rtol=0.02)


def test_tied_embeddings_are_stored_once_and_tied_again(checkpoints_folder, tiny_config, tiny_tokenizer, token_ids):
    tied = TransformerLM(replace(tiny_config, tie_embeddings=True)).eval()
    folder = save_checkpoint(tied, tiny_tokenizer, "tied", dtype=torch.float32)
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    lm, _ = load_checkpoint("tied")
    assert lm.lm_head.weight is lm.token_embedding.weight
    torch.testing.assert_close(lm(token_ids), tied(token_ids), rtol=0, atol=0)


def test_checkpoints_are_listed_by_name(checkpoints_folder, tiny_lm, tiny_tokenizer):
    assert list_checkpoints() == []
    for name in ("b", "a"):
        save_checkpoint(tiny_lm, tiny_tokenizer, name)
    (checkpoints_folder / "no-config").mkdir()
    (checkpoints_folder / "a-file").write_text("")
    assert list_checkpoints() == ["a", "b"]


def test_saving_replaces_all_files(tiny_checkpoint, tiny_config, tiny_tokenizer):
    other = TransformerLM(replace(tiny_config, num_layers=1))
    save_checkpoint(other, tiny_tokenizer, "tiny")
    assert load_checkpoint("tiny")[0].config == other.config
    assert sorted(path.name for path in tiny_checkpoint.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.tiktoken"
    ]  # fmt: skip


@pytest.mark.parametrize("value", [1e6, float("nan")])
def test_values_too_large_for_float16_are_not_saved(tiny_checkpoint, tiny_lm, tiny_tokenizer, value):
    tiny_lm.blocks[1].ffn.up_proj.weight.data[0, 0] = value
    before = (tiny_checkpoint / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match="up_proj.weight holds values that are not finite as torch.float16"):
        save_checkpoint(tiny_lm, tiny_tokenizer, "tiny")
    assert (tiny_checkpoint / "model.safetensors").read_bytes() == before


def test_config_file_contains_every_setting(tiny_checkpoint, tiny_config):
    assert json.loads((tiny_checkpoint / "config.json").read_text()) == json.loads(json.dumps(asdict(tiny_config)))


@pytest.mark.parametrize("tie_embeddings", [False, True])
@pytest.mark.parametrize("position", ["rope", "sinusoidal", "learned"])
def test_loading_draws_no_random_numbers(
    checkpoints_folder, tiny_config, tiny_tokenizer, token_ids, tie_embeddings, position, monkeypatch
):
    config = replace(tiny_config, tie_embeddings=tie_embeddings, position=position, dropout=0.25)
    saved = TransformerLM(config).eval()
    save_checkpoint(saved, tiny_tokenizer, "kind", dtype=torch.float32)
    before, touched = torch.get_rng_state(), []
    draw = torch.nn.init.trunc_normal_
    monkeypatch.setattr("torch.nn.init.trunc_normal_", lambda w, **how: touched.append(w.device.type) or draw(w, **how))
    lm, _ = load_checkpoint("kind")
    assert set(touched) == {"meta"}
    assert torch.equal(torch.get_rng_state(), before)
    assert lm.state_dict().keys() == saved.state_dict().keys()
    assert all(torch.equal(weight, lm.state_dict()[name]) for name, weight in saved.state_dict().items())
    assert [(name, b.device.type, b.dtype) for name, b in lm.named_buffers()] == [
        (name, "cpu", torch.float32) for name, _ in saved.named_buffers()
    ]
    assert lm.dropout.p == lm.blocks[0].ffn.dropout.p == 0.25
    assert (lm.lm_head.weight is lm.token_embedding.weight) == tie_embeddings
    torch.testing.assert_close(lm(token_ids), saved(token_ids), rtol=0, atol=0)


@pytest.mark.exhaustive
def test_loading_imports_no_compiler():
    """PyTorch imports hundreds of modules, SymPy among them, when some operations first run on the meta device."""
    script = (
        "import sys; from model import load_checkpoint as load; load('llama-fables'); sys.exit('sympy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True)


class MaliciousPickle:
    """Object that makes a folder when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.tiktoken", "config.json"])
@pytest.mark.parametrize("write", [lambda bomb, path: path.write_bytes(pickle.dumps(bomb)), torch.save])
def test_nothing_is_unpickled(tiny_checkpoint, tmp_path, name, write):
    write(MaliciousPickle(tmp_path / "exploded"), tiny_checkpoint / name)
    with pytest.raises(CheckpointError, match="checkpoint 'tiny' cannot be loaded: "):
        load_checkpoint("tiny")
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(MaliciousPickle(tmp_path / "exploded")))  # unpickling runs the code, as a control
    assert (tmp_path / "exploded").exists()


def test_checkpoint_name_is_checked_without_listing(tiny_checkpoint, monkeypatch):
    shutil.copytree(tiny_checkpoint, tiny_checkpoint / "step-000001")
    assert all(map(is_checkpoint, list_checkpoints())) and is_checkpoint("tiny/step-000001")
    monkeypatch.chdir(tiny_checkpoint)
    paths = [".", "..", "", "/", "tiny/..", "../tiny", "tiny/.", "tiny/", "tiny//step-000001", str(tiny_checkpoint)]
    for name in [*paths, "tiny/step-000001/..", "/tiny", "Nobody", "tiny/config.json", "\0", "\udcff", "x" * 5000]:
        assert not is_checkpoint(name), name


def test_path_is_not_checkpoint_name(monkeypatch):
    monkeypatch.setattr(Path, "exists", lambda path: True)
    assert is_checkpoint("tiny") and is_checkpoint("tiny/step-000001")
    assert not any(map(is_checkpoint, ["/tiny", "tiny/..", "..", "../tiny", "/", "a/b/c", "./tiny"]))
