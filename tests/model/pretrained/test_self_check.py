"""A model is compared with what is known of it elsewhere."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoint import load_checkpoint
from model.errors import ModelError
from model.pretrained import self_check as module
from model.pretrained.saving import save_hugging_face
from model.pretrained.self_check import KNOWN_LOGITS, Agreement, self_check
from tests.hugging_face import transformers
from tests.specimens import STORIES


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_hugging_face(*load_checkpoint(STORIES), tmp_path_factory.mktemp("saved"))


@pytest.fixture
def known(saved):
    """The stored logits, put back after the test."""
    path = saved / KNOWN_LOGITS
    content = path.read_bytes()
    yield path
    path.write_bytes(content)


def test_the_same_weights_agree_with_stored_logits(saved):
    found = self_check(saved, *load_checkpoint(saved))
    assert found.reference == "stored" and found.holds
    assert found.largest < 1e-4 and 5 < found.scale < 100


def test_without_stored_ones_transformers_is_asked(saved, known):
    known.unlink()
    found = self_check(saved, *load_checkpoint(saved))
    assert found.reference == "transformers" and found.holds and found.largest < 1e-4


def test_without_either_nothing_is_claimed(saved, known, monkeypatch):
    known.unlink()
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    assert self_check(saved, *load_checkpoint(saved)) is None
    assert self_check(STORIES, *load_checkpoint(STORIES)) is None


@pytest.mark.parametrize("reference", ["stored", "transformers"])
def test_other_weights_do_not_agree(saved, known, reference):
    if reference == "transformers":
        known.unlink()
    lm, tokenizer = load_checkpoint(saved)
    lm.blocks[2].ffn.up_proj.weight.data[3] *= 1.5
    found = self_check(saved, lm, tokenizer)
    assert found.reference == reference and not found.holds and found.largest > 0.01


def test_no_number_is_no_agreement():
    assert not Agreement("stored", float("nan"), 10).holds
    assert Agreement("stored", 9e-4, 10).holds and not Agreement("stored", 1.1e-3, 10).holds


def test_damaged_logits_are_told(saved, known):
    lm, tokenizer = load_checkpoint(saved)
    logits = load_file(known)
    save_file({"logits": logits["logits"]}, known)
    with pytest.raises(ModelError, match="does not hold token_ids and logits"):
        self_check(saved, lm, tokenizer)
    save_file(logits | {"logits": logits["logits"][:, :9].contiguous()}, known)
    with pytest.raises(ModelError, match=r"the logits beside it are \(16, 9\), its own \(16, 512\)"):
        self_check(saved, lm, tokenizer)


def test_the_logits_that_are_stored_are_those_of_transformers(saved):
    stored = load_file(saved / KNOWN_LOGITS)
    with torch.no_grad():
        theirs = transformers.AutoModelForCausalLM.from_pretrained(saved)(stored["token_ids"][None]).logits[0]
    torch.testing.assert_close(stored["logits"], theirs, atol=1e-4, rtol=1e-5)
