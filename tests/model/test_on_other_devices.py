"""Loading, generation and saving on other devices, compared with the CPU."""

from copy import deepcopy

import pytest
import torch

from model.checkpoint import load_checkpoint, save_checkpoint
from model.generation.autoregressive import beam_search, generate
from model.pretrained.export_hugging_face import save_hugging_face
from model.pretrained.reference_logits import compare_with_reference
from tests.devices import on_each_device

PROMPT = [5, 6, 7]


@on_each_device
@pytest.mark.parametrize("use_cache", [True, False])
def test_generated_tokens_agree(tiny_lm, use_cache, device):
    written = [
        [step.token_id for step in generate(lm, PROMPT, max_new_tokens=40, seed=1, top_k=50, use_cache=use_cache)]
        for lm in (tiny_lm, deepcopy(tiny_lm).to(device))
    ]
    assert len(written[0]) == 40 and written[0] == written[1]


@on_each_device
def test_beam_search_agrees(tiny_lm, device):
    on_cpu, on_device = (
        beam_search(lm, PROMPT, num_beams=4, max_new_tokens=8) for lm in (tiny_lm, deepcopy(tiny_lm).to(device))
    )
    assert [hypothesis.token_ids for hypothesis in on_device] == [hypothesis.token_ids for hypothesis in on_cpu]
    for one, other in zip(on_device, on_cpu, strict=True):
        assert one.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-3)


@on_each_device
def test_model_is_saved_and_loaded_unchanged(checkpoints_folder, tiny_lm, tiny_tokenizer, tmp_path, device):
    on_device = deepcopy(tiny_lm).to(device)
    save_checkpoint(on_device, tiny_tokenizer, "tiny", dtype=torch.float32)
    save_hugging_face(on_device, tiny_tokenizer, tmp_path / "theirs", dtype=torch.float32)
    for name_or_path in ("tiny", tmp_path / "theirs"):
        lm, _tokenizer = load_checkpoint(name_or_path, device)
        assert lm.device.type == torch.device(device).type
        with torch.inference_mode():
            logits, expected = (model(torch.tensor([PROMPT], device=model.device)).cpu() for model in (lm, tiny_lm))
        torch.testing.assert_close(logits, expected, atol=1e-3, rtol=0)
    assert compare_with_reference(tmp_path / "theirs", lm, tiny_tokenizer).holds
