"""Messages that users read about errors."""

import numpy as np
import pytest
import torch

from explorer.translations import use_locale
from explorer.web.user_messages import user_message
from model.checkpoint import CheckpointError
from model.config import ModelConfig
from model.errors import ModelError


def make_checkpoint_error(cause: Exception) -> CheckpointError:
    return CheckpointError("checkpoint {name!r} cannot be loaded: {why}", name="tiny", why=cause)


def test_model_error_is_part_of_message():
    error = make_checkpoint_error(ModelError("its weights lack {name}", name="final_norm.weight"))
    assert user_message(error) == str(error) == "checkpoint 'tiny' cannot be loaded: its weights lack final_norm.weight"


def test_model_error_is_in_language_of_user():
    with pytest.raises(ModelError) as caught:
        ModelConfig.from_dict({"d_model": 8, "vocab_size": -1})
    with use_locale("zh-CN"):
        assert user_message(make_checkpoint_error(caught.value)).startswith("无法加载检查点 'tiny'：模型配置不完整：")
        lacks = ModelError(
            "its weights lack {name}: they are not complete, or of another model than its config", name="{why}"
        )
        assert "{why}" in user_message(make_checkpoint_error(lacks)) and user_message(
            make_checkpoint_error(lacks)
        ) != str(make_checkpoint_error(lacks))


def test_message_of_other_program_is_quoted():
    with use_locale("zh-CN"):
        assert (
            user_message(make_checkpoint_error(OSError("incomplete {metadata}")))
            == "无法加载检查点 'tiny'：incomplete {metadata}"
        )


def raise_gpu_out_of_memory():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


@pytest.mark.parametrize(
    "take",
    [lambda: np.empty(1 << 50), lambda: torch.empty(1 << 50), lambda: bytearray(1 << 60), raise_gpu_out_of_memory],
)
def test_out_of_memory_is_reported_and_logged(caplog, take):
    with pytest.raises((MemoryError, RuntimeError)) as short:
        take()
    assert user_message(short.value).startswith("The server has too little memory for this now")
    assert caplog.records[0].exc_info


def test_other_runtime_error_is_internal_error(caplog):
    assert user_message(RuntimeError("shape [7] is invalid")).startswith("Internal error (not your fault)")
