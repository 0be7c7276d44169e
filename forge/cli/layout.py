"""How a line looks: a label and a text beside it, wrapped to the terminal; one plain line in a pipe."""

from msgspec import Struct
from rich.console import Console
from rich.table import Table
from rich.text import Text

_NARROW = 50
"""Columns of a terminal below which the label gets no column of its own."""


class Row(Struct, frozen=True):
    """What is told, after a word that says what it is; both with a style of rich's. Only what is secondary is dim."""

    label: str
    text: str
    style: str = ""
    label_style: str = "dim"


def show(console: Console, row: Row, column: int = 9) -> None:
    """Print the row, its label right-aligned in a column of so many characters."""
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
