"""Sends odd requests to pages and API, none of which may break anything or take long to answer: `make fuzz`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from app.web.shared import passwords
from tests.helpers.fuzzing import Fuzzer, fuzz_api, fuzzed_app
from tests.helpers.hard_requests import HardRequests


def main() -> None:
    """Send the requests and print what broke; exit with status 1 if anything did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="at random; a quarter of them to the API")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-hard", action="store_true", help="leave out long and odd texts in each field")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        app = fuzzed_app(Path(folder))
        operations = sum(len(methods) for methods in app.openapi()["paths"].values())
        sent_to_api, broken = fuzz_api(app, -(-arguments.requests // 4 // operations))
        print(f"{sent_to_api} requests to the API, {len(broken)} broke something", flush=True)
        fuzzer = Fuzzer(app, arguments.seed)
        fuzzer.run(arguments.requests - sent_to_api)
    sent, statuses = sum(fuzzer.statuses.values()), dict(sorted(fuzzer.statuses.items()))
    print(
        f"{sent} requests to the pages, {len(fuzzer.broken)} broke something; answers by status: {statuses}", flush=True
    )
    too_hard = [] if arguments.no_hard else _hard_requests()
    for line in dict.fromkeys([*broken, *fuzzer.broken, *too_hard]):
        print(line)
    sys.exit(bool(broken or fuzzer.broken or too_hard))


def _hard_requests() -> list[str]:
    passwords.SLOW_VERIFY_S = 0
    with tempfile.TemporaryDirectory() as folder:
        requests = HardRequests(fuzzed_app(Path(folder)), every_text=True)
        requests.run()
    slowest = max(requests.timed, key=lambda each: each.seconds)
    print(f"{len(requests.timed)} hard requests, {len(requests.too_hard)} too hard; the slowest took "
          f"{slowest.seconds:.2f} s of processor time: {slowest.request}", flush=True)  # fmt: skip
    return [f"{each.seconds:.2f} s {each.status} {each.request}" for each in requests.too_hard]


if __name__ == "__main__":
    main()
