"""Rendering with rich; no character from a model or a tool can control the terminal."""

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from forge.cli.chat.screen import Printed, Spelled
from forge.cli.console import Console, LabelledText, readable

_INDENT = (0, 2)
_LIVE = 2_000
"""Maximum characters of an unfinished answer to render, because rendering takes linear time."""


class Harmless:
    """Renders without characters that control the terminal, which Markdown can contain as entities."""

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        """The segments, with control characters replaced."""
        for segment in console.render(self._shown, options):
            yield Segment(readable(segment.text), segment.style)


def paint(console: Console, printed: Printed) -> None:
    """Print a row or an answer."""
    match printed:
        case Spelled(markdown=text, suggestions=suggestions):
            console.print()
            console.print(_markdown(text))
            for one in suggestions:
                console.print(Padding(Text(f"- {one}", style="cyan"), _INDENT))
        case LabelledText(label="you", text=text):
            console.print()
            console.print(Text("> " + text.replace("\n", "\n  "), style="bold"))
        case LabelledText():
            console.show(printed)


def _markdown(text: str) -> RenderableType:
    """Markdown without hyperlinks, which would hide their target."""
    return Harmless(Padding(Markdown(text, hyperlinks=False, code_theme="ansi_dark"), _INDENT))


def live_text(console: Console, words: str, height: int) -> str:
    """The last lines of an unfinished answer, encoded for the terminal."""
    if len(words) > _LIVE:  # keep the end of the text, from the start of a line
        words = words[-_LIVE:].partition("\n")[2] or words[-_LIVE:]
    with console.capture() as captured:
        console.print(_markdown(words))
    lines = captured.get().rstrip("\n").split("\n")
    return "\n".join(lines[-height:]) + "\n"
