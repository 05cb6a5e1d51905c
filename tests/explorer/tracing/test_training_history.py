"""Training metadata of a model, as read from its files."""

import gc
import json
import shutil

import numpy as np
import pytest
import torch

from explorer.tracing.capture import capture
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.training_history import load_training_history, log2_step
from model.checkpoint import load_checkpoint, save_checkpoint
from model.transformer_lm import TransformerLM

STEPS = (0, 4, 16)
LINES = [
    '{"step": 8, "loss": 2.5}',
    "no JSON",
    '{"step": 4, "loss": 3, "rate": 0.1}',
    '{"loss": 1}',
    "[1]",
    '{"step": "x"}',
]


@pytest.fixture
def series(tiny_checkpoint, tiny_lm, tiny_tokenizer):
    """Return the folder of three steps of "fables" with a training record and a shared tokenizer."""
    folder = tiny_checkpoint.with_name("fables")
    for step in STEPS:
        torch.manual_seed(step)
        save_checkpoint(TransformerLM(tiny_lm.config), None, folder / f"step-{step:06d}", dtype=torch.float32)
    tiny_tokenizer.save(folder / "tokenizer.tiktoken")
    (folder / "training.jsonl").write_text("\n".join(LINES), encoding="utf-8")
    return folder


def name(step: int) -> str:
    return f"fables/step-{step:06d}"


def test_trace_has_its_models_training_history(series):
    training = ModelLibrary("cpu").trace(name(4), (1, 2)).training
    assert (training.checkpoint, training.model, training.step) == (name(4), "fables", 4)
    assert training.snapshots == {step: name(step) for step in STEPS}
    assert training.record["step"].tolist() == [4, 8] and training.record["loss"].tolist() == [3, 2.5]
    assert training.record["rate"][0] == 0.1 and np.isnan(training.record["rate"][1])


def test_single_checkpoint_has_only_a_record(series, tiny_checkpoint):
    assert not ModelLibrary("cpu").trace("tiny", (1, 2)).training.snapshots
    assert not ModelLibrary("cpu").trace("tiny", (1, 2)).training.record
    (tiny_checkpoint / "training.jsonl").write_text(json.dumps({"step": 7, "loss": 2}))
    training = ModelLibrary("cpu").trace("tiny", (1, 2)).training
    assert training.record["step"].tolist() == [7] and training.step is None
    (series.parent / "training.jsonl").write_text(json.dumps({"step": 9}))
    shutil.rmtree(series / "step-000004")
    shutil.rmtree(series / "step-000016")
    assert load_training_history("tiny", ["tiny"], tiny_checkpoint.with_name("nowhere")).record == {}
    assert load_training_history(name(0), ["tiny", name(0)], series / "step-000000").snapshots == {}


def test_text_is_run_at_every_step(series):
    library = ModelLibrary("cpu")
    lm, trace = library.model_and_trace(name(4), (3, 1, 2))
    runs = trace.at_training_steps()
    assert list(runs) == list(STEPS) and runs[4] == (lm, trace)
    for step, (_lm, run) in runs.items():
        plain = capture(load_checkpoint(name(step))[0], (3, 1, 2))
        assert run.training.step == step
        np.testing.assert_array_equal(run["logits"], plain["logits"])
        run.weights["lm_head.weight"]
    assert trace.at_training_steps()[16][1] is runs[16][1]


def test_unregistered_model_has_no_steps(tiny_lm):
    assert capture(tiny_lm, [1, 2]).at_training_steps() == {}


@pytest.mark.exhaustive
def test_unreferenced_library_is_freed(series):
    library = ModelLibrary("cpu")
    lm, trace = library.model_and_trace(name(4), (3, 1))
    assert trace.at_training_steps()
    del library
    gc.collect()
    with pytest.raises(ReferenceError, match="library"):
        trace.at_training_steps()
    assert lm is not None


def test_nearest_step_uses_a_logarithmic_scale(series):
    training = ModelLibrary("cpu").trace(name(4), (1, 2)).training
    nearest = {0: 0, 1: 0, 2: 4, 7: 4, 9: 16, 10**6: 16}  # 1 is as far from 1/2 as 2 from 4
    assert {step: training.nearest(step) for step in nearest} == {
        step: name(nearest_step) for step, nearest_step in nearest.items()
    }
    assert log2_step(0) == -1 and log2_step(1024) == 10
