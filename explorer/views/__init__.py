"""The views: every folder and file here with a `VIEW` or `VIEWS`, and the user's own.

`View`, `Panel` and `SelectionField` are what a view is written with (docs/views.md).
"""

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from explorer.state.selection import Selection, SelectionField, register_view, resolve_tab
from explorer.translations import _, translate
from explorer.views.user_views import UserViewError, load_view, make_error_view, view_files
from explorer.views.view import Panel, View

__all__ = ["Panel", "SelectionField", "View"]


def discover_views() -> list[View]:
    """Return the `VIEW` or `VIEWS` of every module of this package that has them, in tab order."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    views = [module.VIEW for module in modules if hasattr(module, "VIEW")]
    views += [view for module in modules for view in getattr(module, "VIEWS", ())]
    return sorted(views, key=lambda view: view.order)


def add_view(view: View) -> None:
    """Add a view and its fields.

    Raises:
        ValueError: a name is taken; nothing is added then.
    """
    register_view(view.name, view.group, view.fields, view.former_names)
    VIEW_BY_NAME[view.name] = view


def add_user_views(paths: Iterable[Path]) -> None:
    """Add the views of the user's files and folders; for one with a mistake, a view that says what is wrong."""
    for path in view_files(paths):
        try:
            view = load_view(path, add_view)
        except UserViewError as error:
            view = make_error_view(path, str(error), len(USER_VIEWS) + 1)
            add_view(view)
        USER_VIEWS.append(view)


def numbers_views(has_own_module: bool) -> tuple[View, ...]:
    """Return the views that show numbers in tab order, the user's own last."""
    return (*FULL, *(DIAGNOSIS_VIEWS if has_own_module else ()), *USER_VIEWS)


def unknown_view_message(name: str | None) -> str:
    """Return a message about a view name that no tab has or had; "" for a known name."""
    if not name or resolve_tab(name):
        return ""
    return _(
        "There is no tab {name!r}; the tabs are {titles}: {shown} is shown.",
        name=name[:80],
        titles=", ".join(translate(view.title) for view in numbers_views(has_own_module=False)),
        shown=translate(VIEW_BY_NAME[Selection.view].title),
    )


VIEW_BY_NAME: dict[str, View] = {}
USER_VIEWS: list[View] = []
PACKAGE_VIEWS = discover_views()
FULL = tuple(view for view in PACKAGE_VIEWS if view.group != "story" and not view.requires_own_module)
STORY_VIEWS = tuple(view for view in PACKAGE_VIEWS if view.group == "story")  # the steps of the story
STORY_STEPS = (*(view for view in FULL if view.in_story), *STORY_VIEWS)
DIAGNOSIS_VIEWS = tuple(view for view in PACKAGE_VIEWS if view.requires_own_module)
VIEWS = FULL + STORY_VIEWS
for package_view in VIEWS + DIAGNOSIS_VIEWS:
    add_view(package_view)
