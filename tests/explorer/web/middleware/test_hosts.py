"""Host names that a server answers to."""

import socket

import pytest

from explorer.web.middleware.security_middleware import AllowedHosts

OURS = ["localhost:7860", "127.0.0.1:7860", "127.0.0.1", "[::1]:7860", "[::1]", "192.168.1.4:80", "LOCALHOST"]
OURS += ["localhost.", "tab.localhost", "someone-space.hf.space", "0123.gradio.live"]
OTHERS = ["evil", "evil.example:7860", "hf.space.evil.example", "evilhf.space", "localhost.evil", "127.0.0.1.evil"]


@pytest.mark.parametrize("host", OURS)
def test_a_server_answers_to_its_own_names_and_to_addresses(host):
    assert AllowedHosts.for_this_machine(None).allows(host)


@pytest.mark.parametrize("host", ["", "[::1].evil", *OTHERS])
def test_a_server_answers_to_no_other_name(host):
    assert not AllowedHosts.for_this_machine(None).allows(host)


def test_a_server_has_the_name_it_listens_on_and_that_of_its_machine(monkeypatch):
    monkeypatch.setenv("SPACE_HOST", "explorer.school.example")
    hosts = AllowedHosts.for_this_machine("Lab.example.org")
    assert hosts.allows("lab.example.org:7860") and hosts.allows("explorer.school.example")
    assert hosts.allows(socket.gethostname()) and not hosts.allows("example.org")


def test_a_server_may_be_given_more_names():
    hosts = AllowedHosts.for_this_machine(None, ["one.example", "*.school.example"])
    assert hosts.allows("one.example") and hosts.allows("a.b.school.example:443")
    assert not hosts.allows("school.example") and not hosts.allows("two.example")
    assert AllowedHosts(["*"]).allows("evil")
