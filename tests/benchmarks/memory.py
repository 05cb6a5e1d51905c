"""Memory of a server under API requests with ever new prompts: `python -m tests.benchmarks.memory`, on Linux."""

import argparse
import json
import random
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.benchmarks.app_server import serve_app
from tests.benchmarks.browser import WORDS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--prompts", type=int, nargs="+", default=[150, 400], help="numbers of prompts after which memory is measured"
    )
    parser.add_argument("--words", type=int, default=180, help="words per prompt (180 words are some 200 tokens)")
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    with serve_app() as (url, process):
        num_prompts = 0
        print(f"after 0 prompts: {resident_mb(process):,} MB", flush=True)
        for end in options.prompts:
            texts = [random_prompt(number, options.words) for number in range(num_prompts, end)]
            with ThreadPoolExecutor(options.threads) as pool:
                list(pool.map(lambda text: explore(url, text), texts))
            num_prompts = end
            print(f"after {num_prompts} prompts: {resident_mb(process):,} MB", flush=True)


def explore(url: str, text: str):
    """Request an exploration, and wait for the answer."""
    call = f"{url}gradio_api/call/explore"
    request = urllib.request.Request(
        call, json.dumps({"data": [text, ""]}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as response:
        event = json.load(response)["event_id"]
    with urllib.request.urlopen(f"{call}/{event}") as stream:
        answer = stream.read().decode()
    if "event: complete" not in answer:
        sys.exit(f"no answer: {answer[:200]}")


def random_prompt(number: int, num_words: int) -> str:
    """Return a random prompt, seeded by its number, of about `num_words` words (± a third)."""
    rng = random.Random(number)
    return " ".join(rng.choices(WORDS, k=rng.randint(num_words * 2 // 3, num_words * 4 // 3)))


def resident_mb(process: int) -> int:
    """Return the physical memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) >> 10


if __name__ == "__main__":
    main()
