"""Files that a user of this machine gives to the page, as to be opened as models."""

import atexit
import re
import shutil
import tempfile
from pathlib import Path
from urllib.parse import unquote

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from explorer.errors import UserError
from explorer.tracing.model_catalog import format_bytes
from explorer.translations import _
from explorer.web.user_messages import errors_as_responses
from model.file_formats import NUM_HEADER_BYTES, file_kind, unsupported_file_error

MAX_UPLOAD_BYTES = 4 << 30  # of all files together, which stay on the disk as long as the app runs
MAX_NAME_CHARACTERS = 100
NAME_HEADER = "x-file-name"  # which a page of another site may not send
UPLOAD_PATH = "/explorer/upload"


def too_large_sentence() -> str:
    """Return the sentence for more bytes than fit."""
    most = format_bytes(MAX_UPLOAD_BYTES)
    return _("Files given to the page have at most {most} together: type the path of this one instead.", most=most)


class FileUploads:
    """Route that saves the body of a request as a file in a temporary folder, and answers with its path.

    A file of a kind that is no model by itself is refused after its first bytes.
    """

    def __init__(self):
        self.folder: Path | None = None
        self.num_bytes = self.num_files = 0
        self.routes = [Route(UPLOAD_PATH, self.answer, methods=["POST"])]

    async def answer(self, request: Request) -> Response:
        """Save a file and return its path; 422 with a sentence if it is refused."""
        with errors_as_responses():
            return JSONResponse({"path": str(await self.save(request))})

    async def save(self, request: Request) -> Path:
        """Save the request's body; return its path.

        Raises:
            UserError: it has no name, or no room is left.
            ModelError: it is no GGUF file; the message says what it is.
            ClientDisconnect: it broke off.
        """
        name = re.sub(r"[^\w.-]", "_", Path(unquote(request.headers.get(NAME_HEADER, ""))).name)[-MAX_NAME_CHARACTERS:]
        length = request.headers.get("content-length", "")
        if not name.strip(".") or not length.isdigit():
            raise UserError(_("A file is sent with its name and its length."))
        if self.num_bytes + int(length) > MAX_UPLOAD_BYTES:
            raise UserError(too_large_sentence())
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="explorer-files-"))
            atexit.register(shutil.rmtree, self.folder, ignore_errors=True)
        if int(length) > (free := shutil.disk_usage(self.folder).free):
            raise UserError(_("The disk has {left} free, too little for this file.", left=format_bytes(free)))
        self.num_files += 1
        self.num_bytes += int(length)
        path = self.folder / str(self.num_files) / name
        try:
            return await self._write(path, request)
        except BaseException:
            self.num_bytes -= int(length)
            shutil.rmtree(path.parent, ignore_errors=True)
            raise

    async def _write(self, path: Path, request: Request) -> Path:
        path.parent.mkdir()
        length, num_bytes, is_checked = int(request.headers["content-length"]), 0, False
        with path.open("wb") as file:
            async for chunk in request.stream():
                num_bytes += len(chunk)
                if num_bytes > length:
                    raise UserError(too_large_sentence())
                await anyio.to_thread.run_sync(file.write, chunk)
                if not is_checked and num_bytes >= min(NUM_HEADER_BYTES, length):
                    file.flush()
                    is_checked = True
                    if file_kind(path) != "gguf":
                        raise unsupported_file_error(path)
        if num_bytes < length:
            raise ClientDisconnect
        if not is_checked:
            raise unsupported_file_error(path)
        return path
