"""Limits of a headless task: what it may write, run and change, checked before each call."""

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from forge.agent.files.editing import kept_lines, lines_of
from forge.agent.files.root import Parts
from forge.errors import quantity
from forge.wildcards import matches
from stages.effect import Price
from stages.message import Kind, Tool, ToolCall
from stages.objection import Custom, Guard, Objection, Verdict
from stages.options import AtLeastOne, Count, OptionError, Options, Positive, Seconds
from stages.rules import Limits
from stages.schema.value import cut_text
from stages.state import State
from stages.tool import ToolEffect

# Globs: path patterns as in .gitignore, without negation.
#
# `*` matches any characters within one name, `**` any number of folders. A pattern without a slash (except at its end)
# matches a name in any folder, one with a slash a path from the root. A pattern that matches a folder matches
# everything in it.


def covers(pattern: str, path: tuple[str, ...], *, any_case: bool = False) -> bool:
    """Whether the pattern matches the path or a folder above it. Linear in the path for each part of both."""
    names = tuple(name for name in (pattern.casefold() if any_case else pattern).split("/") if name not in {"", "."})
    steps = names if "/" in pattern.rstrip("/") else ("**", *names)
    here = _skipping({0}, steps)
    for name in path:
        if len(steps) in here:
            return True
        folded = name.casefold() if any_case else name
        moved = {at if steps[at] == "**" else at + 1 for at in here if steps[at] == "**" or matches(steps[at], folded)}
        here = _skipping(moved, steps)
    return len(steps) in here


def _skipping(places: set[int], steps: tuple[str, ...]) -> set[int]:
    """The positions, and those after any `**` there, which may match no folder."""
    found = set(places)
    for at, step in enumerate(steps):
        if at in found and step == "**":
            found.add(at + 1)
    return found


# Changes: which file a call changes, and how many lines, computed from its arguments alone.

_LONGEST, _SHOWN = 4096, 300
"""Maximum characters of a path to check, and to show."""


class _Change(Struct, frozen=True, kw_only=True):
    """The change made by a call. `path` is None outside the root; `lines` counts added and removed lines."""

    written: str
    path: Parts | None
    lines: int


class Changes(Struct, frozen=True, kw_only=True):
    """All changes so far."""

    files: frozenset[Parts] = frozenset()
    lines: int = 0

    def with_more(self, change: _Change) -> "Changes":
        """These and one more."""
        more = frozenset() if change.path is None else frozenset({change.path})
        return Changes(files=self.files | more, lines=self.lines + change.lines)


class _Write(Struct):
    path: str
    content: str


class _Edit(Struct):
    path: str
    old_snippet: str
    new_snippet: str


def _change_of(tool: str, arguments: str, root: str) -> _Change | None:
    """The change made by a call; None for a tool that changes no file.

    A written file counts as new: where lines are limited, `write_file` replaces none (`overwrite=False`).
    """
    match tool:
        case "write_file":
            write = msgspec.json.decode(arguments, type=_Write)
            return _Change(
                written=cut_text(write.path, _SHOWN), path=below(root, write.path), lines=len(lines_of(write.content))
            )
        case "edit_file":
            edit = msgspec.json.decode(arguments, type=_Edit)
            old, new = lines_of(edit.old_snippet), lines_of(edit.new_snippet)
            lines = len(old) + len(new) - 2 * sum(kept_lines(old, new))
            return _Change(written=cut_text(edit.path, _SHOWN), path=below(root, edit.path), lines=lines)
        case _:
            return None


def changes_of(calls: Iterable[tuple[str, str]], root: str) -> Changes:
    """The changes made by these calls, given as name and arguments."""
    total = Changes()
    for name, arguments in calls:
        if change := _change_of(name, arguments, root):
            total = total.with_more(change)
    return total


def below(root: str, path: str) -> Parts | None:
    """The path relative to the root; None if it leads out of it or is too long. Links are not followed."""
    if len(path) > _LONGEST:
        return None
    whole = posixpath.normpath(posixpath.join(root, path))
    rest = posixpath.relpath(whole, root).split("/")
    return None if rest[0] == ".." else tuple(name for name in rest if name != ".")


# Limits: what a task allows, and the guard that refuses anything else before it runs. Pure functions.
#
# Only what the task names is allowed: files that `write` covers, commands in `commands`, and other tools with side
# effects only if they are in `tools`.

WRITES = ("write_file", "edit_file")
"""The tools whose paths must match `write` and not `never_write`."""


class TaskLimits(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[limits]` of a task file: what the task may do, and the limits of its run (docs/headless.md).

    Limits that are left out are the agent's.
    """

    read_only: bool = False
    tools: tuple[str, ...] | None = None
    write: tuple[str, ...] = ()
    never_write: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    max_files: AtLeastOne | None = None
    max_lines: AtLeastOne | None = None
    # The fields of Limits. UNSET distinguishes a limit that was left out from one that equals the default.
    max_iterations: AtLeastOne | UnsetType = UNSET
    max_tool_calls: AtLeastOne | UnsetType = UNSET
    max_tokens: AtLeastOne | UnsetType = UNSET
    max_seconds: Seconds | UnsetType = UNSET
    max_cost: Positive | UnsetType = UNSET
    price: Price | UnsetType = UNSET
    max_retries_per_step: Count | UnsetType = UNSET
    max_tool_errors: Count | UnsetType = UNSET
    max_premature_attempts: Count | UnsetType = UNSET
    max_prereq_violations: Count | UnsetType = UNSET
    max_repeats: AtLeastOne | UnsetType = UNSET

    def of_run(self) -> dict[str, object]:
        """The limits of the run that were given."""
        given = {name: getattr(self, name) for name in Limits.__struct_fields__}
        return {name: value for name, value in given.items() if value is not UNSET}

    def contradictions(self, wrong: Collection[str]) -> Iterator[str]:
        """Contradictions among the limits of the run."""
        try:
            Limits(**{name: value for name, value in self.of_run().items() if name not in wrong})  # type: ignore[arg-type]  # checked there
        except OptionError as error:
            yield from (problem.removeprefix("Limits: ") for problem in error.problems)


class ToolForbidden(Struct, frozen=True, kw_only=True, tag="tool_forbidden"):
    """A call of a tool that the task does not allow."""

    tool: str


class FileForbidden(Struct, frozen=True, kw_only=True, tag="file_forbidden"):
    """A write outside the folder, not covered by `write`, or covered by `never_write`."""

    tool: str
    path: str
    why: Literal["outside", "not_named", "never"]


class TooManyFiles(Struct, frozen=True, kw_only=True, tag="too_many_files"):
    """One file more than may be changed."""

    path: str
    max_files: int


class TooManyLines(Struct, frozen=True, kw_only=True, tag="too_many_lines"):
    """More lines than may be changed: `lines` in this call, after `before`."""

    path: str
    lines: int
    before: int
    max_lines: int


class CommandForbidden(Struct, frozen=True, kw_only=True, tag="command_forbidden"):
    """A command that the task does not allow."""

    command: tuple[str, ...]


Violation = ToolForbidden | FileForbidden | TooManyFiles | TooManyLines | CommandForbidden
"""How a call would have violated the limits."""


class Bounds(Struct, frozen=True, kw_only=True):
    """Limits, with the folder's real path and the effects of the agent's tools."""

    limits: TaskLimits
    root: str
    effects: Mapping[str, ToolEffect]


def limits_guard(bounds: Bounds) -> Guard:
    """A guard that objects to each call that the limits forbid, given the changes so far."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        found = violations(bounds, [(done.name, done.arguments) for done in state.ledger.successes], calls)
        return [Objection(call=call, wrong=Custom(text=_refusal(one, bounds.limits))) for call, one in found]

    return guard


def change_after_failure(effects: Mapping[str, ToolEffect]) -> Guard:
    """A guard that objects to completing the task again if the gates failed and nothing has changed since."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        for answer in reversed(state.history):
            if not isinstance(answer, Tool):
                continue
            done, effect = answer.status == "succeeded", effects.get(answer.name)
            if done and effect == "write":
                return []
            if not done and effect == "terminal" and answer.kind is Kind.TOOL_RESULT:
                again = [c for c in calls if c.name == answer.name and len(calls) == 1]
                return [Objection(call=c, wrong=Custom(text=_UNCHANGED)) for c in again]
        return []

    return guard


_UNCHANGED = "The task is not done: nothing was changed since the check failed. Change the files first, then try again."


def violations(
    bounds: Bounds, before: Sequence[tuple[str, str]], calls: Sequence[ToolCall]
) -> list[tuple[ToolCall, Violation]]:
    """The calls that the limits forbid; `before` are the successful ones so far, as name and arguments."""
    total = changes_of(before, bounds.root)
    found: list[tuple[ToolCall, Violation]] = []
    for call in calls:
        if wrong := _violation(bounds, total, call):
            found.append((call, wrong))
        elif change := _change_of(call.name, call.arguments, bounds.root):
            total = total.with_more(change)
    return found


class _Run(Struct):
    command: tuple[str, ...]


def command_of(arguments: str) -> tuple[str, ...]:
    """The program and arguments in a call of `run_command`."""
    return msgspec.json.decode(arguments, type=_Run).command


def allows(limits: TaskLimits, tool: str, effect: ToolEffect) -> bool:
    """Whether the task allows any call of the tool."""
    if effect == "terminal":
        return True
    if limits.tools is not None and tool not in limits.tools:
        return False
    if effect == "read" or tool in (*WRITES, "run_command"):
        return True
    return limits.tools is not None and not limits.read_only


def _violation(bounds: Bounds, total: Changes, call: ToolCall) -> Violation | None:
    limits, effect = bounds.limits, bounds.effects.get(call.name, "write")
    if not allows(limits, call.name, effect):
        return ToolForbidden(tool=call.name)
    if effect != "write":
        return None
    if call.name == "run_command":
        command = command_of(call.arguments)
        for allowed in limits.commands:
            # A final `*` matches any number of arguments.
            whole = allowed[-1] != "*"
            if command == allowed if whole else command[: len(allowed) - 1] == allowed[:-1]:
                return None
        return CommandForbidden(command=command)
    change = _change_of(call.name, call.arguments, bounds.root)
    if change is None:
        return None
    path, written = change.path, change.written
    if path is None:
        return FileForbidden(tool=call.name, path=written, why="outside")
    if why := not_written(limits, path):
        return FileForbidden(tool=call.name, path=written, why=why)
    if limits.max_files is not None and len(total.files | {path}) > limits.max_files:
        return TooManyFiles(path=written, max_files=limits.max_files)
    if limits.max_lines is not None and total.lines + change.lines > limits.max_lines:
        return TooManyLines(path=written, lines=change.lines, before=total.lines, max_lines=limits.max_lines)
    return None


def not_written(limits: TaskLimits, path: Parts) -> Literal["not_named", "never"] | None:
    """Why the file must not be written; None if it may be."""
    # Two spellings may be the same file, so `never_write` ignores case.
    if any(covers(pattern, path, any_case=True) for pattern in limits.never_write):
        return "never"
    return None if any(covers(pattern, path) for pattern in limits.write) else "not_named"


def _refusal(violation: Violation, limits: TaskLimits) -> str:
    """The text for the model: what is forbidden and what it may do instead."""
    match violation:
        case ToolForbidden(tool=tool):
            return f"This task does not allow {tool}. Use another tool."
        case FileForbidden(path=path, why="outside"):
            return f"{path} is outside the folder. Use a path below it."
        case FileForbidden(path=path, why=why):
            may = ", ".join(limits.write) or "none"
            but = f", but never {', '.join(limits.never_write)}" if why == "never" else ""
            return f"This task does not allow changing {path}. Files that may be changed: {may}{but}."
        case TooManyFiles(path=path, max_files=most):
            may = quantity(most, "file")
            return f"{path} was not changed: this task may change {may}, and others were changed already."
        case TooManyLines(path=path, lines=lines, before=before, max_lines=most):
            return (
                f"{path} was not changed: the call changes {quantity(lines, 'line')}, {before} were changed before, "
                f"and this task may change {most}. Make a smaller change."
            )
        case CommandForbidden():
            may = "; ".join(msgspec.json.encode(command).decode() for command in limits.commands) or "none"
            return f"This task does not allow that command. Commands that may be run: {may}."
