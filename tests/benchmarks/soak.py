"""Growth of a server's memory: `python -m tests.benchmarks.soak --minutes 60`, on Linux.

A class uses it all the time; each person leaves after two minutes and another comes. Prints its memory over time and
the numbers of `/health`, and at the end both.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

import httpx

from tests.benchmarks.app_server import serve_app
from tests.benchmarks.classroom import print_report, process_tree
from tests.benchmarks.memory import resident_mb
from tests.benchmarks.simulated_user import Measurements, SimulatedUser

STAY_S = 120.0  # seconds
NUM_SAMPLES, BAR_CHARS = 60, 40  # lines of the curve; characters of the longest bar
MAX_MB, MAX_GROWTH = 2000, 1.5  # MB with the bundled models; ratio to the memory after the first minute


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: public")
    options = parser.parse_args()
    with serve_app(options.app) as (address, process):
        measurements, curve = asyncio.run(soak(address, process, options.people, 60 * options.minutes))
    print_report(measurements)
    print(verdict(curve))


async def soak(address: str, server: int, people: int, seconds: float) -> tuple[Measurements, list[tuple[float, int]]]:
    """Return the measurements, and the memory of the server's processes as (seconds since the start, MB)."""
    measurements, began, curve = Measurements(), time.monotonic(), []

    async def run_seat(number: int):
        while (now := time.monotonic()) < began + seconds:
            try:
                await SimulatedUser(number, address, measurements).stay(min(began + seconds, now + STAY_S))
            except Exception as error:  # errors other than a lost connection
                measurements.errors.append(f"{type(error).__name__}: {error}")
            number += people

    async def sample_memory():
        while True:
            curve.append((time.monotonic() - began, megabytes := sum(map(resident_mb, process_tree(server)))))
            health = (await client.get(f"{address}health")).json()
            traces, bar = health["traces_bytes"] / 1e6, "█" * round(BAR_CHARS * megabytes / MAX_MB)
            summary = f"{len(health['models'])} models, traces {traces:,.0f} MB, {health['sessions']} sessions"
            print(
                f"{curve[-1][0]:6,.0f} s {megabytes:6,} MB {bar:{BAR_CHARS}} {summary}, {health['queue']} wait",
                flush=True,
            )
            await asyncio.sleep(max(5, seconds / NUM_SAMPLES))

    async with httpx.AsyncClient(timeout=60) as client:
        sampling = asyncio.create_task(sample_memory())
        await asyncio.gather(*map(run_seat, range(people)))
        sampling.cancel()
    return measurements, curve


def verdict(curve: Sequence[tuple[float, int]]) -> str:
    """Compare the final memory with that after the first minute, or after a third of a run under three minutes."""
    first = next(megabytes for seconds, megabytes in curve if seconds >= min(60, curve[-1][0] / 3))
    peak, last = max(megabytes for _seconds, megabytes in curve), curve[-1][1]
    growth = last / first
    holds = growth <= MAX_GROWTH and peak < MAX_MB
    summary = (
        f"{last:,} MB in the end are {growth:.2f} times the {first:,} MB of the first minute, and {peak:,} MB the most"
    )
    return f"{summary}: {'within' if holds else 'BEYOND'} {MAX_GROWTH} times and {MAX_MB:,} MB"


if __name__ == "__main__":
    main()
