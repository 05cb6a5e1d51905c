from dataclasses import replace

from explorer.web.answers.hints import hint


def test_what_is_said_of_a_text_follows_what_is_written(opening, asked):
    run = asked.run
    said = hint(opening.runs, replace(run, generated=(5, 6, 7)))
    words, look, offer = said
    last = len(run.prompt) + 2
    assert f"({last})" in words and look["query"] == last and 0 < look["key"] < last - 1 and not offer
    assert hint(opening.runs, replace(run, generated=(5, 6, 7, 8))) != said
