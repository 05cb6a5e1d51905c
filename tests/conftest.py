"""Set-up of all tests, before the first is collected."""

import gc
import os

import pytest

# The models are tiny: a second thread of a product only waits, and for long where cores are shared. NumPy and PyTorch
# read it when they are imported, here and in what tests start.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_configure(config: pytest.Config):
    """Load the plugins, unless this process only hands tests to others: it would delay them by importing torch."""
    if config.getoption("dist", "no") == "no":
        # before autograd counts the devices, which it does once
        config.pluginmanager.import_plugin("tests.devices")
        config.pluginmanager.import_plugin("tests.fixtures")


def pytest_xdist_auto_num_workers() -> int:
    """Return a worker for each core: one more has its own servers, browser and models to start, and takes longer."""
    return os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exempt what is imported and collected from garbage collection, which would take a third of all other time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
