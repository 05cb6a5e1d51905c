import torch
from torch import nn

from model.layers.basic_layers import Tap


def test_tap_is_identity_without_weights():
    tap, x = Tap(), torch.randn(3)
    assert tap(x) is x
    assert dict(tap.state_dict()) == {}
    assert isinstance(tap, nn.Module)


def test_tap_knows_whether_it_has_hooks():
    tap = Tap()
    assert not tap.has_hooks
    handle = tap.register_forward_hook(lambda tap, inputs, output: None)
    assert tap.has_hooks
    handle.remove()
    assert not tap.has_hooks
