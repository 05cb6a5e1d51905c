"""Widgets for teaching: lessons, walkthroughs, presentations, and class sessions."""

from explorer.translations import _
from explorer.web.rooms import MAX_ANSWER_CHARS, MAX_ANSWERS, MAX_QUESTION_CHARS
from explorer.web.widgets import HtmlWidget, fill_template, json_attribute

LESSON_HTML = """<aside class="lesson" aria-label="{lesson}" hidden>
<header><button type="button" class="fold" aria-expanded="true" aria-label="{fold}"></button>
<span class="of"></span><button type="button" class="print" title="{print_is}">{print}</button>
<button type="button" id="present-lesson">{present}</button>
<button type="button" class="leave">{leave}</button></header>
<div class="told" tabindex="0">
<h2 tabindex="-1"></h2>
<p class="against"></p>
<p class="note"></p>
<div class="before"></div>
<div class="question"></div>
<div class="class-replies"></div>
<div class="verdict" role="status"></div>
<div class="after"></div>
</div>
<nav><button type="button" class="back">{back}</button><button type="button" class="next">{next}</button></nav>
</aside>"""


class LessonPanel(HtmlWidget):
    """A step of a lesson: text, a question, and after a reply the feedback.

    On a wide screen it is a column at the left, on a narrow one a sheet that folds.
    """

    kind = "lesson"
    script = "lesson"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            LESSON_HTML,
            lesson=_("lesson"),
            fold=_("fold the lesson"),
            print=_("Print"),
            print_is=_("the whole lesson as a sheet: figures, blanks, and the answers on a page of their own"),
            present=_("Present"),
            leave=_("Leave"),
            back=_("Back"),
            next=_("Next"),
        )
        super().__init__(html=html, **kwargs)


LESSON_LIST_HTML = """<button type="button" class="open" aria-expanded="false" title="{lessons_are}">{lessons}</button>
<div class="list" role="dialog" aria-label="{lessons}" hidden><div class="all"></div><div class="more">
<button type="button" class="one to-glossary"><span class="title">{glossary}</span>
<span class="audience">{glossary_is}</span></button>
<button type="button" class="one to-slides" id="to-slides"><span class="title">{slides}</span>
<span class="audience">{slides_are}</span></button></div></div>"""


class LessonListButton(HtmlWidget):
    """A button that opens the list of lessons, each with the step where the user left it, and ways to teach."""

    kind = "lessons"
    script = "lesson"
    lazy = ""

    def __init__(self, **kwargs):
        words = {
            "lessons": _("Learn"),
            "lessons_are": _("lessons step by step, with questions first; the glossary; slides"),
            "glossary": _("Glossary"),
            "glossary_is": _("ten words to begin with, then all others"),
            "slides": _("Present: slides, full screen"),
            "slides_are": _("one figure at a time on the whole screen (key P), or slides that you save"),
        }
        super().__init__(html=fill_template(LESSON_LIST_HTML, **words), **kwargs)


WALKTHROUGH_PLAYER_HTML = """<section class="walk" role="dialog" aria-modal="true" aria-label="{walk}" hidden>
<h2 tabindex="-1"></h2>
<p class="says" aria-live="polite"></p>
<div class="drawing"></div>
<nav><button type="button" class="back" aria-label="{back}">←</button><span class="at"></span>
<button type="button" class="next">{next}</button><button type="button" class="leave">{leave}</button></nav>
</section>"""


class WalkthroughPlayer(HtmlWidget):
    """Player of a walkthrough's short segments, with a pause after each.

    There is no animation if the user prefers reduced motion.
    """

    kind = "walk"
    script = "walkthrough"
    lazy = ""

    def __init__(self, **kwargs):
        words = {"walk": _("step by step"), "back": _("Back"), "next": _("Go on (space)"), "leave": _("Leave (Esc)")}
        super().__init__(html=fill_template(WALKTHROUGH_PLAYER_HTML, **words), **kwargs)


WALKTHROUGH_BUTTON_HTML = """<button type="button" class="walks" title="{walk_is}" data-walk="%s">{walk}</button>"""


class WalkthroughButton(HtmlWidget):
    """A button that starts a tab's walkthrough.

    Args:
        walk: name of the walkthrough (`explorer.analysis.walkthroughs`).
    """

    kind = "walkthrough_button"
    script = "walkthrough"
    lazy = ""

    def __init__(self, walk: str, **kwargs):
        words = {"walk": _("▶ Step by step"), "walk_is": _("this very computation, bit by bit, with its numbers")}
        super().__init__(html=fill_template(WALKTHROUGH_BUTTON_HTML % json_attribute(walk), **words), **kwargs)


SLIDES_HTML = """<button type="button" class="open" hidden></button>
<div class="list" role="dialog" aria-label="{present}" hidden>
<div class="line"><button type="button" class="begin" aria-keyshortcuts="P">{begin}</button>
<span class="what"></span><button type="button" class="begin-view">{begin_view}</button></div>
<h2>{slides}</h2>
<p class="told" role="status"></p>
<div class="brought" hidden></div>
<ol class="slides"></ol>
<div class="line"><button type="button" class="save">{save}</button><span class="view"></span></div>
<div class="line"><button type="button" class="print">{print}</button>
<button type="button" class="link">{link}</button><button type="button" class="file">{file}</button></div>
</div>"""


class SlidesMenu(HtmlWidget):
    """The list of slides: to sort, name, delete, present, print and share them.

    The list of lessons opens it, by this widget's hidden button.
    """

    kind = "present_menu"
    script = "presentation"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            SLIDES_HTML,
            present=_("Present"),
            begin=_("Present (P)"),
            begin_view=_("Present only this view"),
            slides=_("Slides"),
            save=_("Save this view as a slide"),
            print=_("Print the slides"),
            link=_("Copy as a link"),
            file=_("Save as a file"),
        )
        super().__init__(html=html, **kwargs)


PRESENTATION_HTML = """<section class="stage" aria-label="{presenting}" hidden>
<header><h2 tabindex="-1"></h2><p class="text"></p><p class="chosen"></p></header>
<p class="problem" role="alert"></p>
<nav>
<button type="button" class="back" aria-label="{back}">←</button><span class="at"></span>
<button type="button" class="next" aria-label="{next}">→</button>
<button type="button" class="head-step head-back" aria-keyshortcuts="[" title="{previous_head}" hidden>[ {head}</button>
<button type="button" class="head-step head-next" aria-keyshortcuts="]" title="{next_head}" hidden>{head} ]</button>
<span class="replied"></span><span class="keys" role="status"></span>
<button type="button" class="notes" aria-keyshortcuts="N" title="{notes_are}">{notes}</button>
<button type="button" class="black" aria-keyshortcuts="B">{black}</button>
<button type="button" class="leave" aria-keyshortcuts="Escape">{leave}</button>
</nav>
<button type="button" class="blackout" aria-label="{is_black}" hidden></button>
<i class="pointer" hidden></i>
</section>"""


class PresentationScreen(HtmlWidget):
    """Full-screen presentation of a lesson's steps, slides, or the open view's figures.

    Notes and a preview of the next item are in a second window.
    """

    kind = "stage"
    script = "presentation"
    lazy = "p"

    def __init__(self, **kwargs):
        html = fill_template(
            PRESENTATION_HTML,
            presenting=_("presenting"),
            back=_("Back"),
            next=_("Next"),
            head=_("head"),
            previous_head=_("previous head, at the key ["),
            next_head=_("next head, at the key ]"),
            notes=_("Notes (N)"),
            notes_are=_("notes and the next slide, in a second window"),
            black=_("Black (B)"),
            leave=_("Leave (Esc)"),
            is_black=_("The screen is black: press B, or click, to have it back."),
        )
        super().__init__(html=html, **kwargs)


ROOM_HTML = """<button type="button" class="open" aria-expanded="false" aria-keyshortcuts="C"
title="{class_is}">{class_}</button>
<div class="list" role="dialog" aria-label="{class_}" hidden>
<div class="outside">
<p>{how}</p>
<button type="button" class="begin">{begin}</button>
<form class="join"><label>{code} <input type="text" class="typed" maxlength="14" autocomplete="off"
autocapitalize="characters" spellcheck="false"></label>
<button type="submit">{join}</button></form>
</div>
<div class="leading" hidden>
<details class="invite" open><summary>{code} <strong class="code"></strong></summary>
<div class="qr"></div><div class="ways"><p>{ways}</p>
<a class="link" target="_blank" rel="noopener"></a><p class="local">{local}</p>
<button type="button" class="copy">{copy}</button>
<button type="button" class="enlarge">{enlarge}</button></div></details>
<dialog class="large-code" aria-label="{class_}"></dialog>
<div class="line"><label class="leads"><input type="checkbox"> {follow}</label><span class="people"></span></div>
<label class="holds"><input type="checkbox"> {hold}</label>
<section class="replies" aria-label="{replies}"><h2>{replies}</h2><div class="counts"></div></section>
<details class="ask"><summary>{ask_class}</summary><form>
<label>{question} <input type="text" maxlength="{max_question}" autocomplete="off"></label>
<fieldset><legend>{answers}</legend>%s</fieldset>
<button type="submit" class="begin">{ask}</button></form></details>
<section class="asked" aria-label="{ask_class}" hidden><h2></h2><div class="own-counts"></div>
<div class="buttons"><button type="button" class="show"></button>
<button type="button" class="end-question">{end_question}</button></div></section>
<p class="spoken" role="status"></p>
<button type="button" class="end">{end}</button>
</div>
<p class="told" role="alert"></p>
</div>"""


ANSWER_BOX_HTML = (
    """<input type="text" aria-label="{answer}" placeholder="{answer}" maxlength="{max_answer}" autocomplete="off">"""
)


class ClassSessionPanel(HtmlWidget):
    """A button that opens the panel of a class session.

    For a teacher it has the code, the link, who is present and the replies; for others, how to open or join a room.
    """

    kind = "room_menu"
    script = "class_session"
    lazy = ""

    def __init__(self, **kwargs):
        answer_boxes = "".join(
            fill_template(ANSWER_BOX_HTML, answer=_("answer {number}", number=number), max_answer=str(MAX_ANSWER_CHARS))
            for number in range(1, MAX_ANSWERS + 1)
        )
        html = fill_template(
            ROOM_HTML % answer_boxes,
            class_=_("Class"),
            class_is=_("lead a class from this page, or join one"),
            how=_(
                "Open a room, and students join with a code, without accounts. Their pages follow yours until they "
                "choose to look around on their own. You see how many chose each answer in a lesson. Closing the room "
                "deletes everything."
            ),
            begin=_("Open a room"),
            code=_("Code"),
            join=_("Join"),
            ways=_("Students scan this, open the link, or type the code under “Class”:"),
            local=_(
                "This address works only on this computer. For a class, start the server with --host 0.0.0.0 and open "
                "this page by the computer’s address in the network."
            ),
            copy=_("Copy the link"),
            enlarge=_("Show it large"),
            follow=_("the class follows me"),
            hold=_("hold answers back until I show them"),
            replies=_("Replies"),
            ask_class=_("Ask the class"),
            question=_("Question"),
            max_question=str(MAX_QUESTION_CHARS),
            answers=_("Two to four answers. Leave them empty, and students write their own."),
            ask=_("Ask"),
            end_question=_("End the question"),
            end=_("Close the room"),
        )
        super().__init__(html=html, **kwargs)
