"""Start the TransformerLM Explorer: `python app.py`, then open the URL it prints."""

import logging
import os
import signal
import sys

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
# Threads of numpy's small products would wait for one another under several users.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from explorer.diagnosis.register import register_own_module
from explorer.lessons.course.yaml_blocks import LessonError
from explorer.options import allowed_hub_models, parse_arguments, user_limits
from explorer.tracing.devices import set_num_threads
from explorer.tracing.model_library import ModelLibrary
from explorer.views import add_user_views
from explorer.web.page import Page
from explorer.web.stores import StoreError
from model import CheckpointError
from model.checkpoint import is_checkpoint
from model.errors import OverflowedRunError
from model.offloading import limit_malloc_arenas


def main():
    options = parse_arguments()
    if options.max_memory and not options.device_map:
        sys.exit("error: --max-memory needs --device-map auto: add it")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("explorer").setLevel(options.log_level.upper())
    limit_malloc_arenas()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that cleanup handlers run
    try:
        placement_options = {"device_map": options.device_map, "max_memory": options.max_memory}
        dtype = None if options.dtype == "auto" else options.dtype
        library = ModelLibrary(options.device, hub_names=allowed_hub_models(options), dtype=dtype, **placement_options)
        if options.module:
            checkpoint = register_own_module(options, library)
        else:
            name = library.catalog.resolve(options.checkpoint)
            checkpoint = name if is_checkpoint(name) else library.catalog.open(options.checkpoint)
        lm, _tokenizer = library.model(checkpoint)
    except (CheckpointError, ValueError) as error:
        sys.exit(f"error: {error}")
    set_num_threads(lm.config)
    add_user_views(options.views)
    try:
        page = Page(library, checkpoint, user_limits(options), options.lessons, options.store)
    except (LessonError, StoreError, OSError) as error:
        sys.exit(f"error: {error}")
    launch_options = {"server_name": options.host, "server_port": options.port, "share": options.share}
    blocks = page.launch(options.allowed_hosts, prevent_thread_lock=True, **launch_options)
    try:
        page.warm_up()
    except OverflowedRunError as error:  # which every visitor would be told
        sys.exit(f"error: {error}")
    blocks.block_thread()


if __name__ == "__main__":
    main()
