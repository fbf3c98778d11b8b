"""Runs a module of static/js without a browser, in Deno, which `make check` also uses."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deno import find_deno_bin

from app.settings import PROJECT

# Each line on standard input is an expression in JSON; its value is written as JSON on a line of standard output.
_EVALUATE_LINES = """
import process from "node:process";
import readline from "node:readline";
Object.assign(globalThis, await import({address}));
for await (const line of readline.createInterface({{ input: process.stdin }}))
  console.log(JSON.stringify((0, eval)(JSON.parse(line)) ?? null));
"""


class Script:
    """A running module whose exports are global variables: `script("outcomeOf(503, true)")` is 'failed'."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, code: str, *arguments: object) -> Any:
        names = ", ".join(f"${number}" for number in range(len(arguments)))
        call = f"(({names}) => {code})({', '.join(map(json.dumps, arguments))})"
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"failed: {code}"
        return json.loads(answer)


@contextmanager
def running_script(name: str) -> Iterator[Script]:
    """The module static/js/NAME.js, loaded once for any number of calls."""
    code = _EVALUATE_LINES.format(address=json.dumps((PROJECT / "static" / "js" / f"{name}.js").as_uri()))
    command = [find_deno_bin(), "eval", "--no-config", "--no-lock", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Script(process)
        assert process.stdin
        process.stdin.close()
