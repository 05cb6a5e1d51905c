"""Set-up of all tests, before the first is collected."""

import gc
import os

import pytest

# The models are tiny: a second thread per product only waits, longest on shared cores. NumPy and PyTorch
# read this when they are imported, here and in subprocesses.
os.environ["OMP_NUM_THREADS"] = "1"


def pytest_configure(config: pytest.Config):
    """Load the plugins, except in xdist's controller: importing torch there would delay the workers."""
    if config.getoption("dist", "no") == "no":
        # before autograd counts the devices, once per process
        config.pluginmanager.import_plugin("tests.devices")
        config.pluginmanager.import_plugin("tests.fixtures")


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker per core: further workers would start their own servers, browsers and models."""
    return os.cpu_count() or 1


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exempt imported and collected objects from garbage collection, which would add a third to the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
