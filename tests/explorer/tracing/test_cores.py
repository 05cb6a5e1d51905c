"""How many cores a computation takes."""

import threading

import pytest
import torch

from explorer.tracing import cores
from explorer.tracing.cores import sharing_cores


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(cores, "CORES", 4)
    yield
    torch.set_num_threads(before)


def test_who_computes_alone_takes_all():
    with sharing_cores():
        assert torch.get_num_threads() == 4


def test_two_take_half_each_and_the_next_all_again():
    inside, end = threading.Event(), threading.Event()

    def other():
        with sharing_cores():
            inside.set()
            end.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with sharing_cores():
        assert torch.get_num_threads() == 2
    end.set()
    thread.join()
    with pytest.raises(ZeroDivisionError), sharing_cores():
        raise ZeroDivisionError
    with sharing_cores():
        assert torch.get_num_threads() == 4


def test_nobody_takes_less_than_one(monkeypatch):
    monkeypatch.setattr(cores, "_computing", 9)
    with sharing_cores():
        assert torch.get_num_threads() == 1
