"""Whether a server's memory stays as it is: `python -m tests.benchmarks.soak --minutes 60`, on Linux.

A class uses it all the time, and whoever has stayed for two minutes goes and another comes. Prints the curve of its
memory and what `/health` tells, and how both are in the end.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence

import httpx

from tests.benchmarks.classroom import family, tell
from tests.benchmarks.memory import resident
from tests.benchmarks.served import served
from tests.benchmarks.visitor import Told, Visitor

STAY = 120.0  # seconds
LOOKS, BAR = 60, 40  # lines of the curve; characters of the longest bar
MOST, MOST_TIMES = 2000, 1.5  # megabytes on the bundled models; of what it was after the first minute


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: workers=3")
    options = parser.parse_args()
    with served(options.app) as (address, process):
        told, curve = asyncio.run(soak(address, process, options.people, 60 * options.minutes))
    tell(told)
    print(verdict(curve))


async def soak(address: str, server: int, people: int, seconds: float) -> tuple[Told, list[tuple[float, int]]]:
    """What people waited for, and the megabytes of the server's processes by seconds since they came."""
    told, began, curve = Told(), time.monotonic(), []

    async def seat(number: int):
        while (now := time.monotonic()) < began + seconds:
            try:
                await Visitor(number, address, told).stay(min(began + seconds, now + STAY))
            except Exception as error:  # what else than a lost connection befell somebody
                told.errors.append(f"{type(error).__name__}: {error}")
            number += people

    async def look():
        while True:
            curve.append((time.monotonic() - began, megabytes := sum(map(resident, family(server)))))
            health = (await client.get(f"{address}health")).json()
            traces, bar = health["traces_bytes"] / 1e6, "█" * round(BAR * megabytes / MOST)
            seen = f"{len(health['models'])} models, traces {traces:,.0f} MB, {health['sessions']} sessions"
            print(f"{curve[-1][0]:6,.0f} s {megabytes:6,} MB {bar:{BAR}} {seen}, {health['queue']} wait", flush=True)
            await asyncio.sleep(max(5, seconds / LOOKS))

    async with httpx.AsyncClient(timeout=60) as client:
        looking = asyncio.create_task(look())
        await asyncio.gather(*map(seat, range(people)))
        looking.cancel()
    return told, curve


def verdict(curve: Sequence[tuple[float, int]]) -> str:
    """How much memory it was in the end, beside what it was after the first minute, or a third of less than three."""
    first = next(megabytes for seconds, megabytes in curve if seconds >= min(60, curve[-1][0] / 3))
    most, last = max(megabytes for _seconds, megabytes in curve), curve[-1][1]
    times = last / first
    holds = times <= MOST_TIMES and most < MOST
    told = (
        f"{last:,} MB in the end are {times:.2f} times the {first:,} MB of the first minute, and {most:,} MB the most"
    )
    return f"{told}: {'within' if holds else 'BEYOND'} {MOST_TIMES} times and {MOST:,} MB"


if __name__ == "__main__":
    main()
