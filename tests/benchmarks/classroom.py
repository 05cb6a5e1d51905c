"""Waiting times of many users: `python -m tests.benchmarks.classroom --people 30 --seconds 60`, on Linux.

The simulated people share the machine's cores with the server, which is a process of its own. Its memory is
printed every minute, or more often in a run of a few. Fairness is the slowest person's waiting time over the median
person's, where a person's is the mean over all their waits, each relative to the median wait for the same.
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

from tests.benchmarks.app_server import serve_app
from tests.benchmarks.memory import resident_mb
from tests.benchmarks.simulated_user import Measurements, SimulatedUser

SHARED_PROMPT = "Once upon a time there was a little fox who lived near the lake and slept"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--same", action="store_true", help="all users run the same prompt, like a class that follows its teacher"
    )
    parser.add_argument("--address", help="URL of a running server (default: start one)")
    parser.add_argument("--app", nargs="*", default=[], help="arguments of app.py, without the dashes: public")
    options = parser.parse_args()
    running_server = options.address and (options.address, None)
    with nullcontext(running_server) if running_server else serve_app(options.app) as (address, process):
        measurements = asyncio.run(run_classroom(address, options.people, options.seconds, options.same, process))
    print_report(measurements)
    print(f"the server computed for {cpu:.1f} s") if (cpu := measurements.server_seconds) else None
    print("load over one, five and fifteen minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


async def run_classroom(
    address: str, people: int, seconds: float, share_prompt: bool = False, server: int | None = None
) -> Measurements:
    """Run simulated users for some seconds.

    Args:
        server: id of its process, whose memory is printed regularly; None: unknown.
    """
    measurements, until = Measurements(), time.monotonic() + seconds
    before = cpu_seconds(server) if server else 0.0
    watching = asyncio.create_task(print_memory_usage(server, seconds)) if server else None
    staying = [
        SimulatedUser(number, address, measurements, SHARED_PROMPT if share_prompt else None).stay(until)
        for number in range(people)
    ]
    for left in await asyncio.gather(*staying, return_exceptions=True):
        if left is not None:
            measurements.errors.append(f"{type(left).__name__}: {left}")
    if watching:
        watching.cancel()
        measurements.server_seconds = cpu_seconds(server) - before
    return measurements


async def print_memory_usage(server: int, seconds: float):
    """Print the memory of a server and its child processes regularly, and its growth since the first minute."""
    began, every, after_a_minute = time.monotonic(), min(60, max(5, seconds / 12)), 0
    while True:
        passed, megabytes = time.monotonic() - began, sum(map(resident_mb, process_tree(server)))
        since = f", {megabytes / after_a_minute:.2f} × after the first minute" if after_a_minute else ""
        print(f"after {passed:4.0f} s: {megabytes:,} MB{since}", flush=True)
        if not after_a_minute and passed >= 60:
            after_a_minute = megabytes
        await asyncio.sleep(every)


def process_tree(process: int) -> list[int]:
    """Return a process and all its descendants."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return [process, *(descendant for child in children for descendant in process_tree(int(child)))]


def cpu_seconds(server: int) -> float:
    """Return the CPU seconds of a server and its child processes."""
    stats = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in process_tree(server)]
    return sum(int(process[11]) + int(process[12]) for process in stats) / os.sysconf("SC_CLK_TCK")


def print_report(measurements: Measurements):
    for label, seconds in measurements.seconds.items():
        print(
            f"{label:20} {len(seconds):5} times:",
            ", ".join(f"p{p} {1000 * percentile(seconds, p):,.0f} ms" for p in (50, 95, 99)),
            f"at most {1000 * max(seconds):,.0f} ms",
        )
    if measurements.seconds_by_person:
        print(
            f"the slowest person waits {slowest_person_ratio(measurements.seconds_by_person):.2f} "
            f"times as long as the median person"
        )
    print(
        (
            f"{len(measurements.errors)} errors; {measurements.lost_connections} "
            f"times nobody answered; {measurements.lost_texts} texts lost;"
        ),
        f"{measurements.num_queue_messages} times a place in the queue told",
    )
    for error in sorted(set(measurements.errors))[:8]:
        print(f"  {error}")


def slowest_person_ratio(seconds_by_person: Mapping[str, Mapping[int, Sequence[float]]]) -> float:
    """Return the slowest person's relative waiting time over the median person's.

    Args:
        seconds_by_person: kind of request -> person -> seconds. One kind would not be enough, as each person
            often has few requests of one kind.
    """
    times = defaultdict(list)
    for waits in seconds_by_person.values():
        median = statistics.median(values for seconds in waits.values() for values in seconds)
        for person, seconds in waits.items():
            times[person] += [values / median for values in seconds]
    means = [statistics.fmean(values) for values in times.values()]
    return max(means) / statistics.median(means)


def percentile(seconds: Sequence[float], percent: int) -> float:
    if len(seconds) < 2:
        return seconds[0] if seconds else float("nan")
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]


if __name__ == "__main__":
    main()
