"""Redaction: rules that say which values are hidden in a journal, and their application.

Once a rule has hidden a value, it is a secret from then on: wherever it occurs again, in a text, in JSON within a
text, in a request, the same mark replaces it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forge.errors import DefinitionError, to_install
from forge.journal.json_members import inner_members, members, plainly
from forge.journal.marks import Marks
from forge.journal.records import OutcomeLine
from stages.effect import (
    Approved,
    Ask,
    CallResult,
    Effect,
    Execute,
    Failed,
    Outcome,
    Replied,
    Reply,
    Results,
    Succeeded,
    Unresolved,
)
from stages.execution import call_digest
from stages.reading.replies import ReplyRead
from stages.schema.value import Json


class Field(Struct, frozen=True, kw_only=True):
    """A value passed to the user's own rule: an argument of a tool or, if `argument` is empty, part of its result.

    `text` is the value as text.
    """

    tool: str
    argument: str
    text: str


class Redact(Struct, frozen=True, kw_only=True):
    """What is hidden in a journal.

    `arguments` are named `tool.argument`, or `*.argument` for every tool; `results` are tools whose results are
    hidden; `values` are secrets known in advance. `patterns` are RE2 regular expressions, which take linear
    time on any text (the extra `redact`). `where` is asked about each argument and each
    part of a result.
    """

    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    where: Callable[[Field], bool] | None = None

    def __repr__(self) -> str:
        return f"Redact({', '.join(self.kinds())})"

    def kinds(self) -> tuple[str, ...]:
        """The rules as the journal lists them, without the secrets themselves."""
        counted = {"value": len(self.values), "pattern": len(self.patterns)}
        own = ("a rule of the user's own",) if self.where else ()
        return (
            *(f"argument {name}" for name in self.arguments),
            *(f"result {name}" for name in self.results),
            *(f"{count} {what}{'s' * (count > 1)}" for what, count in counted.items() if count),
            *own,
        )

    def refuse_wrong(self, tools: Mapping[str, tuple[str, ...]]) -> None:
        """DefinitionError for rules that match none of these tools, and for invalid patterns.

        `tools` are the parameters of each tool by its name.
        """
        if wrong := [*_mistakes(self, tools)]:
            raise DefinitionError(tuple(wrong))
        for pattern in self.patterns:
            _finder(pattern)


class Redactor:
    """Applies the rules to the lines of one journal. `read` finds the calls in a reply's text."""

    def __init__(self, rules: Redact, read: ReplyRead, tools: Mapping[str, tuple[str, ...]]) -> None:
        rules.refuse_wrong(tools)
        self._rules = rules
        self._read = read
        self._parameters = tools
        self._named = [(tool, argument) for tool, _, argument in (rule.partition(".") for rule in rules.arguments)]
        self._patterns = [_finder(pattern) for pattern in rules.patterns]
        self._tools: dict[str, str] = {}
        self._asked = ""
        self._marks = Marks(own=frozenset(tools))
        for value in rules.values:
            self._marks.hide(value)

    def written(self, line: Struct, about: Effect | Outcome | None) -> bytes:
        """The redacted line as JSON; `about` is the effect or outcome that it holds."""
        if about is not None:
            self._learn(about)
        tree: Json = msgspec.json.decode(msgspec.json.encode(_without_tokens(line)))
        # Requests contain example calls; real values come from outcomes.
        told = self._named and isinstance(line, OutcomeLine)
        for text in self._marks.texts(tree) if self._patterns or told else ():
            for find in self._patterns:
                for secret in find(text):
                    self._marks.hide(secret)
            for secret in self._written_out(text) if told else ():
                self._marks.hide(secret)
        hidden = self._marks.hidden(tree)
        return msgspec.json.encode(hidden)

    def _learn(self, about: Effect | Outcome) -> None:
        """Learn the secrets in an effect or an outcome."""
        match about:
            case Execute(calls=calls):
                for call in calls:
                    self._called(call.name, call.arguments)
                self._tools = {call.id: call.name for call in calls}
            case Approved(edited=str(arguments)):
                self._called(self._asked, arguments)
            case Ask(call=call):
                self._asked = call.name
                self._called(call.name, call.arguments)
                # The digest is a hash of the arguments, so guesses could be tested against it.
                arguments = str(self._marks.hidden(call.arguments))
                self._marks.replace(about.digest, call_digest(replace(call, arguments=arguments)))
            case Replied(reply=reply):
                self._replied(reply)
            case Results(results=results):
                for result in results:
                    self._came(self._tools.get(result.call_id, ""), result)
            case _:
                pass

    def _replied(self, reply: Reply) -> None:
        """Learn from the calls of a reply, wherever they are; from an unreadable one, learn every word."""
        for given in reply.calls:
            self._called(given.name, given.arguments)
        reading = self._read(reply)
        for judged in reading.calls:
            self._called(judged.name, judged.arguments)
        if reading.calls and not any(judged.wrong for judged in reading.calls):
            return
        for name in {argument for _, argument in self._named}:
            _, found, rest = reply.text.partition(name)
            if found:
                self._marks.hide_words(rest)

    def _called(self, tool: str, arguments: str) -> None:
        given = members(arguments)
        if given is None:
            if self._about(tool) or self._rules.where:
                self._marks.hide_words(arguments)
            return
        for name, value in given:
            self._leaves(tool, name, value, hide=self._hides(tool, name))

    def _about(self, tool: str) -> list[str]:
        """The arguments of a tool that rules name; for an unknown tool, all that rules name."""
        known = tool in self._parameters
        return [argument for named, argument in self._named if not known or named in {tool, "*"}]

    def _hides(self, tool: str, argument: str) -> bool:
        """Whether a rule names the argument, or may mean it: an unknown argument may be a misspelt one."""
        about = self._about(tool)
        return argument in about or (bool(about) and argument not in self._parameters.get(tool, ()))

    def _written_out(self, text: str) -> Iterator[str]:
        """Values of arguments that rules name, in JSON within a text: `… {"pin": 4711} …`."""
        names = {plainly(argument) for _, argument in self._named}
        for name, value in inner_members(text):
            if plainly(name) in names:
                yield from self._marks.leaves(value)

    def _came(self, tool: str, result: CallResult) -> None:
        """Learn from what a tool returned or raised."""
        hide = tool in self._rules.results or "*" in self._rules.results
        match result:
            case Succeeded(text=text, value=value):
                self._leaves(tool, "", msgspec.json.decode(value), hide=hide)
                if hide:
                    self._marks.hide(text)
            case Unresolved(message=message) | Failed(message=message):
                self._leaves(tool, "", message, hide=hide)
            case _:
                pass

    def _leaves(self, tool: str, argument: str, value: object, *, hide: bool) -> None:
        for text in self._marks.leaves(value):
            own = self._rules.where
            if hide or (own is not None and own(Field(tool=tool, argument=argument, text=text))):
                self._marks.hide(text)


def _without_tokens(line: Struct) -> Struct:
    """The line without the tokens of a reply: what is hidden in its text stands there in pieces."""
    match line:
        case OutcomeLine(outcome=Replied(reply=Reply(tokens=[_, *_]) as reply) as replied):
            return replace(line, outcome=replace(replied, reply=replace(reply, tokens=())))
        case _:
            return line


def _mistakes(rules: Redact, tools: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    known = {*tools, "*"}
    for rule in rules.arguments:
        tool, dot, argument = rule.partition(".")
        if not (dot and argument) or tool not in known:
            yield f"redact: {rule!r} is not an argument; write tool.argument or *.argument; tools: {', '.join(tools)}"
        elif tools.get(tool) and argument not in tools[tool]:
            yield f"redact: {tool} has no argument {argument!r}; it has {', '.join(tools[tool])}"
    for name in rules.results:
        if name not in known:
            yield f"redact: there is no tool {name!r} with results to hide; tools: {', '.join(tools)}"


def _finder(pattern: str) -> Callable[[str], Iterable[str]]:
    """A function that finds the pattern's matches in a text."""
    try:
        import re2  # noqa: PLC0415 - an extra that only users of patterns need
    except ImportError:
        sentence = f"redact: patterns need RE2, which is not installed; {to_install('redact')}"
        raise DefinitionError((sentence,)) from None
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise DefinitionError((f"redact: {pattern!r} is not a valid RE2 pattern: {_reason(error)}",)) from None
    return lambda text: (match.group() for match in compiled.finditer(text))


def _reason(error: Exception) -> str:
    """Why RE2 refused a pattern; its message is bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
