"""Comparison of a model with reference logits."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoint import load_checkpoint
from model.errors import ModelError
from model.pretrained import reference_logits as module
from model.pretrained.export_hugging_face import save_hugging_face
from model.pretrained.reference_logits import REFERENCE_LOGITS, LogitAgreement, compare_with_reference
from tests.hugging_face import transformers
from tests.sample_models import STORIES


@pytest.fixture(scope="module")
def saved_folder(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("saved"))


@pytest.fixture
def stored_logits(saved_folder):
    """Path of the stored logits, restored after the test."""
    path = saved_folder / REFERENCE_LOGITS
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


def test_equal_weights_agree_with_stored_logits(saved_folder):
    agreement = compare_with_reference(saved_folder, *load_checkpoint(saved_folder))
    assert agreement.reference == "stored" and agreement.holds
    assert agreement.max_difference < 1e-4 and 5 < agreement.scale < 100


def test_transformers_is_reference_without_stored_logits(saved_folder, stored_logits):
    stored_logits.unlink()
    agreement = compare_with_reference(saved_folder, *load_checkpoint(saved_folder))
    assert agreement.reference == "transformers" and agreement.holds and agreement.max_difference < 1e-4


def test_no_reference_gives_no_result(saved_folder, stored_logits, monkeypatch):
    stored_logits.unlink()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert compare_with_reference(saved_folder, *load_checkpoint(saved_folder)) is None
    assert compare_with_reference(STORIES, *load_checkpoint(STORIES)) is None


@pytest.mark.parametrize("reference", ["stored", "transformers"])
def test_altered_weights_do_not_agree(saved_folder, stored_logits, reference):
    if reference == "transformers":
        stored_logits.unlink()
    lm, tokenizer = load_checkpoint(saved_folder)
    lm.blocks[2].ffn.up_proj.weight.data[3] *= 1.5
    agreement = compare_with_reference(saved_folder, lm, tokenizer)
    assert agreement.reference == reference and not agreement.holds and agreement.max_difference > 0.01


def test_nan_is_no_agreement():
    assert not LogitAgreement("stored", float("nan"), 10).holds
    assert LogitAgreement("stored", 9e-4, 10).holds and not LogitAgreement("stored", 1.1e-3, 10).holds


def test_damaged_reference_logits_are_reported(saved_folder, stored_logits):
    lm, tokenizer = load_checkpoint(saved_folder)
    logits = load_file(stored_logits)
    save_file({"logits": logits["logits"]}, stored_logits)
    with pytest.raises(ModelError, match="does not hold token_ids and logits"):
        compare_with_reference(saved_folder, lm, tokenizer)
    save_file(logits | {"logits": logits["logits"][:, :9].contiguous()}, stored_logits)
    with pytest.raises(
        ModelError, match=r"the stored reference logits have the shape \(16, 9\), the model’s logits \(16, 512\)"
    ):
        compare_with_reference(saved_folder, lm, tokenizer)


def test_stored_logits_match_transformers(saved_folder):
    stored = load_file(saved_folder / REFERENCE_LOGITS)
    with torch.no_grad():
        hf_logits = transformers.AutoModelForCausalLM.from_pretrained(saved_folder)(stored["token_ids"][None]).logits[0]
    torch.testing.assert_close(stored["logits"], hf_logits, atol=1e-4, rtol=1e-5)
