"""Our models, exported as GGUF files: read back equal by us, by llama.cpp's own package, and by transformers."""

import gguf
import pytest
import torch
from torch.testing import assert_close

from model.checkpoint import load_checkpoint
from model.config import RopeScaling
from model.errors import ModelError
from model.export import main
from model.gguf.export_gguf import save_gguf
from model.gguf.gguf_tokenizer import _WORD_SPLITS, find_word_split
from tests.hugging_face import transformers
from tests.model.pretrained.gguf_files import write_gguf
from tests.model.pretrained.model_kinds import KINDS
from tests.sample_models import TEXT

LINEAR = RopeScaling(kind="linear", factor=4.0)
GPT2 = {"norm": "layernorm", "bias": True, "ffn": "gelu_tanh", "position": "learned"}
EXPORTS = {
    "llama": ({}, "llama"),
    "llama, its pairs halves apart": ({"rope_layout": "half_split", "num_kv_heads": 1, "head_dim": 6}, "llama"),
    "llama, all biases": ({"bias": True, "rope_scaling": LINEAR}, "llama"),
    "llama, tied": ({"tie_embeddings": True}, "llama"),
    "qwen2": ({"qkv_bias": True}, "qwen2"),
    "qwen3": ({"qk_norm": True}, "qwen3"),
    "gpt2": (GPT2, "gpt2"),
    "gpt2, sinusoidal": (GPT2 | {"position": "sinusoidal"}, "gpt2"),
    "gpt2, tied": (GPT2 | {"tie_embeddings": True}, "gpt2"),
}
IDS = torch.arange(3, 19)[None]


@pytest.mark.parametrize("name", EXPORTS)
def test_exported_model_is_read_back_equal(name, make_lm, tiny_checkpoint, tmp_path):
    changes, architecture = EXPORTS[name]
    tokenizer = load_checkpoint("tiny")[1]
    lm = make_lm(vocab_size=tokenizer.vocab_size, **changes)
    path = save_gguf(lm, tokenizer, tmp_path / "x.gguf")
    copy, copied_tokenizer = load_checkpoint(path)
    assert_close(copy(IDS), lm(IDS), atol=1e-5, rtol=1e-5)
    for text in (TEXT, "é 12 \n\n  x <|endoftext|>"):
        assert copied_tokenizer.encode(text) == tokenizer.encode(text)
    assert copied_tokenizer.eos_ids == tokenizer.eos_ids and copied_tokenizer.bos_ids == ()
    assert copied_tokenizer.vocabulary == tokenizer.vocabulary
    reader = gguf.GGUFReader(path)
    assert reader.fields["general.architecture"].contents() == architecture
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], lm.config.num_layers).mapping
    expected = {gguf_name for _kind, gguf_name in names.values()}
    assert {tensor.name.rpartition(".")[0] for tensor in reader.tensors} <= expected


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2"])
def test_transformers_reads_exported_model(name, make_lm, tiny_checkpoint, tmp_path):
    tokenizer = load_checkpoint("tiny")[1]
    width = {"d_ff": 96, "context_length": 1024} if name == "gpt2" else {}  # transformers assumes these
    lm = make_lm(vocab_size=tokenizer.vocab_size, **EXPORTS[name][0], **width)
    save_gguf(lm, tokenizer, tmp_path / "x.gguf")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="x.gguf", dtype=torch.float32).eval()
    with torch.no_grad():
        assert_close(model(IDS).logits, lm(IDS), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrices_have_requested_dtype(dtype, make_lm, tiny_checkpoint, tmp_path):
    tokenizer = load_checkpoint("tiny")[1]
    lm = make_lm(vocab_size=tokenizer.vocab_size)
    copy = load_checkpoint(save_gguf(lm, tokenizer, tmp_path / "x.gguf", dtype))[0]
    assert copy.dtype == dtype and copy.final_norm.weight.dtype == torch.float32
    assert torch.equal(copy.token_embedding.weight, lm.token_embedding.weight.to(dtype))


def test_gguf_file_is_exported_again(tmp_path):
    """Tokenizer, template and logits stay unchanged."""
    torch.manual_seed(0)
    write_gguf(
        tmp_path / "x.gguf", transformers.LlamaForCausalLM(transformers.LlamaConfig(**KINDS["Llama 2"][1])), "llama"
    )
    main([str(tmp_path / "x.gguf"), "--to", "gguf", "--out", str(tmp_path / "copy.gguf")])
    (lm, tokenizer), (copy, copied_tokenizer) = (load_checkpoint(tmp_path / name) for name in ("x.gguf", "copy.gguf"))
    assert copy.config == lm.config and torch.equal(copy(IDS), lm(IDS))
    assert copied_tokenizer.chat_template == tokenizer.chat_template
    assert copied_tokenizer.encode("foo bar") == tokenizer.encode("foo bar")
    with pytest.raises(SystemExit, match="exists: name another file"):
        main([str(tmp_path / "x.gguf"), "--to", "gguf", "--out", str(tmp_path / "copy.gguf")])


UNSUPPORTED = {
    "ReLU": (GPT2 | {"ffn": "relu"}, "no model of llama.cpp that is known here has ffn 'relu'"),
    "post-norm": ({"norm_placement": "post"}, "has norm_placement 'post'"),
    "windows": ({"windows": (4, None)}, "has windows"),
    "YaRN": ({"rope_scaling": RopeScaling(kind="yarn", factor=2.0)}, "scaled as yarn are not written"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_model_is_refused(name, make_lm, tiny_checkpoint, tmp_path):
    changes, message = UNSUPPORTED[name]
    tokenizer = load_checkpoint("tiny")[1]
    with pytest.raises(ModelError, match=message):
        save_gguf(make_lm(vocab_size=tokenizer.vocab_size, **changes), tokenizer, tmp_path / "x.gguf")
    assert not list(tmp_path.glob("*.gguf*"))


def test_word_splits_are_distinguished():
    from model.gguf.gguf_tokenizer import _byte_level

    for name, split in _WORD_SPLITS.items():
        assert _WORD_SPLITS[find_word_split(_byte_level({}, ["a"], split))]._replace(adds_bos=False) == split._replace(
            adds_bos=False
        ), name
