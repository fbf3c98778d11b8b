"""`python -m tools.derive [TYPE …]`: derives the tables of these model types, or of all, into data/families."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import time
import traceback
from pathlib import Path

import transformers

from app.models.table import BY_HAND_FOLDER, FAMILIES_FOLDER
from tools.derive import reading
from tools.derive.attention import forward_pass
from tools.derive.checking import check
from tools.derive.deriving import Deriver, NoRule
from tools.derive.library import ModelClass, model_types
from tools.derive.parts import pointer
from tools.derive.sampling import Unbuildable
from tools.derive.tables import TableDeriver
from tools.derive.writing import Table, text_of

SECONDS = 300  # per type
MEMORY = 9 << 30
SAME = 12  # configs in which two classes are compared


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.derive", description=__doc__)
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("--refused", action="store_true", help="only the types that have no table")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="of processor time, for one type at most")
    parser.add_argument("--folder", type=Path, default=FAMILIES_FOLDER, help="where the tables are")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    known = {name: classes for name, classes in model_types().items() if not (BY_HAND_FOLDER / name).exists()}
    wanted = arguments.types or sorted(known, key=lambda name: (ModelClass.has_part(name), name))
    if arguments.refused:
        wanted = [name for name in wanted if not (folder / name).exists() or "\nrefused" in (folder / name).read_text()]
    folder.mkdir(parents=True, exist_ok=True)
    for model_type in wanted:
        start = time.monotonic()
        _in_child(folder, model_type, known[model_type], arguments.seconds)
        first = (folder / model_type).read_text().splitlines()[1]
        print(f"{model_type}: {first} ({time.monotonic() - start:.0f} s)", flush=True)


def _in_child(folder: Path, model_type: str, classes: list[str], seconds: int) -> None:
    """Derive one type in a process of its own, which may take so long and so much memory."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.setitimer(signal.ITIMER_PROF, seconds)  # processor time: the machine may be busy
        try:
            write(folder, model_type, derive(folder, model_type, classes))
        except BaseException:  # the parent writes why there is no table
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) == signal.SIGPROF
        reason = f"deriving them took more than {seconds} seconds" if late else "deriving them took too much memory"
        write(folder, model_type, [refusal("class", reason)])
    elif os.WEXITSTATUS(status):
        write(folder, model_type, [refusal("class", "the tool that derives them failed")])


def derive(folder: Path, model_type: str, classes: list[str]) -> list[Table]:
    """The tables of a type, or the refusal that takes their place."""
    tables = list[Table]()
    deriver: Deriver | None = None
    for name in classes:
        try:
            model_class = ModelClass(model_type, name)
        except Exception as reason:  # classes raise anything
            print(reason)
            return tables or [refusal("class", "no small model of this type could be built")]
        if model_class.is_other or (deriver and tables and _has_same_tensors(deriver, model_class)):
            if not model_class.is_other:
                tables[-1] = {
                    f"{heading} {name}" if heading.startswith("class") else heading: rows
                    for heading, rows in tables[-1].items()
                }
            continue
        try:
            table = pointer(model_class, folder) if model_class.part else None
            if table is None:
                deriver = Deriver(model_class)
                table = _table(deriver)
                if model_class.part and (folder / model_class.text_type).exists():
                    table["text part"].insert(1, ("type", model_class.text_type))
            tables.append(table)
        except NoRule as reason:
            tables = tables or [refusal(reason.kind, reason.what)]
        except Unbuildable as reason:
            print(reason)
            tables = tables or [refusal("class", "no small model of this type could be built")]
        if next(iter(tables[0])).startswith("refused"):
            break
    return tables or [refusal("class", "its only class reads the config of another type")]


def _has_same_tensors(deriver: Deriver, other: ModelClass) -> bool:
    """Whether another class has the same tensors and the same attention for the same configs."""
    same = 0
    for sample in deriver.samples[:SAME]:
        try:
            if other.tensors(other.build(sample.given)) != sample.shapes:
                return False
            if same < 2 and forward_pass(other, sample.given) != forward_pass(deriver.model_class, sample.given):
                return False
        except Exception:  # noqa: S112 - classes raise anything
            continue
        same += 1
    return same > SAME // 2


def _table(deriver: Deriver) -> Table:
    tables = TableDeriver(deriver)
    table = tables.table()
    check(deriver, tables.heads, reading.parse(text_of([table], ""))[0])
    return table | tables.without_effect()


def refusal(kind: str, what: str) -> Table:
    return {f"refused  {kind}  {' '.join(what.split())}": []}


def write(folder: Path, model_type: str, tables: list[Table]) -> None:
    (folder / model_type).write_text(text_of(tables, f"{model_type}, transformers {transformers.__version__}"))


if __name__ == "__main__":
    main()
