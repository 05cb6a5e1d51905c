"""Adapter compared with its base model: the initial state of the page, and the differences."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.cli_options import parse_arguments
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.page import Page
from model.checkpoint import CheckpointError, load_checkpoint
from model.pretrained.export_hugging_face import save_hugging_face

TEXT = "Once upon a time there was a fox"


@pytest.fixture(scope="module")
def adapter(tmp_path_factory) -> Path:
    """Return the folder of an adapter of the last block's W_O, next to that of its base model."""
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("adapter")
    save_hugging_face(*load_checkpoint("llama-fables"), folder / "base")
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = transformers.AutoModelForCausalLM.from_pretrained(folder / "base")
        settings = {"r": 2, "target_modules": ["o_proj"], "layers_to_transform": [5], "init_lora_weights": False}
        peft.get_peft_model(base, peft.LoraConfig(**settings)).save_pretrained(folder / "tuned")
    config = json.loads((folder / "tuned" / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(folder / "base")
    (folder / "tuned" / "adapter_config.json").write_text(json.dumps(config))
    return folder / "tuned"


def test_page_opens_with_adapter_and_its_base_model(adapter):
    assert parse_arguments(["--adapter", str(adapter)]).adapter == str(adapter)
    library = ModelLibrary("cpu")
    page = Page(library, library.catalog.open(adapter))
    page.build()
    first = page.actions.parse_query({"view": "compare"})
    assert (first.run.checkpoint, first.other.checkpoint) == ("tuned", "base")
    assert page.actions.parse_query({"checkpoint": "base"}).other is None
    comparison = RunService(library).comparison(page.actions.parse_query({"text": TEXT}))
    differs = {
        name: not np.array_equal(comparison.trace[name], comparison.other[name])
        for name in ("blocks.5.attn.z", "blocks.5.attn.out", "logits")
    }
    assert differs == {"blocks.5.attn.z": False, "blocks.5.attn.out": True, "logits": True}


def test_adapter_without_base_model_is_refused(adapter, tmp_path):
    (tmp_path / "lost").mkdir()
    config = json.loads((adapter / "adapter_config.json").read_text()) | {"base_model_name_or_path": "owner/name"}
    (tmp_path / "lost" / "adapter_config.json").write_text(json.dumps(config))
    catalog = ModelLibrary("cpu").catalog
    with pytest.raises(CheckpointError, match="its base model cannot be opened"):
        catalog.open(tmp_path / "lost")
    assert "lost" not in catalog.names
