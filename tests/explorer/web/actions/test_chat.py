"""Conversations on the page: tokens, roles, links, and changes of the model."""

import json

import pytest

import explorer
from explorer.state.page_state import PageState
from explorer.tracing.model_library import ModelLibrary
from explorer.web.browser_api.python_script import python_script
from explorer.web.page import Page
from tests.chat_model import END, START, write_chat_model

MESSAGES = [{"role": "system", "content": "You are a fox."}, {"role": "user", "content": f"Who is the owl? {END}"}]


@pytest.fixture(scope="module")
def chat_folder(tmp_path_factory):
    return write_chat_model(tmp_path_factory.mktemp("chat") / "tiny-chat")


@pytest.fixture(scope="module")
def page(chat_folder) -> Page:
    library = ModelLibrary("cpu")
    page = Page(library, library.catalog.open(chat_folder))
    page.build()
    return page


@pytest.fixture
def state(move, load) -> dict:
    """State of the page after a conversation."""
    return move(dict(load(text="the fox").change), "chat", messages=MESSAGES)


def get_token_strip(page: Page, state: dict) -> dict:
    return page.channel.endpoints.answer("show", state)["contents"]["strip"]


def test_token_ids_match_api_and_have_roles(page, state, chat_folder):
    assert tuple(state["prompt"]) == explorer.load(chat_folder).run(messages=MESSAGES).token_ids
    assert json.loads(state["chat"]) == MESSAGES
    strip = get_token_strip(page, state)
    texts = dict.fromkeys(strip["roles"], "")
    for token, role in zip(strip["tokens"], strip["roles"], strict=True):
        texts[role] += token
    assert texts.pop("template") == f"{START}system\n{END}\n{START}user\n{END}\n{START}assistant\n"
    assert texts == {message["role"]: message["content"] for message in MESSAGES}
    assert strip["beginning"] == ["", False]


def test_plain_text_has_no_roles(page, state, move, load):
    text_state = move(state, "prompt", text="the fox")
    assert text_state["chat"] == "" and "roles" not in get_token_strip(page, text_state)
    assert page.channel.endpoints.answer("show", text_state)["contents"]["chat"] == {"messages": [], "reply": ""}
    assert load(checkpoint="llama-fables", text="the fox").change["chat"] == ""


def test_link_has_messages_with_or_without_ids(state, load):
    chat = json.dumps(MESSAGES)
    assert load(checkpoint="tiny-chat", chat=chat).change["prompt"] == state["prompt"]
    cut = load(checkpoint="tiny-chat", chat=chat, prompt=".".join(map(str, state["prompt"][:9])))
    assert cut.change["prompt"] == state["prompt"][:9] and cut.prompt == MESSAGES[1]["content"]
    for invalid in ("[", "{}", "[1]", '[{"role": "pirate", "content": "a"}]', "9" * 30_000):
        assert load(checkpoint="tiny-chat", text="the fox", chat=invalid).change["chat"] == ""


def test_tokens_outside_template_have_no_role(page, state):
    roles = get_token_strip(page, state)["roles"]
    other = [*state["prompt"]]
    other[3] += 1
    assert get_token_strip(page, state | {"prompt": other})["roles"] == [*roles[:3], "", *roles[4:]]
    longer = [*state["prompt"][:3], 5, *state["prompt"][3:]]
    assert get_token_strip(page, state | {"prompt": longer})["roles"] == [*roles[:3], *[""] * (len(longer) - 3)]


def test_reply_is_assistants_and_stops_at_template_end(page, state, merge):
    end = page.library.model("tiny-chat")[1].special_tokens[END]
    lm, _tokenizer = page.library.model("tiny-chat")
    settings = {"temperature": 0.0, "max_new_tokens": 8}
    written = merge(state | settings, page.generation.generate(state | settings))
    assert len(written["generated"]) == 8 and end not in written["generated"]
    row = lm.lm_head.weight[end].clone()
    lm.lm_head.weight.data[end] = 100 * lm.lm_head.weight.data[written["generated"][2]]
    try:
        stopped = merge(state | settings, page.generation.generate(state | settings))
    finally:
        lm.lm_head.weight.data[end] = row
    assert stopped["generated"][-1] == end and len(stopped["generated"]) < 8


def test_invalid_conversation_is_refused_and_changes_nothing(act, state, notices):
    update = act(state, "chat", messages=[{"role": "assistant", "content": "I begin"}])
    assert not update.is_done and not update.change
    assert act(state, "chat", messages=[]).is_done is False
    assert "a user begins" in notices[0] and "The prompt is empty" in notices[1]


def test_other_model_gets_messages_or_last_message(state, act, page, tmp_path):
    text = MESSAGES[1]["content"]
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    other = page.library.catalog.open(write_chat_model(tmp_path / "other", template))
    change = act(state, "model", checkpoint=other, text=text).change
    assert change["chat"] == state["chat"] and change["checkpoint"] == other
    tokenizer = page.library.model(other)[1]
    assert tokenizer.decode(change["prompt"]) == f"system: {MESSAGES[0]['content']}\nuser: {text}\n"
    change = act(state, "model", checkpoint="llama-fables", text=text).change
    assert change["chat"] == "" and page.library.model("llama-fables")[1].decode(change["prompt"]) == text


def test_python_script_has_messages(page, state):
    script = python_script(page.actions.state_builder.runs, PageState.parse(state))
    assert f"model.run(messages={MESSAGES!r})" in script
