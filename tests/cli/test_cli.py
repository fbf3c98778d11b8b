"""The commands of the terminal: what they print, and the one line for input that cannot be used."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from app import __version__
from app.cli import COMMANDS_BY_MODULE, main
from app.cli.serve import _greet, start_line
from app.settings import PROJECT, Settings
from tests.helpers.model_imports import SMALL_LLAMA
from tests.helpers.school import School
from tests.helpers.shipped import LIBRARY

ENTRY = [sys.executable, "-c", "from app.cli import main; main()"]


def read_pdf(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that is done prints; nothing on standard error."""
    main(arguments)
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def printed_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    text = read_pdf(capsys, *arguments, "--json")
    assert text.count("\n") == 1
    return json.loads(text)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command whose input cannot be used: status 2, nothing on standard output."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert output.err.startswith("attention-shapes: ")
    keys = max(map(", ".join, (LIBRARY.worksheets, LIBRARY.models)), key=len)  # one list of them may be in it
    assert len(output.err) < len(keys) + 300
    return output.err


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config.json in a folder called tiny."""
    path = tmp_path / "tiny" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(SMALL_LLAMA), encoding="utf-8")
    return path


def changed(config: Path, **changes: object) -> str:
    """The path of the same config with other values, None for a field taken away."""
    left = {key: value for key, value in {**SMALL_LLAMA, **changes}.items() if value is not None}
    config.write_text(json.dumps(left), encoding="utf-8")
    return str(config)


# What the commands print


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each with key, name, family and card; the same as JSON."""
    lines = read_pdf(capsys, "models").splitlines()
    assert "llama-7b" in {line.split()[0] for line in lines}
    models = {entry["key"]: entry for entry in printed_json(capsys, "models")}
    assert len(models) == len(lines)
    assert models["gpt2"] | {"key": "gpt2", "name": "GPT-2", "family": "gpt2"} == models["gpt2"]
    assert set(models) >= {"llama-7b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "mistral-7b", "gpt2"}


def test_shapes_of_a_model_are_printed_as_promised(capsys: pytest.CaptureFixture[str]) -> None:
    described = printed_json(capsys, "shapes", "qwen2.5-0.5b", "--tokens", "50")
    assert set(described) >= {"model", "family", "tokens", "sizes", "head", "layer"}
    assert (described["family"], described["tokens"]) == ("qwen2", 50)
    sizes = {"d": 896, "H": 14, "G": 2, "d_h": 64, "d_v": 64, "d_ff": 4864, "V": 151_936, "L": 24, "C": 32_768}
    assert {symbol: described["sizes"][symbol] for symbol in sizes} == sizes
    assert described["head"] == {
        "input": [50, 896],
        "queries": [50, 64],
        "keys": [50, 64],
        "values": [50, 64],
        "scores": [50, 50],
        "weights": [50, 50],
        "context": [50, 64],
        "output": [50, 896],
    }
    layer = {"queries": [50, 896], "keys": [50, 128], "values": [50, 128], "output": [50, 896]}
    assert {key: described["layer"][key] for key in layer} == layer


def test_shapes_are_for_a_hundred_tokens_unless_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed_json(capsys, "shapes", "llama-7b")["head"]["queries"] == [100, 128]


def test_shapes_of_a_config_file_are_printed(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    described = printed_json(capsys, "shapes", str(config), "--tokens", "7")
    assert described["head"]["queries"] == [7, 16]
    assert described["layer"]["keys"] == [7, 32]
    assert read_pdf(capsys, "shapes", str(config)).startswith("tiny (llama), 100 tokens\n")
    other = config.rename(config.with_name("mine.json"))
    assert read_pdf(capsys, "shapes", str(other)).startswith("mine (llama), 100 tokens\n")


def test_the_table_of_shapes_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    text = read_pdf(capsys, "shapes", "llama-7b")
    assert text.startswith("LLaMA 7B (llama), 100 tokens\n")
    assert re.search(r"d=4096 +H=32 +G=32 +d_h=128", text)
    assert [line.split() for line in text.splitlines() if "queries" in line] == [
        ["queries", "100", "×", "128"],
        ["queries", "100", "×", "4096"],
        ["queries", "1", "×", "128"],
    ]


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_alone_is_printed_to(config: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*ENTRY, "shapes", str(config)], cwd=PROJECT, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"100 \xd7 16" in done.stdout


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_may_go(config: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [*ENTRY, "shapes", str(config)], cwd=PROJECT, env=buffered, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.stderr == b""


def test_a_head_is_run_for_real(config: Path) -> None:
    command = [*ENTRY, "run", str(config), "--tokens", "7", "--device", "cpu", "--dtype", "bfloat16", "--head", "3"]
    done = subprocess.run([*command, "--json"], cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert (result["device"], result["dtype"], result["head"], result["kv_head"]) == ("cpu", "bfloat16", 3, 1)
    assert (result["shapes"]["queries"], result["shapes"]["scores"], result["agrees"]) == ([7, 16], [7, 7], True)


def test_a_head_of_a_checkpoint_reads_a_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--weights", "smollm2", "--text", "The cat saw a cat", "--head", "8", "--layer", "0"]
    main(["run", *options, "--save", str(tmp_path / "head.npz")])
    printed = capsys.readouterr().out
    assert "The  ␣cat  ␣saw  ␣a  ␣cat" in printed
    assert re.search(r"W_K +blk\.0\.attn_k\.weight +192 × 576 .* 128 .* 191, .* 576 × 64", printed)
    assert re.search(r"queries +5 × 64", printed)
    with numpy.load(tmp_path / "head.npz") as saved:
        assert (saved["queries"].shape, str(saved["weights"].dtype)) == ((5, 64), "float32")
        strongest = saved["weights"].argmax(-1)
    main(["run", *options, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert [keys[0]["key"] for keys in result["strongest"]] == strongest.tolist()
    texts = [token["text"] for token in result["tokens"]]
    assert texts == ["The", "␣cat", "␣saw", "␣a", "␣cat"]
    rows = re.findall(r"(?m)^  (\d) (␣?\w+) +(␣?\w+)(?: \((\d)\))? \d+%", printed.split(":")[-1])
    names = [(texts[key], str(key + 1) if texts[key] == "␣cat" else "") for key in strongest]
    assert rows == [(str(at + 1), text, *name) for at, (text, name) in enumerate(zip(texts, names, strict=True))]


@pytest.mark.slow
def test_the_likelihood_of_a_text_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    means = []
    for text in ("The capital of France is Paris.", "Paris of the is capital France."):
        main(["run", "--weights", "smollm2", "--text", text, "--likelihood", "--json"])
        means.append(json.loads(capsys.readouterr().out)["likelihood"])
    assert 1 < means[0] < means[1] - 1


@pytest.mark.slow
def test_a_head_too_large_for_any_memory_is_run_on_the_meta_device() -> None:
    command = [*ENTRY, "run", "llama-7b", "--tokens", "131072", "--device", "meta"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"scores +131072 × 131072", done.stdout)
    assert done.stdout.splitlines()[-1] == "The answer key and PyTorch agree."


def test_help_and_version_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.model_fields.keys() - {"database_url"}
    for arguments, wanted in (
        (["--help"], ["models", "shapes", "run", "handout", "teacher", "serve"]),
        (["serve", "--help"], ["DATABASE_URL", *(f"ATTENTION_SHAPES_{name.upper()}" for name in settings)]),
        (["--version"], [__version__]),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        text = "".join(capsys.readouterr().out.split())
        assert [word for word in wanted if word not in text] == []


def test_every_command_is_found_in_its_module(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    (\S+)\s+(\S[^\n]*)", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in listed] == [name for names in COMMANDS_BY_MODULE.values() for name in names]
    for name, begin in listed:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert begin in " ".join(capsys.readouterr().out.split())


def test_shapes_are_printed_without_database_or_web() -> None:
    code = (
        "import sys; from app.cli import main; main(['shapes', 'llama-7b']);"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("LLaMA 7B")
    loaded = set(done.stderr.split())
    assert "pydantic_settings" in loaded
    assert not loaded & {
        "torch",
        "numpy",
        "fastapi",
        "starlette",
        "sqlalchemy",
        "alembic",
        "jinja2",
        "typst",
        "uvicorn",
    }


# Input that cannot be used


@pytest.mark.parametrize("name", ["shapes", "run"])
@pytest.mark.parametrize("tokens", ["0", "-3", "1000000000", "1.5", "", "many", "²", "9" * 5000, "9**9", "1,000"])
def test_tokens_that_cannot_be_used(capsys: pytest.CaptureFixture[str], name: str, tokens: str) -> None:
    assert re.search(r"[Tt]okens must be a whole number", refusal(capsys, name, "llama-7b", "--tokens", tokens))


def test_a_number_with_too_many_digits_is_told_how_many_there_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    assert "at most 18 digits" in refusal(capsys, "shapes", "llama-7b", "--tokens", "9" * 19)


def test_tokens_beyond_a_position_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert "table of 1,024 positions" in refusal(capsys, "shapes", "gpt2", "--tokens", "1025")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model_type": None}, "model_type"),
        ({"model_type": "nope"}, "nope"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "head"),
        ({"num_key_value_heads": 3}, "3"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"hidden_size": -64}, "hidden_size"),
        ({"hidden_size": 10**15}, "hidden_size"),
        ({"hidden_size": 64.5}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"hidden_size": "64"}, "hidden_size"),
        ({"hidden_size": [64] * 10_000}, "hidden_size"),
        ({"head_dim": -1}, "head_dim"),
        ({"num_attention_heads": -4}, "num_attention_heads"),
    ],
)
def test_configs_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], config: Path, changes: dict[str, object], sentence: str
) -> None:
    assert sentence in refusal(capsys, "shapes", changed(config, **changes))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b"[" * 100_000, b"hidden_size: 64", b'{"a": NaN}']
)
def test_files_that_are_no_config(capsys: pytest.CaptureFixture[str], config: Path, content: bytes) -> None:
    config.write_bytes(content)
    refusal(capsys, "shapes", str(config))


def test_a_stated_head_width_makes_odd_heads_possible(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    path = changed(config, num_attention_heads=5, num_key_value_heads=5, head_dim=24)
    assert printed_json(capsys, "shapes", path)["head"]["queries"] == [100, 24]


def test_fifty_megabytes_are_refused_unread(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    with config.open("wb") as file:
        file.truncate(50_000_000)
    assert "1,000,000 bytes" in refusal(capsys, "shapes", str(config))


@pytest.mark.parametrize("name", ["nope", "nope.json", "", "x" * 5000, "a\x00b", "/", ".", "%s", "\udcff"])
def test_models_and_files_that_are_not_there(
    capsys: pytest.CaptureFixture[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "llama-7b" in refusal(capsys, "shapes", name)


def test_a_setting_that_cannot_be_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_PORT", "x")
    assert refusal(capsys, "serve") == "attention-shapes: ATTENTION_SHAPES_PORT: must be a whole number.\n"


def test_a_path_with_nothing_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "absent" in refusal(capsys, "check-worksheets", str(tmp_path / "absent"))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nope"],
        ["shapes"],
        ["shapes", "llama-7b", "--nope"],
        ["shapes", "llama-7b", "--tokens"],
        ["run", "llama-7b", "--device", "tpu"],
        ["run", "llama-7b", "--dtype", "int3"],
        ["run", "llama-7b", "--head", "-1"],
        ["run", "llama-7b", "--head", "x"],
        ["run"],
        ["run", "llama-7b", "--weights", "smollm2", "--text", "a"],
        ["run", "llama-7b", "--text", "a"],
        ["run", "--weights", "smollm2"],
        ["run", "--weights", "smollm2", "--text", "a", "--topic", "single-head"],
        ["run", "--weights", "smollm2", "--text", "a", "--layer", "30"],
        ["run", "--weights", "smollm2", "--text", "a", "--layer", "x"],
        ["run", "--weights", "smollm2", "--text", ""],
        ["run", "--weights", "smollm2", "--text", "a", "--save", "/nowhere/head.npz"],
        ["run", "--weights", "/nowhere/model.gguf", "--text", "a"],
    ],
)
def test_commands_that_cannot_be_understood(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    refusal(capsys, *arguments)


# serve


@contextlib.contextmanager
def served(folder: Path, **environment: str) -> Iterator[tuple[str, int]]:
    """The program as it is started from a terminal, on a free port: host and port from the address it prints."""
    settings = {"ATTENTION_SHAPES_PORT": "0", "ATTENTION_SHAPES_DATA_DIR": str(folder / "data"), "DATABASE_URL": ""}
    command = [sys.executable, "-X", "importtime", *ENTRY[1:], "serve"]
    with (
        (folder / "imports").open("w") as imports,
        subprocess.Popen(
            command, cwd=PROJECT, env={**os.environ, **settings, **environment}, stdout=subprocess.PIPE, stderr=imports,
            text=True,
        ) as process,
    ):  # fmt: skip
        try:
            assert process.stdout
            address = re.search(r"http://([\d.]+):(\d+)", process.stdout.readline())
            assert address
            yield address.group(1), int(address.group(2))
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def asked(host: str, port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=120)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("host", "settings", "last_line"),
    [
        ("127.0.0.1", {}, "ATTENTION_SHAPES_HOST=0.0.0.0 make serve"),
        ("::1", {}, "ATTENTION_SHAPES_HOST=0.0.0.0 make serve"),
        ("0.0.0.0", {}, "http://192.168.1.20:8123"),  # noqa: S104 - compared, not bound
        ("::", {}, "http://192.168.1.20:8123"),
        ("192.168.1.77", {}, "/links/"),
        ("127.0.0.1", {"address": "https://shapes.example.org"}, "/links/"),
    ],
)
def test_serve_ends_with_how_to_sign_in_and_how_a_class_gets_here(
    school: School, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    host: str, settings: dict[str, Any], last_line: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("app.cli.serve.lan_addresses", lambda: ["192.168.1.20"])
    _greet(Settings(**settings), school.store, host, 8123)
    greeting = capsys.readouterr().out
    assert "/links/" in greeting
    assert last_line in greeting.splitlines()[-1]
    school.teacher()
    _greet(Settings(**settings), school.store, host, 8123)
    assert "/links/" not in capsys.readouterr().out


def test_the_log_begins_with_version_and_settings_but_no_password() -> None:
    line = start_line(
        Settings(
            workers=2,
            database_url="postgresql://shapes:hunter2@db/shapes",
            smtp="smtps://ada:hunter2@mail.example.org",
            smtp_from="shapes@example.org",
        )
    )
    assert all(part in line for part in (__version__, "PostgreSQL", "workers=2"))
    assert "hunter2" not in line


@pytest.mark.slow
def test_serve_prints_its_address_and_serves_there_without_torch(tmp_path: Path) -> None:
    with served(tmp_path) as (host, port):
        assert host == "127.0.0.1"
        assert asked(host, port, "/healthz/ready") == (200, '{"status":"ok"}')
        status, page = asked(host, port, "/sheet")
        assert status == 200
        assert "One head of LLaMA 7B" in page
        loaded = {line.rpartition("|")[2].strip() for line in (tmp_path / "imports").read_text().splitlines()}
        assert "uvicorn" in loaded
        assert not {name for name in loaded if name.partition(".")[0] == "torch"}
        assert (tmp_path / "data" / "attention-shapes.sqlite3").is_file()
        environment = {**os.environ, "ATTENTION_SHAPES_PORT": str(port), "ATTENTION_SHAPES_DATA_DIR": str(tmp_path)}
        second = subprocess.run(
            [*ENTRY, "serve"], cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
        )
        assert (second.returncode, second.stdout) == (2, "")
        assert second.stderr.startswith(f"attention-shapes: Cannot serve at 127.0.0.1:{port}: Address already in use")
        assert "ATTENTION_SHAPES_PORT" in second.stderr
        assert second.stderr.count("127.0.0.1") == second.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("ATTENTION_SHAPES_PORT", "http", "ATTENTION_SHAPES_PORT"),
        ("ATTENTION_SHAPES_PORT", "65536", "ATTENTION_SHAPES_PORT"),
        ("ATTENTION_SHAPES_PORT", "-1", "ATTENTION_SHAPES_PORT"),
        ("ATTENTION_SHAPES_PORT", "", "ATTENTION_SHAPES_PORT"),
        ("ATTENTION_SHAPES_HOST", "no such host", "Cannot serve at no such host:0"),
        ("ATTENTION_SHAPES_DATA_DIR", str(PROJECT / "README.md"), "README.md cannot be used"),
        ("DATABASE_URL", "nonsense", "DATABASE_URL"),
        ("DATABASE_URL", "mysql://h/d", "DATABASE_URL"),
        ("DATABASE_URL", "postgresql://127.0.0.1:1/d", "The database cannot be opened"),
    ],
)
def test_settings_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    value: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_PORT", "0")
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    monkeypatch.setenv(variable, value)
    assert sentence in refusal(capsys, "serve")


def test_a_file_of_the_data_folder_that_cannot_be_used_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ATTENTION_SHAPES_DATA_DIR", str(tmp_path))
    database, key = tmp_path / "attention-shapes.sqlite3", tmp_path / "secret.key"
    database.write_text("no database")
    for can_write, reason in ((True, "not a database"), (False, "cannot be written to")):
        monkeypatch.setattr("app.cli.database.os.access", lambda *_, can_write=can_write: can_write)
        sentence = refusal(capsys, "teacher", "add", "ada@example.org")
        assert f"{database} cannot be opened" in sentence
        assert reason in sentence
    key.unlink()
    key.mkdir()
    assert "secret.key cannot be used" in refusal(capsys, "teacher", "add", "ada@example.org")
