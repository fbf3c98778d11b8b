"""Sends twenty thousand odd requests to pages and API, none of which may break anything: `make fuzz`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.helpers.fuzzing import Fuzzer, fuzz_api, fuzzed_app


def main() -> None:
    """Send the requests and print what broke; exit with status 1 if anything did."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="in all; a quarter of them to the API")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        app = fuzzed_app(Path(folder))
        operations = sum(len(methods) for methods in app.openapi()["paths"].values())
        sent_to_api, broken = fuzz_api(app, -(-arguments.requests // 4 // operations))
        print(f"{sent_to_api} requests to the API, {len(broken)} broke something", flush=True)
        fuzzer = Fuzzer(app, arguments.seed)
        fuzzer.run(arguments.requests - sent_to_api)
    sent, statuses = sum(fuzzer.statuses.values()), dict(sorted(fuzzer.statuses.items()))
    print(f"{sent} requests to the pages, {len(fuzzer.broken)} broke something; answers by status: {statuses}")
    for line in dict.fromkeys([*broken, *fuzzer.broken]):
        print(line)
    sys.exit(bool(broken or fuzzer.broken))


if __name__ == "__main__":
    main()
