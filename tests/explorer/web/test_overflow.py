"""A model whose numbers overflow is told in a sentence wherever it is asked, and opens in float32."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.state.run import Run
from explorer.tracing.capture import capture
from explorer.tracing.library import Library
from explorer.tracing.logits_cache import LogitsCache
from explorer.tracing.runs import Runs
from explorer.web.answers.endpoints import Endpoints
from explorer.web.api import Api
from explorer.web.errors import VISITORS, told
from explorer.web.events.opening import Opening
from model.overflow import OverflowedRunError
from model.pretrained.saving import save_hugging_face

TOLD = r"overflow in float16, which ends at 65,504: open it in float32 \(python app.py --dtype float32, or load_checkpo"


@pytest.fixture
def overflowing(tiny_checkpoint, lms, tiny_tokenizer, tmp_path):
    """A folder of weights that are finite in float16, and activations that are not."""
    folder = save_hugging_face(lms["rope"], tiny_tokenizer, tmp_path / "overflowing")
    weights = load_file(folder / "model.safetensors")
    factors = {"down_proj": 30_000, "up_proj": 30}
    for name, weight in weights.items():
        weights[name] = (weight * factors.get(name.split(".")[-2], 1)).half()
    save_file(weights, folder / "model.safetensors")
    return folder


def test_every_way_to_ask_is_told(overflowing):
    library = Library("cpu")
    checkpoint = library.offered.open(overflowing / "model.safetensors")
    assert checkpoint == "overflowing"
    lm, _tokenizer = library.model(checkpoint)
    runs = Runs(library)
    api, endpoints = Api(Opening(runs), checkpoint), Endpoints(runs)
    state = Run(checkpoint, (5, 6, 7)).as_dict() | {"view": "attention"}
    for ask in (
        lambda: capture(lm, [5, 6, 7]),
        lambda: capture(lm, [5, 6, 7], most_bytes=0),
        lambda: LogitsCache(library).trace(checkpoint, (5, 6, 7)),
        lambda: api.explore("the fox"),
        lambda: api.generate("the fox", max_new_tokens=2),
        lambda: endpoints.answer("show", state),
        lambda: endpoints.answer("token", state),
    ):
        with pytest.raises(VISITORS, match=TOLD):
            ask()
    assert told(OverflowedRunError("{why}", why=ValueError("too large"))) == "too large"


def test_in_float32_it_opens(overflowing):
    library = Library("cpu", dtype="float32")
    checkpoint = library.offered.open(overflowing)
    assert library.model(checkpoint)[0].dtype == torch.float32
    assert library.model("tiny")[0].dtype == torch.float32  # ours keep what they are
    answer = Api(Opening(Runs(library)), checkpoint).explore("the fox")
    assert all(0 <= token["probability"] <= 1 for token in answer["next_tokens"])
