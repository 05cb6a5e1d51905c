"""Health and metrics endpoint."""

import platform
import resource
import sys
from pathlib import Path
from typing import Any

import gradio as gr
import torch

from explorer import __version__
from explorer.tracing.model_library import ModelLibrary
from explorer.web.stores import OptionalStore


def health(
    library: ModelLibrary, blocks: gr.Blocks, num_waiting: int = 0, shared: OptionalStore | None = None
) -> dict[str, Any]:
    """Return the server's current status.

    Returns:
        `version`, its own and of its libraries; `models`, names of those in memory; `traces_bytes`, of cached
            activations; `sessions` that Gradio stores; `rss_bytes`, resident memory; `queue`, number of waiting
            requests; `shared`, location of the shared store and whether it is available, "" for none.
    """
    memory = library.memory()
    location = shared.location if shared else ""
    holder = getattr(blocks.app, "state_holder", None)
    python = platform.python_version()
    return {
        "version": f"{__version__}, gradio {gr.__version__}, torch {torch.__version__}, python {python}",
        "models": sorted(memory["models"]),
        "traces_bytes": memory["traces_bytes"] + memory["looked_at_bytes"],
        "sessions": len(holder.session_data) if holder else 0,
        "rss_bytes": resident_bytes(),
        "queue": len(blocks._queue) + num_waiting,
        "shared": location if not shared or shared.is_available else f"{location}, which does not answer",
    }


def resident_bytes() -> int:
    """Return the process's resident memory in bytes, or its peak where the system reports only that."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak << 10
