"""Start of the app: model, page and server, and what a user is told if one of them cannot start."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence

from explorer.cli_options import allowed_hub_models, user_limits
from explorer.diagnosis.command_line import register_user_module
from explorer.lessons.yaml_blocks import LessonError
from explorer.tracing.model_catalog import available_bytes, format_bytes
from explorer.tracing.model_library import MAX_MODEL_CACHE_BYTES, MAX_TRACE_CACHE_BYTES, ModelLibrary, set_num_threads
from explorer.views import add_user_views
from explorer.web.key_value_stores import StoreError
from explorer.web.page import Page
from model import CheckpointError
from model.checkpoint import is_checkpoint
from model.errors import NonFiniteLogitsError
from model.weight_placement import limit_malloc_arenas

LITTLE_MEMORY_BYTES = 3 << 30  # of free memory; below, the caches are smaller


def serve(options: argparse.Namespace, version_notes: Sequence[str] = ()) -> None:
    """Serve the page until the process is ended; exit with a sentence if that is not possible.

    Args:
        version_notes: about packages of other versions than those tried, printed once the page is served.
    """
    if options.max_memory and not options.device_map:
        sys.exit("error: --max-memory needs --device-map auto: add it")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("explorer").setLevel(options.log_level.upper())
    limit_malloc_arenas()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that cleanup handlers run
    notes, cache_sizes = list(version_notes), {}
    if (left := available_bytes("cpu")) is not None and left < LITTLE_MEMORY_BYTES:
        cache_sizes = small_cache_limits(left)
        notes.append(f"only {format_bytes(left)} of memory are free, so that fewer models and runs are kept")
    try:
        placement_options = {"device_map": options.device_map, "max_memory": options.max_memory}
        dtype = None if options.dtype == "auto" else options.dtype
        hub_names = allowed_hub_models(options)
        library = ModelLibrary(options.device, hub_names=hub_names, dtype=dtype, **placement_options, **cache_sizes)
        if options.module:
            checkpoint = register_user_module(options, library)
        else:
            name = library.catalog.resolve(options.adapter or options.checkpoint)
            checkpoint = name if is_checkpoint(name) else library.catalog.open(name)
        lm, _tokenizer = library.model(checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    set_num_threads(lm.config)
    add_user_views(options.views)
    launch_options = {"server_name": options.host, "server_port": options.port, "share": options.share, "quiet": True}
    try:
        page = Page(library, checkpoint, user_limits(options), options.lessons, options.store)
        blocks = page.launch(options.allowed_hosts, prevent_thread_lock=True, **launch_options)
    except (LessonError, StoreError, OSError) as error:
        sys.exit(f"error: {error}")
    public = f", public URL: {blocks.share_url}" if blocks.share_url else ""
    print(f"Running on local URL: {blocks.local_url}{public}", flush=True)
    if notes:
        print(f"Note: {'; '.join(notes)}", flush=True)
    try:
        page.warm_up()
    except NonFiniteLogitsError as error:  # which every visitor would be told
        sys.exit(f"error: {error}")
    blocks.block_thread()


def small_cache_limits(num_bytes: int) -> dict[str, int]:
    """Return limits of a library's caches that fit into the free memory, which loading and running need, too."""
    return {
        "max_model_cache_bytes": min(MAX_MODEL_CACHE_BYTES, num_bytes // 4),
        "max_trace_cache_bytes": min(MAX_TRACE_CACHE_BYTES, num_bytes // 8),
        "max_trace_bytes": num_bytes // 16,
    }
