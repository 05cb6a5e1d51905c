"""What each of many people waits for: `python -m tests.benchmarks.classroom --people 30 --seconds 60`, on Linux.

They share the machine's cores with the server, which is a process of its own; as theirs is. Its memory is printed every
minute, or oftener where all of it lasts a few. How fair it is: how long the slowest person waits over how long the
median person does, in the mean over all their waits, each in times of the median wait for the same.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from tests.benchmarks.memory import resident
from tests.benchmarks.served import served
from tests.benchmarks.visitor import Told, Visitor

SAME = "Once upon a time there was a little fox who lived near the lake and slept"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--same", action="store_true", help="all look at one prompt, as a class that is shown it does")
    parser.add_argument("--address", help="of a server that runs already; else one is started")
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: workers=3")
    options = parser.parse_args()
    given = options.address and (options.address, None)
    with nullcontext(given) if given else served(options.app) as (address, process):
        told = asyncio.run(classroom(address, options.people, options.seconds, options.same, process))
    tell(told)
    print(f"the server computed for {cpu:.1f} s") if (cpu := told.server_seconds) else None
    print("load over one, five and fifteen minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


async def classroom(address: str, people: int, seconds: float, same: bool = False, server: int | None = None) -> Told:
    """So many people for so long.

    Args:
        server: its process, whose memory is printed now and then.
    """
    told, until = Told(), time.monotonic() + seconds
    before = computed(server) if server else 0.0
    watching = asyncio.create_task(watch(server, seconds)) if server else None
    staying = [Visitor(number, address, told, SAME if same else None).stay(until) for number in range(people)]
    for left in await asyncio.gather(*staying, return_exceptions=True):
        if left is not None:
            told.errors.append(f"{type(left).__name__}: {left}")
    if watching:
        watching.cancel()
        told.server_seconds = computed(server) - before
    return told


async def watch(server: int, seconds: float):
    """Print the memory of a server and of the processes that it started, and how it grew since the first minute."""
    began, every, after_a_minute = time.monotonic(), min(60, max(5, seconds / 12)), 0
    while True:
        passed, megabytes = time.monotonic() - began, sum(map(resident, family(server)))
        since = f", {megabytes / after_a_minute:.2f} × after the first minute" if after_a_minute else ""
        print(f"after {passed:4.0f} s: {megabytes:,} MB{since}", flush=True)
        if not after_a_minute and passed >= 60:
            after_a_minute = megabytes
        await asyncio.sleep(every)


def family(process: int) -> list[int]:
    """A process and all below it."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return [process, *(each for child in children for each in family(int(child)))]


def computed(server: int) -> float:
    """Seconds of a core that a server and the processes that it started have had."""
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in family(server)]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def tell(told: Told):
    for what, seconds in told.seconds.items():
        print(
            f"{what:20} {len(seconds):5} times:",
            ", ".join(f"p{p} {1000 * at(seconds, p):,.0f} ms" for p in (50, 95, 99)),
            f"at most {1000 * max(seconds):,.0f} ms",
        )
    if told.of_each:
        print(f"the slowest person waits {slowest(told.of_each):.2f} times as long as the median person")
    print(
        f"{len(told.errors)} errors; {told.lost_connections} times nobody answered; {told.lost_texts} texts lost;",
        f"{told.told_places} times a place in the queue told",
    )
    for error in sorted(set(told.errors))[:8]:
        print(f"  {error}")


def slowest(of_each: Mapping[str, Mapping[int, Sequence[float]]]) -> float:
    """How long the slowest person waits, in times of the median person.

    Args:
        of_each: what is waited for -> who waited -> seconds. By one kind alone it would tell little of people, who are
            often asked once of it.
    """
    times = defaultdict(list)
    for of_people in of_each.values():
        usual = statistics.median(each for seconds in of_people.values() for each in seconds)
        for person, seconds in of_people.items():
            times[person] += [each / usual for each in seconds]
    means = [statistics.fmean(each) for each in times.values()]
    return max(means) / statistics.median(means)


def at(seconds: Sequence[float], percent: int) -> float:
    if len(seconds) < 2:
        return seconds[0] if seconds else float("nan")
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]


if __name__ == "__main__":
    main()
