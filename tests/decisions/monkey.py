"""A monkey at the keyboard: a model that makes a small model's mistakes, always the same ones for the same seed."""

import json
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stages.effect import Replied, Request, Send
from tests.decisions.records import Said, said
from tests.decisions.running import Over, schemas

Calls = Sequence[tuple[str, Mapping[str, Any]]]
Knowing = Callable[[Send], Awaitable[Replied]]
"""Who plays it right, if asked at each of its own turns only."""

_IN_PROMPT = re.compile(r"^- ([\w.-]+): .*?\n(?:.*\n)*?  arguments \(JSON Schema\): (\{.*\})$", re.MULTILINE)
_WORDS = re.compile(r"[A-Z]+-\d+|\d+(?:\.\d+)?|\"\w[^\"\n]{0,40}\"|'\w[^'\n]{0,40}'|\b[A-Z]\w+(?: [A-Z]\w+)?")
_TEXTS = [
    "I will look that up for you.",
    "Done. Everything is as you asked.",
    "The answer is 42.",
    "I'm sorry, but I cannot help with that.",
    "Which one do you mean?",
    "Let me first check the details, then I will go on with the next step.",
    "Now I call the tool.",
    "TERMINATE",
    "null",
    "{}",
]
_UNKNOWN = ["search", "get_data", "final_answer", "functions.lookup", "python", "tool", "finish", "GetTicket", ""]
_INVENTED = ["reason", "id", "verbose", "limit", "confirm", "args", "note"]
_STOCK: list[Any] = ["unknown", "N/A", "<value>", "example", "12345", "John Doe", "", "TODO", 0, 1, -1, 3.5, True, None]


class Monkey:
    """Its replies to requests; Over after `most` of them. `knows` gives the right next reply, until it gives up."""

    def __init__(self, seed: str, mode: str, knows: Knowing | None, most: int = 16) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - to be repeatable
        self._mode, self._knows, self._left = mode, knows, most
        self._clumsy = self._chance.choice([0.15, 0.3, 0.3, 0.5, 0.5, 0.7, 1.0])
        self._right: Said | None = None
        self._made: list[tuple[str, Mapping[str, Any]]] = []
        self._number = 0

    async def __call__(self, effect: Send) -> Said:
        if not self._left:
            raise Over
        self._left -= 1
        self._number += 1
        right = await self._next_right(effect)
        if right is None or self._likely(self._clumsy):
            reply = self._mistake(effect.request)
        else:
            self._right = None
            reply = self._in_some_way(right) if self._likely(0.25) else right
        characters = sum(map(len, effect.request.messages))
        return msgspec.structs.replace(reply, prompt=characters // 4 + 1)

    async def _next_right(self, effect: Send) -> Said | None:
        """What the one who knows would say here; kept until it is said."""
        if self._right is None and self._knows is not None:
            try:
                self._right = said((await self._knows(effect)).reply)
            except (Exception, AssertionError):  # noqa: BLE001 - whatever it stumbles over, it knows no more
                self._knows = None
        return self._right

    def _likely(self, share: float) -> bool:
        return self._chance.random() < share

    def _in_some_way(self, right: Said) -> Said:
        """The right thing in another form."""
        calls: list[tuple[str, Mapping[str, Any]]] = []
        for _, name, arguments in right.calls:
            calls.append((name, json.loads(arguments)))
        if not calls and self._mode != "native":
            try:
                told = json.loads(right.text)
                calls = [(told["tool"], told["args"])]
            except (ValueError, LookupError, TypeError):
                return right
        if not calls:
            return right
        if self._mode == "native" and self._likely(0.3):
            return msgspec.structs.replace(right, text="I will do that now.", reasoning="The user wants this.")
        return self._as_text(calls)

    def _mistake(self, request: Request) -> Said:
        tools = dict(schemas(request)) or _in_prompt(request)
        values = _Values(self._chance, request)
        if not tools:
            return Said(text=self._chance.choice(_TEXTS))
        if self._mode == "constrained" and self._likely(0.85):
            return self._obedient(tools, values)
        match self._chance.choices(
            ["call", "text", "empty", "unknown", "again", "several", "damaged", "odd", "as text", "think", "cut"],
            [30, 9, 3, 6, 9, 8, 7, 14, 15, 4, 3],
        )[0]:
            case "call":
                return self._written([self._call(tools, values)])
            case "text":
                return Said(text=self._chance.choice(_TEXTS))
            case "empty":
                return Said(text=self._chance.choice(["", " \n"]))
            case "unknown":
                name, arguments = self._call(tools, values)
                return self._written([(self._chance.choice([*_UNKNOWN, name.upper(), name + "s"]), arguments)])
            case "again":
                made = self._made[-self._chance.choice([1, 1, 1, 2]) :][:1]
                return self._written(made or [self._call(tools, values)])
            case "several":
                return self._written([self._call(tools, values) for _ in range(self._chance.randint(2, 4))])
            case "damaged":
                return self._damaged(self._call(tools, values))
            case "odd":
                name, arguments = self._call(tools, values)
                return self._written([(name, self._bent(arguments, values))])
            case "as text":
                return self._as_text([self._call(tools, values) for _ in range(self._chance.choice([1, 1, 1, 2]))])
            case "think":
                thought = f"I should call {self._chance.choice([*tools])}. Or should I?"
                text = self._chance.choice([f"<think>{thought}</think>", f"<think>{thought}", f"{thought}</think>"])
                return Said(text=text) if self._likely(0.6) else Said(reasoning=thought)
            case _:
                text = json.dumps({"tool": self._chance.choice([*tools]), "args": values.spoken()})
                return Said(text=text[: len(text) // 2], finish="length")

    def _obedient(self, tools: Mapping[str, Any], values: "_Values") -> Said:
        """A call that keeps to the schema of replies as far as a monkey can read it; or the end of its room."""
        name, arguments = self._call(tools, values)
        text = json.dumps({"tool": name, "args": arguments})
        self._made.append((name, arguments))
        return Said(text=text[:-7], finish="length") if self._likely(0.04) else Said(text=text)

    def _call(self, tools: Mapping[str, Any], values: "_Values") -> tuple[str, Mapping[str, Any]]:
        name = self._chance.choice([*tools])
        made = values.of(tools[name], tools[name].get("$defs", {}), "")
        arguments = made if isinstance(made, dict) else {}
        self._made.append((name, arguments))
        return name, arguments

    def _bent(self, arguments: Mapping[str, Any], values: "_Values") -> Mapping[str, Any]:
        """The arguments with one of them missing, invented, or of another type."""
        bent = dict(arguments)
        key = self._chance.choice([*bent, "x"])
        match self._chance.randrange(5):
            case 0:
                bent.pop(key, None)
            case 1:
                bent[self._chance.choice(_INVENTED)] = values.seen()
            case 2:
                bent[key] = self._chance.choice(_STOCK)
            case 3:
                bent[key] = str(bent.get(key, 1))
            case _:
                bent = {name.title(): [value] for name, value in bent.items()}
        return bent

    def _written(self, calls: Calls) -> Said:
        if self._mode != "native":
            return Said(text="\n".join(json.dumps({"tool": name, "args": arguments}) for name, arguments in calls))
        made = [(f"m{self._number}_{n}", name, json.dumps(args)) for n, (name, args) in enumerate(calls)]
        text = self._chance.choice(["", "", "", self._chance.choice(_TEXTS)])
        return Said(text=text, calls=tuple(made), finish="tool_calls")

    def _damaged(self, call: tuple[str, Mapping[str, Any]]) -> Said:
        name, arguments = call
        text = json.dumps(arguments)
        damaged = self._chance.choice(
            [text[:-1], text.replace('"', "'"), text[: len(text) // 2], text + "}", text.replace(":", ""), f'"{text}"']
        )
        if self._mode == "native":
            return Said(calls=((f"m{self._number}", name, damaged),), finish="tool_calls")
        return Said(text=f'{{"tool": "{name}", "args": {damaged}}}')

    def _as_text(self, calls: Calls) -> Said:
        """Calls in one of the forms that models know, in a text."""
        form = self._chance.choice(_FORMS)
        text = "\n".join(form(name, arguments) for name, arguments in calls)
        around = self._chance.choice(
            ["{}", "{}", "I will call it now.\n\n{}", "{}\n\nThat should do.", "<think>So.</think>{}"]
        )
        return Said(text=around.replace("{}", text))


class _Values:
    """Values for arguments: as the schema has them, or what was shown somewhere."""

    def __init__(self, chance: random.Random, request: Request) -> None:
        self._chance = chance
        shown = [msgspec.json.decode(message) for message in request.messages]
        self._by_key: dict[str, list[Any]] = {}
        self._seen: list[Any] = []
        for message in shown:
            text = message.get("content")
            if not isinstance(text, str):
                continue
            for key, value in _scalars(_json_in(text)):
                self._by_key.setdefault(key, []).append(value)
                self._seen.append(value)
            self._seen += [word.strip("\"'") for word in _WORDS.findall(text)[-60:]]
        described = _WORDS.findall(bytes(request.tail).decode())
        self._described = [word.strip("\"'\\") for word in described[:200]]

    def seen(self) -> Any:
        pools = [pool for pool in (self._seen, self._seen, self._described, _STOCK) if pool]
        return self._chance.choice(self._chance.choice(pools))

    def spoken(self) -> str:
        return " ".join(str(self.seen()) for _ in range(self._chance.randint(1, 9)))

    def of(self, schema: Mapping[str, Any], defs: Mapping[str, Any], key: str) -> Any:
        """A value that is often of the type and sometimes right."""
        chance = self._chance
        if "$ref" in schema:
            return self.of(defs.get(schema["$ref"].rsplit("/", 1)[-1], {}), defs, key)
        if "const" in schema:
            return schema["const"]
        if choices := schema.get("enum"):
            return chance.choice(choices) if chance.random() < 0.95 else self.seen()
        if choices := schema.get("anyOf") or schema.get("oneOf"):
            return self.of(chance.choice(choices), defs, key)
        kinds = schema.get("type", "string")
        kind = kinds if isinstance(kinds, str) else chance.choice(kinds)
        known = self._by_key.get(key, []) if chance.random() < 0.7 else []
        match kind:
            case "object":
                wanted = schema.get("required", ())
                return {
                    name: self.of(inner, defs, name)
                    for name, inner in schema.get("properties", {}).items()
                    if name in wanted or chance.random() < 0.3
                }
            case "array":
                items = schema.get("items", {})
                return [self.of(items, defs, key) for _ in range(chance.choice([0, 1, 1, 2, 3]))]
            case "integer" | "number":
                numbers = [one for one in (known or self._seen) if isinstance(one, int | float)]
                numbers += [int(one) for one in self._seen if isinstance(one, str) and one.isdecimal()]
                return chance.choice(numbers or [0, 1, 7, 100])
            case "boolean":
                return chance.random() < 0.5
            case "null":
                return None
            case _:
                texts = [one for one in known if isinstance(one, str)]
                if texts:
                    return chance.choice(texts)
                return str(self.seen()) if chance.random() < 0.8 else self.spoken()


def _in_prompt(request: Request) -> dict[str, Any]:
    texts = [msgspec.json.decode(message).get("content") for message in request.messages]
    found = [each for text in texts if isinstance(text, str) for each in _IN_PROMPT.findall(text)]
    return {name: json.loads(schema) for name, schema in found}


def _json_in(text: str) -> Any:
    for opening in ("{", "["):
        at = text.find(opening)
        if at >= 0:
            try:
                return json.JSONDecoder().raw_decode(text[at:])[0]
            except ValueError:
                continue
    return None


def _scalars(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    match value:
        case dict():
            for name, inner in value.items():
                yield from _scalars(inner, str(name))
        case list():
            for inner in value:
                yield from _scalars(inner, key)
        case None:
            pass
        case _:
            yield key, value


def _parameters(arguments: Mapping[str, Any]) -> str:
    return "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in arguments.items())


_FORMS: list[Callable[[str, Mapping[str, Any]], str]] = [
    lambda name, given: json.dumps({"tool": name, "args": given}),
    lambda name, given: json.dumps({"name": name, "arguments": given}),
    lambda name, given: f"```json\n{json.dumps({'name': name, 'arguments': given}, indent=2)}\n```",
    lambda name, given: f"<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>",
    lambda name, given: f"<tool_call>{json.dumps({'name': name, 'arguments': given})}",
    lambda name, given: f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})",
    lambda name, given: f"[{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})]",
    lambda name, given: f"<function={name}>\n{_parameters(given)}</function>",
    lambda name, given: f"[TOOL_CALLS]{name}[ARGS]{json.dumps(given)}",
    lambda name, given: f"Action: {name}\nAction Input: {json.dumps(given)}",
    lambda name, given: json.dumps({name: given}),
]
