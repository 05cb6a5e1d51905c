"""Starts the TransformerLM Explorer: `python app.py`, then open the address it prints."""

import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
from argparse import Namespace

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
# Of numpy's products, which are small here: several visitors' threads would wait for each other in the midst of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from explorer.lessons.course.blocks import LessonError
from explorer.options import hub_names, limits, parse_arguments
from explorer.own_module.serving import opened
from explorer.tracing.cores import set_threads
from explorer.tracing.library import Library
from explorer.web.page import Page
from explorer.web.shared.opened import store_at
from explorer.web.shared.store import StoreError
from explorer.web.workers.processes import Process
from explorer.web.workers.serving import serve
from explorer.web.workers.worker import Worker
from model import CheckpointError
from model.checkpoint import is_checkpoint
from model.freed_memory import share_heaps
from model.overflow import OverflowedRunError


def serve_from_workers(options: Namespace):
    host = options.host or os.environ.get("GRADIO_SERVER_NAME") or "127.0.0.1"
    port = options.port or int(os.environ.get("GRADIO_SERVER_PORT") or 7860)
    if not isinstance(options.workers, int):
        serve([Worker(number, *place) for number, place in enumerate(options.workers)], host, port)
        return
    command, shared = [sys.executable, *sys.argv], options.shared
    if not shared:
        folder = tempfile.mkdtemp(prefix="shared-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        shared = f"file:{folder}/answers.db"
        command += ["--shared", shared]
    store_at(shared, "answers")  # before all of them would make it at once
    if not hub_names(options):  # which each of them would decide by the address that it listens on itself
        command.append("--no-open")
    if options.host and "*" not in options.allowed_hosts:
        command += ["--allowed-hosts", *options.allowed_hosts, options.host]
    root = os.environ.get("GRADIO_ROOT_PATH", "")
    serve([Process(number, command, root) for number in range(options.workers)], host, port)


def main():
    options = parse_arguments()
    if options.max_memory and not options.device_map:
        sys.exit("error: --max-memory says what --device-map auto may take: give that, too")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("explorer").setLevel(options.log_level.upper())
    if options.workers != 1:
        try:
            serve_from_workers(options)
        except StoreError as error:
            sys.exit(f"error: {error}")
        return
    share_heaps()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that what was to be tidied up is
    try:
        spread = {"device_map": options.device_map, "max_memory": options.max_memory}
        dtype = None if options.dtype == "auto" else options.dtype
        library = Library(options.device, hub_names=hub_names(options), dtype=dtype, **spread)
        if options.module:
            checkpoint = opened(options, library)
        else:
            name = library.offered.resolve(options.checkpoint)
            checkpoint = name if is_checkpoint(name) else library.offered.open(options.checkpoint)
        lm, _tokenizer = library.model(checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    set_threads(lm.config)
    try:
        page = Page(library, checkpoint, limits(options), options.lessons, options.shared)
    except (LessonError, StoreError, OSError) as error:
        sys.exit(f"error: {error}")
    served = {"server_name": options.host, "server_port": options.port, "share": options.share}
    blocks = page.launch(options.allowed_hosts, prevent_thread_lock=True, **served)
    try:
        page.warm_up()
    except OverflowedRunError as error:  # which every visitor would be told
        sys.exit(f"error: {error}")
    blocks.block_thread()


if __name__ == "__main__":
    main()
