"""GGUF files in the page: a model that does not fit into the memory stays in its file."""

import shutil
import struct

import numpy as np
import torch

from explorer.tracing import model_library
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.browser_api.page_contents import PageContents
from model.gguf.gguf_file import read_licence
from tests.hugging_face import transformers
from tests.model.pretrained.gguf_files import write_gguf
from tests.model.pretrained.model_kinds import KINDS


def test_in_memory_and_offloaded_traces_agree(tmp_path, monkeypatch):
    torch.manual_seed(0)
    _name, settings = KINDS["Llama 2"]
    write_gguf(tmp_path / "large.gguf", transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings)), "llama")
    traces, models = [], []  # a trace reads weights of its model while that lives
    shutil.copy(tmp_path / "large.gguf", tmp_path / "small.gguf")
    for name, available in (("small", 1 << 30), ("large", 20_000)):
        monkeypatch.setattr(model_library, "available_bytes", lambda device, available=available: available)
        library = ModelLibrary("cpu")
        assert library.catalog.open(tmp_path / f"{name}.gguf") == name
        lm, tokenizer = library.model(name)
        models.append(lm)
        assert (lm.offloaded is not None) == (name == "large")
        traces.append(library.trace(name, tuple(tokenizer.encode("the fox"))))
    for name in ("blocks.1.attn.pattern", "blocks.2.ffn.hidden", "logits"):
        np.testing.assert_array_equal(traces[0][name], traces[1][name])
    weight = "blocks.0.attn.o_proj.weight"
    np.testing.assert_array_equal(traces[0].weights[weight][3], traces[1].weights[weight][3])
    assert library.memory()["models_bytes"] < 20_000


def test_page_shows_licence_and_chat_template(tmp_path):
    _name, settings = KINDS["Llama 2"]
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings))
    write_gguf(tmp_path / "fox.gguf", model, "llama", general_license="mit", tokenizer_chat_template="{{ messages }}")
    write_gguf(tmp_path / "owl.gguf", model, "llama")
    library = ModelLibrary("cpu")
    facts = {}
    for name in ("fox", "owl"):
        library.catalog.open(tmp_path / f"{name}.gguf")
        facts[name] = PageContents(RunService(library)).model_facts(name)["facts"]
    assert facts["fox"].endswith("cpu · licence: MIT · with a chat template")
    assert "licence" not in facts["owl"]


def test_licence_is_read_only_before_vocabulary(tmp_path):
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    licence = text("general.license") + struct.pack("<I", 8) + text("mit")
    vocabulary = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 1 << 20)
    start = b"GGUF" + struct.pack("<IQQ", 3, 0, 2)
    contents = {start + licence + vocabulary: "mit", start + vocabulary + licence: "", start + licence[:9]: "", b"": ""}
    for content, name in contents.items():
        (tmp_path / "x.gguf").write_bytes(content)
        assert read_licence(tmp_path / "x.gguf") == name
