"""What all tests need before the first is found."""

import gc
import os

import pytest

# The models are tiny: a second thread of a product only waits, and for long where cores are shared. NumPy and PyTorch
# read it when they are imported, here and in what tests start.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_configure(config: pytest.Config):
    """The process that hands tests out to others runs none: nobody waits until it, too, has imported torch."""
    if config.getoption("dist", "no") == "no":
        # before autograd counts the devices, which it does once
        config.pluginmanager.import_plugin("tests.devices")
        config.pluginmanager.import_plugin("tests.fixtures")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays to the end: looking for garbage in it again and again takes as long as a
    third of all else."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
