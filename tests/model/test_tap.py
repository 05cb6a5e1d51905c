import torch
from torch import nn

from model.layers.basic_layers import Tap


def test_is_the_identity_with_no_weights():
    tap, x = Tap(), torch.randn(3)
    assert tap(x) is x
    assert dict(tap.state_dict()) == {}
    assert isinstance(tap, nn.Module)


def test_knows_whether_a_hook_sits_on_it():
    tap = Tap()
    assert not tap.has_hooks
    handle = tap.register_forward_hook(lambda tap, inputs, output: None)
    assert tap.has_hooks
    handle.remove()
    assert not tap.has_hooks
