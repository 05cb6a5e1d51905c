"""Conversion of tensors to NumPy arrays."""

import numpy as np
import pytest
import torch

from explorer.tracing.numpy_arrays import as_array, as_unbatched_arrays


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_array_is_read_only_float32(dtype):
    tensor = torch.tensor([0.5, -2.0], dtype=dtype)
    array = as_array(tensor)
    assert array.dtype == np.float32 and array.tolist() == [0.5, -2.0]
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_float32_memory_is_shared():
    tensor = torch.zeros(2)
    array = as_array(tensor)
    tensor[1] = 3
    assert array.tolist() == [0, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_tensor_with_two_names_becomes_one_array(dtype):
    one, other = torch.zeros(1, 2, dtype=dtype), torch.ones(1, 2, dtype=dtype)
    arrays = as_unbatched_arrays({"left": one, "entered": one, "other": other})
    assert list(arrays) == ["left", "entered", "other"]
    assert arrays["left"] is arrays["entered"]
    assert arrays["left"].tolist() == [0, 0] and arrays["other"].tolist() == [1, 1]
