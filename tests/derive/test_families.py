"""Tables in data/families, derived again from the installed transformers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import PROJECT

pytestmark = pytest.mark.slow
FAMILIES = PROJECT / "data" / "families"
# A plain decoder, experts behind dense layers, a latent, a hybrid, an encoder, two stacks with a word, and a pointer.
DERIVED_AGAIN = ("qwen2", "glm4_moe", "deepseek_v3", "falcon_h1", "bert", "t5", "gemma3")


@pytest.mark.parametrize("model_type", DERIVED_AGAIN)
def test_deriving_again_gives_the_same_table(model_type: str, tmp_path: Path) -> None:
    shutil.copy(FAMILIES / "gemma3_text", tmp_path)  # gemma3's table points to it
    command = [sys.executable, "-m", "tools.derive", model_type, "--folder", str(tmp_path)]
    subprocess.run(command, cwd=PROJECT, check=True)
    assert (tmp_path / model_type).read_text(encoding="utf-8") == (FAMILIES / model_type).read_text(encoding="utf-8")
