"""Pages with files that failed to load."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from tests.exhaustive import first_in_core

from .servers import IS_CONSISTENT, find_banner, generate_tokens

MODULE, PLOTLY, STYLE = "widgets/figure/figure.js", "explorer/static/*/plotly.js", "assets/*.css"
ANSWERS = "gradio_api/app_id"


def fail_requests(person, file: str, times: int = 1) -> list[str]:
    """Make the first `times` requests of a file fail; return a list that collects the URLs of all its requests."""
    urls = []

    def answer(route):
        urls.append(route.request.url)
        if len(urls) > times:
            return route.fallback()
        return route.abort() if len(urls) % 2 else route.fulfill(status=503, body="no")

    person.page.route(f"**/{file}", answer)
    return urls


def load(person, **query: str):
    """Start loading the page, whose files may fail."""
    person.page.goto(f"{person.address}?{urlencode({'view': 'attention', 'unfolded': 'all'} | query)}")


def find_incomplete_notice(person):
    return person.page.get_by_role("alert").and_(person.page.locator("#incomplete"))


@pytest.mark.parametrize("part", first_in_core([MODULE, STYLE]))
def test_page_reloads_after_script_or_style_failed(open_unreliable_page, part):
    person = open_unreliable_page(opens=False)
    fail_requests(person, part)
    load(person)
    person.wait_until(
        f"sessionStorage['explorer:incomplete'] && {IS_CONSISTENT} && !document.querySelector('#incomplete')"
    )
    assert person.evaluate("JSON.parse(sessionStorage['explorer:incomplete']).count") == 1


def test_incomplete_page_shows_notice_and_waits_for_server(open_unreliable_page):
    person = open_unreliable_page(opens=False)
    answers = fail_requests(person, ANSWERS, 2)
    fail_requests(person, PLOTLY)
    load(person, lang="zh-CN")
    expect(find_incomplete_notice(person)).to_contain_text("本页有部分内容缺失")
    assert len(answers) <= 2
    person.wait_until("document.querySelector('#attention-pattern .plot')?.dataset.draws")
    assert len(answers) > 2


@pytest.mark.exhaustive
def test_reload_after_interrupted_generation_shows_banner(open_unreliable_page):
    person = open_unreliable_page(temperature=0, max_new_tokens=512)
    generate_tokens(person, 3)
    fail_requests(person, PLOTLY)
    person.page.reload()
    person.wait_until(IS_CONSISTENT)
    assert find_incomplete_notice(person).count() == 0
    expect(find_banner(person)).to_have_text("Writing was interrupted: press Generate to go on.")


@contextmanager
def run_prefix_stripping_proxy(address: str, prefix: str) -> Iterator[str]:
    """Yield the URL of a proxy that strips a path prefix, as nginx does with `proxy_pass http://…/;`."""

    class Proxy(BaseHTTPRequestHandler):
        def answer(self):
            if not self.path.startswith(prefix):
                return self.send_error(404)
            connection, length = (
                http.client.HTTPConnection(urlsplit(address).netloc),
                int(self.headers.get("Content-Length", 0)),
            )
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")
            }
            connection.request(self.command, "/" + self.path.removeprefix(prefix), self.rfile.read(length), headers)
            answer = connection.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "server", "date"):
                    self.send_header(name, value)
            self.end_headers()
            while chunk := answer.read1(1 << 16):
                self.wfile.write(chunk)
            return connection.close()

        do_GET = do_POST = do_HEAD = answer

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{prefix}"
    server.shutdown()


def test_prefix_stripping_proxy_gets_setup_advice(profile, address):
    page, loads = profile.new_page(), []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    with run_prefix_stripping_proxy(address, "/lab/explorer/") as cut:
        page.goto(cut)
        find_incomplete_notice = page.locator("#incomplete")
        path = urlsplit(page.url).path
        expect(find_incomplete_notice).to_have_text(
            f"This page is served under {path}, but its files are asked for under /. "
            f"Start it with GRADIO_ROOT_PATH={path.rstrip('/')}."
        )
        page.wait_for_timeout(500)
        assert len(loads) == 1 and find_incomplete_notice.count() == 1  # reloading would not help
        page.close()
