"""What a server tells whoever looks after it."""

import platform
import resource
import sys
from pathlib import Path
from typing import Any

import gradio as gr
import torch

from explorer.tracing.library import Library
from explorer.web.shared.going_without import GoingWithout


def health(library: Library, blocks: gr.Blocks, shared: GoingWithout | None = None) -> dict[str, Any]:
    """The server as it is now.

    Returns:
        `version`, of what it runs on; `models`, names of those in memory; `traces_bytes`, of what was captured and is
        kept; `sessions` that Gradio keeps something of; `rss_bytes`, its memory; `queue`, how many wait for their turn;
        `shared`, where answers are that other processes have, too, and whether they are found there, "" for nowhere.
    """
    memory = library.memory()
    place = shared.place if shared else ""
    holder, turns = getattr(blocks.app, "state_holder", None), getattr(blocks, "limiter", None)
    return {
        "version": f"gradio {gr.__version__}, torch {torch.__version__}, python {platform.python_version()}",
        "models": sorted(memory["models"]),
        "traces_bytes": memory["traces_bytes"] + memory["looked_at_bytes"],
        "sessions": len(holder.session_data) if holder else 0,
        "rss_bytes": resident(),
        "queue": len(blocks._queue) + (turns.waiting if turns else 0),
        "shared": place if not shared or shared.is_there else f"{place}, which does not answer",
    }


def resident() -> int:
    """Bytes of physical memory that this process has; where the system does not tell, the most that it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most << 10
