"""A chat in a terminal: answers in Markdown above; at the bottom, work in progress and an input line."""

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from forge.cli.chat.screen import Printed, Spelled
from forge.cli.chat.slash import HELP
from forge.cli.console import Console, LabelledText, readable
from forge.cli.status import Screen, under_way

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_TICK = 0.1
"""Seconds between two updates of the work in progress."""

_STYLE = Style.from_dict(
    {"bottom-toolbar": "noreverse fg:ansibrightblack", "status": "fg:ansibrightblack", "asks": "bold"}
)


class TerminalFace:
    """A person's terminal, inside `async with`.

    `cancel` is called on Ctrl-C and returns whether there was anything to cancel. `facts` returns the text beside the
    input line.
    """

    steers = True

    def __init__(self, history: Path, cancel: Callable[[], bool], facts: Callable[[], str]) -> None:
        self._cancel, self._facts = cancel, facts
        self._console = Console(file=sys.stdout)  # not the replacement by `patch_stdout`
        self._lines = asyncio.Queue[str | None]()
        self._asked: asyncio.Future[str] | None = None
        self._question = ""
        self._screen: Screen | None = None
        self._ticking: asyncio.Future[None] | None = None
        self._leaving = False
        self._running = ExitStack()
        self._session = self._made(history)

    async def __aenter__(self) -> Self:
        """Start reading keys; other output appears above the line, without control characters."""
        self._running.enter_context(patch_stdout())
        self._reading = asyncio.ensure_future(self._session.prompt_async(set_exception_handler=False))
        self._reading.add_done_callback(lambda _: self._lines.put_nowait(None))  # the terminal may close
        return self

    async def __aexit__(self, *_: object) -> None:
        """Restore the terminal."""
        self.working(None)
        self._reading.cancel()
        with suppress(asyncio.CancelledError, EOFError):
            await self._reading
        self._running.close()

    async def line(self) -> str | None:
        """The next line entered; None after Ctrl-D, or the second Ctrl-C."""
        return await self._lines.get()

    def show(self, *printed: Printed) -> None:
        """Print above the input line, which is redrawn."""
        if not printed:
            return
        # Not `run_in_terminal`: it would bypass the key bindings for input typed meanwhile.
        self._session.app.renderer.erase()
        for one in printed:
            paint(self._console, one)
        self._session.app.invalidate()

    def working(self, screen: Screen | None) -> None:
        """Show work in progress above the line, with a moving spinner."""
        self._screen = screen
        if screen is None:
            self._session.app.invalidate()
        elif self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())

    async def _tick(self) -> None:
        while self._screen is not None:
            self._session.app.invalidate()
            await asyncio.sleep(_TICK)
        self._ticking = None

    def size(self) -> tuple[int, int]:
        """The screen without margins, the question and the input line."""
        return max(30, self._console.width - 12), max(5, self._console.height - 6)

    async def answer(self, lines: Sequence[str], prompt: str, begun: str = "") -> str | None:
        """The person's answer; their unfinished input is restored afterwards."""
        if lines:
            self.show(LabelledText("asks", "\n".join(lines), "", "bold magenta"))
        buffer = self._session.default_buffer
        aside, self._question = buffer.text, prompt
        self._asked = asyncio.get_running_loop().create_future()
        buffer.document = Document(begun)
        self._session.app.invalidate()
        try:
            return await self._asked
        finally:
            self._asked = None
            buffer.document = Document(aside)

    def propose(self, text: str) -> None:
        """Put the text into the input line, unless it has some."""
        buffer = self._session.default_buffer
        if not buffer.text:
            buffer.document = Document(text)

    def _made(self, history: Path) -> PromptSession[str]:
        output = create_output()
        if isinstance(output, Vt100_Output):
            output.enable_cpr = False  # a terminal that does not report its cursor would block everything
        session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            history=FileHistory(history),
            completer=_Commands(),
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=self._keys(),
            rprompt=lambda: [] if self._asked or self._screen else [("class:status", readable(self._facts()))],
            prompt_continuation="  ",
            erase_when_done=True,
            reserve_space_for_menu=0,
            enable_open_in_editor=False,
            style=_STYLE,
            output=output,
        )

        def stay(_: object) -> None:
            self._leaving = False

        session.default_buffer.on_text_changed += stay
        return session

    def _message(self) -> StyleAndTextTuples:
        """The prompt: work in progress, a question, and the prompt character."""
        parts: StyleAndTextTuples = []
        if self._screen is not None and self._asked is None:
            status, words = under_way(self._screen)
            if words:
                height = max(4, self._console.height // 3)
                parts += to_formatted_text(ANSI(live_text(self._console, words, height)))
            frame = _FRAMES[int(time.monotonic() / _TICK) % len(_FRAMES)]
            parts.append(("class:status", f"{frame} {status} …  (Ctrl-C cancels)\n"))
        if self._asked is not None:
            return [*parts, ("class:asks", f"{self._question}\n"), ("class:asks", "? ")]
        if self._leaving:
            parts.append(("class:status", "Press Ctrl-C again, or Ctrl-D, to exit\n"))
        return [*parts, ("class:asks", "> ")]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        keys.add("enter")(self._enter)
        keys.add("escape", "enter")(lambda event: event.current_buffer.newline())
        keys.add("c-j")(self._enter)  # Enter typed before the program started arrives like this
        keys.add("c-c")(self._interrupt)
        keys.add("<sigint>")(self._interrupt)
        keys.add("c-d")(self._end)
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = buffer.text
        if self._asked is not None:
            if not self._asked.done():
                self._asked.set_result(text)
            return
        if text.strip():
            with suppress(OSError):  # on a full disk, the line is missing from the saved history
                buffer.append_to_history()
            self.show(LabelledText("you", readable(text)))
            self._lines.put_nowait(text)
        buffer.reset()

    def _interrupt(self, event: KeyPressEvent) -> None:
        if self._cancel():
            return
        if event.current_buffer.text:
            event.current_buffer.reset()
        elif self._leaving:
            self._lines.put_nowait(None)
        else:
            self._leaving = True

    def _end(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        elif self._asked is not None:
            self._enter(event)
        else:
            self._lines.put_nowait(None)


class _Commands(Completer):
    """Completes command names."""

    def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
        """The commands that begin with the typed text."""
        text = document.text
        if text.startswith("/"):
            names = (f"/{name}" for name in HELP)
            yield from (Completion(name, -len(text)) for name in names if name.startswith(text))


# Painting with rich; no character from a model or a tool can control the terminal.

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
