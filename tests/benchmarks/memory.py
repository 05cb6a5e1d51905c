"""Memory of a server that programs ask about ever new prompts: `python -m tests.benchmarks.memory`, on Linux."""

import argparse
import json
import random
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.benchmarks.browser import WORDS
from tests.benchmarks.served import served


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, nargs="+", default=[150, 400], help="after how many to measure")
    parser.add_argument("--words", type=int, default=180, help="of a prompt; some 200 tokens")
    parser.add_argument("--threads", type=int, default=8)
    options = parser.parse_args()
    with served() as (url, process):
        asked = 0
        print(f"after 0 prompts: {resident(process):,} MB", flush=True)
        for end in options.prompts:
            texts = [text_of(number, options.words) for number in range(asked, end)]
            with ThreadPoolExecutor(options.threads) as pool:
                list(pool.map(lambda text: explore(url, text), texts))
            asked = end
            print(f"after {asked} prompts: {resident(process):,} MB", flush=True)


def explore(url: str, text: str):
    """Ask, and wait for the answer."""
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


def text_of(number: int, num_words: int) -> str:
    """A prompt unlike those of other numbers, of more or fewer words by a third."""
    chance = random.Random(number)
    return " ".join(chance.choices(WORDS, k=chance.randint(num_words * 2 // 3, num_words * 4 // 3)))


def resident(process: int) -> int:
    """MB of physical memory that a process has."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) >> 10


if __name__ == "__main__":
    main()
