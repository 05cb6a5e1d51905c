"""Actual memory of a process that captures runs, measured in a subprocess."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import random, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from explorer.web.public_api import PublicApi
from explorer.tracing.model_library import ModelLibrary
from explorer.tracing.run_service import RunService
from explorer.web.actions.page_state_builder import PageStateBuilder

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 >> 10

def text(number):
    chance = random.Random(number)
    return " ".join(chance.choices("Once upon a time there was a fox".split(), k=chance.randint(120, 240)))

library = ModelLibrary("cpu", max_trace_cache_bytes=int(sys.argv[1]) << 20)
api = PublicApi(PageStateBuilder(RunService(library)), "llama-fables")
api.explore("the fox")
before = resident()
with ThreadPoolExecutor(8) as pool:
    for _ in pool.map(api.explore, map(text, range(int(sys.argv[2])))):
        pass
print(resident() - before)
"""
MAX_TRACE_MB, MAX_OVERHEAD_MB, PROMPTS = (
    150,
    400,
    64,
)  # MB; MB that a busy machine may add; about 2.2 GB are captured


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident memory from /proc, as on Linux")
def test_process_memory_matches_counted_traces():
    command = [sys.executable, "-c", SCRIPT, str(MAX_TRACE_MB), str(PROMPTS)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True)
    assert int(run.stdout) < MAX_TRACE_MB + MAX_OVERHEAD_MB
