"""What a process holds, not what it counts: run in one of its own, whose memory nothing else moves."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import random, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from explorer.web.api import Api
from explorer.tracing.library import Library
from explorer.tracing.runs import Runs
from explorer.web.events.opening import Opening

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 >> 10

def text(number):
    chance = random.Random(number)
    return " ".join(chance.choices("Once upon a time there was a fox".split(), k=chance.randint(120, 240)))

library = Library("cpu", most_trace_bytes=int(sys.argv[1]) << 20)
api = Api(Opening(Runs(library)), "llama-fables")
api.explore("the fox")
before = resident()
with ThreadPoolExecutor(8) as pool:
    for _ in pool.map(api.explore, map(text, range(int(sys.argv[2])))):
        pass
print(resident() - before)
"""
MOST, BESIDE, PROMPTS = 150, 400, 64  # MB, MB of which a busy machine holds most; some 2.2 GB are captured


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the resident memory from /proc, as on Linux")
def test_a_server_s_memory_is_what_its_traces_are_counted_at_and_little_beside():
    command = [sys.executable, "-c", SCRIPT, str(MOST), str(PROMPTS)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=True)
    assert int(run.stdout) < MOST + BESIDE
