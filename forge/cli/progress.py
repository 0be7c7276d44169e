"""A progress bar for downloads; in a pipe, one line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bar

from forge.backends.servers.download import Progress
from forge.cli.console import Console


@contextmanager
def downloading(console: Console) -> Iterator[Callable[[Progress], None]]:
    """A function that shows the progress of downloads."""
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    bar = Bar(TextColumn("{task.description}"), *columns, console=console, transient=True)
    task = bar.add_task("", start=True, visible=False)

    def show(progress: Progress) -> None:
        if not bar.live.is_started:
            console.say(f"{progress.what}: {progress.total_bytes / 1e6:,.0f} MB, into the cache folder, once")
            bar.start()
        bar.update(
            task, description=progress.what, completed=progress.done_bytes, total=progress.total_bytes, visible=True
        )
        if progress.done_bytes >= progress.total_bytes:
            bar.stop()

    try:
        yield show
    finally:
        if bar.live.is_started:
            bar.stop()
