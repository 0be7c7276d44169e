"""A regular expression taken apart: as an automaton, and as texts that it begins with."""

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from msgspec import Struct

_parser = import_module("re._parser")
_UNROLLED = 12
"""Repetitions that are followed one by one; a loop stands for more of them."""
_BOUNDED = 4000
"""Repetitions that a search may look over at every character."""
_SAMPLE = [*map(chr, range(128)), *"\u00a0\u00e9\u0663\u2028\u3000\u4e16\U0001f600"]
"""One character of each kind that classes tell apart, beside those that the expression names."""
_ALL = -1

Edge = tuple[int, int]
"""The set of characters, as bits, and the state that they lead to."""


class _Empty(Struct, frozen=True):
    """A way from one state to another that reads nothing, and the set that the next character must be in."""

    to: int
    next_in: int = _ALL


class Automaton:
    """The states of one expression: 0 is the first. Lookaheads are ways that lead nowhere."""

    def __init__(self, pattern: re.Pattern[str], *, search: bool) -> None:
        tree = _parser.parse(pattern.pattern, pattern.flags)
        # A bounded repetition costs a search no more than its bound at each character.
        self.looped_from = _BOUNDED if search else _UNROLLED
        self.flags = pattern.flags
        self.letters = list(dict.fromkeys([*_SAMPLE, *_named(tree)]))
        self.reads: list[list[Edge]] = []
        self.skips: list[list[_Empty]] = []
        first = self.state()
        # What stands at the beginning of the text only is not looked for anywhere else.
        if search and str(tree[0]) != "(AT, AT_BEGINNING_STRING)":
            self.reads[first].append((self.everything(), first))
        self.end = self.sequence(tree, first)

    def everything(self) -> int:
        return (1 << len(self.letters)) - 1

    def state(self) -> int:
        self.reads.append([])
        self.skips.append([])
        return len(self.reads) - 1

    def sequence(self, items: Iterable[Any], at: int) -> int:
        for operator, argument in items:
            at = self.item(str(operator), argument, at)
        return at

    def item(self, operator: str, argument: Any, at: int) -> int:
        match operator:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self.reading(at, self.characters(operator, argument))
            case "SUBPATTERN":
                return self.sequence(argument[3], at)
            case "ATOMIC_GROUP":
                return self.sequence(argument, at)
            case "BRANCH":
                end = self.state()
                for branch in argument[1]:
                    self.skips[self.sequence(branch, self.begun(at))].append(_Empty(end))
                return end
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self.repeat(argument, at, possessive=False)
            case "POSSESSIVE_REPEAT":
                return self.repeat(argument, at, possessive=True)
            case "ASSERT" | "ASSERT_NOT":
                if argument[0] > 0:
                    self.sequence(argument[1], self.begun(at))
                return at
            case "AT" if str(argument) == "AT_END_STRING":
                self.skips[at].append(_Empty(end := self.state(), next_in=0))
                return end
            case "AT" | "GROUPREF":
                return at
            case _:
                raise NotImplementedError(operator)

    def begun(self, at: int) -> int:
        state = self.state()
        self.skips[at].append(_Empty(state))
        return state

    def reading(self, at: int, characters: int) -> int:
        end = self.state()
        self.reads[at].append((characters, end))
        return end

    def repeat(self, argument: tuple[int, int, Any], at: int, *, possessive: bool) -> int:
        least, most, body = argument
        if self.looped_from > _UNROLLED and _UNROLLED < most <= self.looped_from:
            least = most = 1
        for _ in range(min(least, _UNROLLED)):
            at = self.sequence(body, at)
        if most <= _UNROLLED:
            end = self.state()
            for _ in range(most - least):
                self.skips[at].append(_Empty(end))
                at = self.sequence(body, at)
            self.skips[at].append(_Empty(end))
            return end
        loop, end = self.begun(at), self.state()
        self.skips[self.sequence(body, loop)].append(_Empty(loop))
        # A possessive loop over characters ends only where the next is not one of them.
        one = possessive and len(body) == 1 and str(body[0][0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")
        beyond = ~self.characters(str(body[0][0]), body[0][1]) if one else _ALL
        self.skips[loop].append(_Empty(end, beyond))
        return end

    def characters(self, operator: str, argument: Any) -> int:
        if operator == "LITERAL" and not self.flags & re.IGNORECASE:
            return 1 << self.letters.index(chr(argument))
        inside = (i for i, letter in enumerate(self.letters) if _is_in(letter, operator, argument, self.flags))
        return sum(1 << i for i in inside)

    def steps(self) -> dict[int, list[Edge]]:
        """For every state, what it reads next and where that leads, whatever it skips before."""
        return {state: list(self.after(state)) for state in range(len(self.reads))}

    def may_end(self, state: int) -> bool:
        """Whether the expression may match without reading more, whatever comes next."""
        seen: set[int] = set()
        todo = [state]
        while todo:
            new = {skip.to for skip in self.skips[todo.pop()] if skip.next_in == _ALL} - seen
            seen |= new
            todo += new
        return self.end in seen | {state}

    def after(self, state: int) -> Iterator[Edge]:
        seen: set[tuple[int, int]] = set()
        todo = [(state, _ALL)]
        while todo:
            at, allowed = todo.pop()
            if (at, allowed) in seen or not allowed:
                continue
            seen.add((at, allowed))
            yield from ((characters & allowed, to) for characters, to in self.reads[at] if characters & allowed)
            todo += [(skip.to, allowed & skip.next_in) for skip in self.skips[at]]


def _named(tree: Iterable[Any]) -> Iterator[str]:
    for node in tree:
        if isinstance(node, tuple) and len(node) == 2 and str(node[0]) in ("LITERAL", "NOT_LITERAL"):
            yield chr(node[1])
        elif isinstance(node, tuple) and len(node) == 2 and str(node[0]) == "RANGE":
            yield from map(chr, node[1])
        elif hasattr(node, "__getitem__"):
            yield from _named(node)


_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w", "NOT_DIGIT": r"\D", "NOT_SPACE": r"\S", "NOT_WORD": r"\W"}


def _is_in(letter: str, operator: str, argument: Any, flags: int) -> bool:
    """Whether the character is in the set; in either case, as if case were ignored everywhere."""
    forms = {ord(letter), ord(letter.lower()[0]), ord(letter.upper()[0])} if flags & re.IGNORECASE else {ord(letter)}
    match operator:
        case "LITERAL":
            return argument in forms
        case "NOT_LITERAL":
            return argument not in forms
        case "ANY":
            return bool(flags & re.DOTALL) or letter != "\n"
        case "RANGE":
            return any(argument[0] <= form <= argument[1] for form in forms)
        case "CATEGORY":
            name = str(argument).removeprefix("CATEGORY_")
            return re.match(_CATEGORIES[name], letter, flags & re.ASCII) is not None
        case "IN":
            negated = str(argument[0][0]) == "NEGATE"
            return negated != any(_is_in(letter, str(op), inner, flags) for op, inner in argument[negated:])
        case _:
            raise NotImplementedError(operator)


def examples(pattern: str) -> list[str]:
    """A text for each alternative of the expression, what it looks ahead at included."""
    return list(dict.fromkeys(_spelt(_parser.parse(pattern))))


def _spelt(tree: Iterable[Any]) -> list[str]:
    texts = [""]
    for operator, argument in tree:
        texts = [text + more for text in texts for more in _one(str(operator), argument)]
    return texts


def _one(operator: str, argument: Any) -> list[str]:
    match operator:
        case "LITERAL":
            return [chr(argument)]
        case "IN" | "NOT_LITERAL" | "ANY":
            return [next(letter for letter in "a \n1" + "".join(_SAMPLE) if _is_in(letter, operator, argument, 0))]
        case "SUBPATTERN":
            return _spelt(argument[3])
        case "BRANCH":
            return [text for branch in argument[1] for text in _spelt(branch)]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return [text * max(1, argument[0]) for text in _spelt(argument[2])]
        case "ASSERT":
            return _spelt(argument[1]) if argument[0] > 0 else [""]
        case "ASSERT_NOT" | "AT":
            return [""]
        case _:
            raise NotImplementedError(operator)
