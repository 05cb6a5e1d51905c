"""Panel of a class session: opening, joining and leading a room."""

from explorer.translations import _
from explorer.web.widgets.html_widget import Widget, fill_template

HTML = """<button type="button" class="open" aria-expanded="false" aria-keyshortcuts="C"
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
<a class="link" target="_blank" rel="noopener"></a><button type="button" class="copy">{copy}</button></div></details>
<div class="line"><label class="leads"><input type="checkbox"> {follow}</label><span class="people"></span></div>
<section class="replies" aria-label="{replies}"><h2>{replies}</h2><div class="counts"></div></section>
<p class="spoken" role="status"></p>
<button type="button" class="end">{end}</button>
</div>
<p class="told" role="alert"></p>
</div>"""


class RoomPanel(Widget):
    """A button that opens the panel of a class session.

    For a teacher it has the code, the link, who is present and the replies; for others, how to open or join a room.
    """

    kind = "room_menu"
    lazy = ""

    def __init__(self, **kwargs):
        html = fill_template(
            HTML,
            class_=_("Class"),
            class_is=_("lead a class from this page, or join one"),
            how=_(
                "Open a room, and students join it by a code, without accounts. Their pages follow yours for as long "
                "as they like, and you see how many reply what to a lesson’s questions. Nothing is kept once it is "
                "closed."
            ),
            begin=_("Open a room"),
            code=_("Code"),
            join=_("Join"),
            ways=_("Students scan this, open the link, or type the code under “Class”:"),
            copy=_("Copy the link"),
            follow=_("the class follows me"),
            replies=_("Replies"),
            end=_("Close the room"),
        )
        super().__init__(html=html, **kwargs)
