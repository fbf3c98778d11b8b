"""How long something computes, independent of other work on the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def processor_time_s(call: Callable[[], object]) -> float:
    """Seconds of processor time that a call takes, in all threads of this process."""
    gc.disable()
    try:
        started = time.process_time()
        call()
        return time.process_time() - started
    finally:
        gc.enable()
