"""Names and addresses of clients."""

from types import SimpleNamespace

import pytest

from explorer.web.middleware.rate_limits import CLIENT_HEADER, Client


@pytest.mark.parametrize(
    ("name", "host", "client"),
    [
        ("page", "10.0.0.7", Client("page", "10.0.0.7")),
        ("x" * 1000, "10.0.0.7", Client("x" * 64, "10.0.0.7")),
        ("", "10.0.0.7", Client("", "10.0.0.7")),
        ("page", None, Client("page", "")),
    ],
)
def test_a_page_has_a_name_and_an_address_and_a_program_an_address(name, host, client):
    headers = {CLIENT_HEADER: name} if name else {}
    request = SimpleNamespace(headers=headers, client=host and SimpleNamespace(host=host))
    assert Client.from_request(request) == client
