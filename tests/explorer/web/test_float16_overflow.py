"""Error messages for a model whose numbers overflow, and its loading in float32."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from explorer.state.page_state import RunRequest
from explorer.tracing.capture import capture
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import LogitsCache, RunService
from explorer.web.actions.page_state_builder import PageStateBuilder
from explorer.web.browser_api.endpoints import BrowserEndpoints
from explorer.web.public_api import PublicApi
from explorer.web.user_messages import USER_ERRORS, user_message
from model.errors import NonFiniteLogitsError
from model.pretrained.export_hugging_face import save_hugging_face

OVERFLOW_MESSAGE = (
    r"overflow in float16, which ends at 65,504: open it in float32 \(python app.py --dtype float32, or load_checkpo"
)


@pytest.fixture
def overflowing_model(tiny_checkpoint, lms, tiny_tokenizer, tmp_path):
    """Folder of a model whose weights are finite in float16 and whose activations overflow."""
    folder = save_hugging_face(lms["rope"], tiny_tokenizer, tmp_path / "overflowing")
    weights = load_file(folder / "model.safetensors")
    factors = {"down_proj": 30_000, "up_proj": 30}
    for name, weight in weights.items():
        weights[name] = (weight * factors.get(name.split(".")[-2], 1)).half()
    save_file(weights, folder / "model.safetensors")
    return folder


def test_overflow_is_reported_by_every_api(overflowing_model):
    library = ModelLibrary("cpu")
    checkpoint = library.catalog.open(overflowing_model / "model.safetensors")
    assert checkpoint == "overflowing"
    lm, _tokenizer = library.model(checkpoint)
    runs = RunService(library)
    api, endpoints = PublicApi(PageStateBuilder(runs), checkpoint), BrowserEndpoints(runs)
    state = RunRequest(checkpoint, (5, 6, 7)).as_dict() | {"view": "attention"}
    for call in (
        lambda: capture(lm, [5, 6, 7]),
        lambda: capture(lm, [5, 6, 7], max_bytes=0),
        lambda: LogitsCache(library).trace(checkpoint, (5, 6, 7)),
        lambda: api.explore("the fox"),
        lambda: api.generate("the fox", max_new_tokens=2),
        lambda: endpoints.answer("show", state),
        lambda: endpoints.answer("token", state),
    ):
        with pytest.raises(USER_ERRORS, match=OVERFLOW_MESSAGE):
            call()
    assert user_message(NonFiniteLogitsError("{why}", why=ValueError("too large"))) == "too large"


def test_model_opens_in_float32(overflowing_model):
    library = ModelLibrary("cpu", dtype="float32")
    checkpoint = library.catalog.open(overflowing_model)
    assert library.model(checkpoint)[0].dtype == torch.float32
    assert library.model("tiny")[0].dtype == torch.float32  # the bundled models keep their dtype
    answer = PublicApi(PageStateBuilder(RunService(library)), checkpoint).explore("the fox")
    assert all(0 <= token["probability"] <= 1 for token in answer["next_tokens"])
