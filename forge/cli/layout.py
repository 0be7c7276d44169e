"""Printing a row: label and text side by side, wrapped to the terminal; one plain line in a pipe."""

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROW = 50
"""Terminal width below which labels get no column of their own."""


class LabelledText(Struct, frozen=True):
    """A labelled text; both parts have a rich style. Only secondary text is dim."""

    label: str
    text: str
    style: str = ""
    label_style: str = "dim"


def show(console: Console, row: LabelledText, column: int = 9) -> None:
    """Print the row, with its label right-aligned in a column of that width."""
    if not console.is_terminal:
        console.print(Text(f"{row.label:>{column}}  {row.text}"), soft_wrap=True)
        return
    label, text = Text(row.label, style=row.label_style), Text(row.text, style=row.style)
    if console.width < _NARROW:
        console.print(Text.assemble(label, "  ", text))
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", width=column, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(label, text)
    console.print(grid)
