"""Schemas compiled, and values judged by them, with bounded work, however hostile they are.

A schema whose validation could take too long is judged part by part, each pair of part and value once. Parts that
cannot be checked even so allow any value.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Self
from weakref import ref

import msgspec
from msgspec import Raw, Struct

from stages.decoding import decode, nested
from stages.schema.canonical_json import canonical_value
from stages.schema.value import (
    MAX_BYTES,
    MAX_DEPTH,
    Json,
    any_json,
    at_pointer,
    cut_text,
    dotted,
    is_pointer,
    members_of,
    shown_value,
)

if TYPE_CHECKING:
    from jsonschema_rs import FancyRegexOptions, KeywordValidator, RegexOptions, ValidationError, Validator


# The keywords of a schema that contain parts.

_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"})
"""Keywords whose parts apply to the value itself."""

_INNER = frozenset(
    {"properties", "patternProperties", "additionalProperties", "propertyNames"}
    | {"items", "prefixItems", "additionalItems", "contains"}
)
"""Keywords whose parts apply to members, their names, and items."""

_DEFINITIONS = frozenset({"$defs", "definitions"})

_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "dependencies"}) | _DEFINITIONS
"""Keywords with a part for each name."""

_PARTS = _SAME_VALUE | _INNER | _DEFINITIONS

SchemaPath = tuple[str | int, ...]
"""A path from a part to one within it: the keyword, and the name or index under it."""


def _parts_of(part: dict[str, Json], keyword: str) -> list[Json]:
    """The parts under the keyword."""
    match part.get(keyword):
        case None:
            return []
        case list() as listed:
            return listed
        case dict() as named if keyword in _NAMED:
            # Draft 7's `dependencies` may list names instead.
            return [one for one in named.values() if not isinstance(one, list)]
        case one:
            return [one]


def _with_parts(part: dict[str, Json], change: Callable[[SchemaPath, Json], Json]) -> dict[str, Json]:
    """The part with each part within it changed."""
    return {keyword: _changed(keyword, rule, change) if keyword in _PARTS else rule for keyword, rule in part.items()}


def _changed(keyword: str, rule: Json, change: Callable[[SchemaPath, Json], Json]) -> Json:
    match rule:
        case list():
            return [change((keyword, i), part) for i, part in enumerate(rule)]
        case dict() if keyword in _NAMED:
            return {
                name: part if isinstance(part, list) else change((keyword, name), part) for name, part in rule.items()
            }
        case _:
            return change((keyword,), rule)


def objects_in(root: Json) -> Iterator[dict[str, Json]]:
    """All objects in the schema, itself first, including those that are values, such as constants."""
    todo = [root]
    while todo:
        match todo.pop():
            case dict() as found:
                yield found
                todo += found.values()
            case list() as listed:
                todo += listed
            case _:
                pass


# The cost of searching for the patterns of a schema, derived from the sizes of their compiled programs, not timed.
#
# Most patterns take time linear in the text. Those with look-around or back-references may restart at every character
# and read the rest each time. A unit of cost is about five nanoseconds.

_BACKTRACKING = 2_000
"""Maximum backtracking steps from one character, for a pattern with look-around or back-references."""

_MOST_TEXT = 2_000
"""Maximum characters of a pattern."""

_MOST_TEXTS = 6_000
"""Maximum characters of all patterns of a schema."""

_LARGEST = 1_000_000
"""Maximum bytes of a pattern's compiled program."""

_SIZES = (500, 2_000, 8_000, 32_000, 128_000, 500_000, _LARGEST)
"""The limits in bytes to try, in order: the engine does not tell a program's size, only whether it exceeds a limit."""

_MOST_SIZES = 4_000_000
"""Maximum total bytes of these trials for all patterns of a schema."""


class Search(Struct, frozen=True):
    """The cost of a pattern: the size of its program, and whether it has look-around or back-references."""

    size: int
    around: bool

    def cost(self, length: int) -> int:
        """Maximum units of a search in a text of this length."""
        if self.around:
            return length * (length * (1 + self.size // 150) + 4 * _BACKTRACKING)
        return length * self.rate

    @property
    def rate(self) -> int:
        """Units for each character, without look-around."""
        return 100 + self.size // 100


def searches(root: dict[str, Json]) -> dict[str, Search | None]:
    """The cost of each pattern of the schema; None if it is too high.

    Invalid patterns are left out; the validator reports them.
    """
    found: dict[str, Search | None] = {}
    texts, sizes = _MOST_TEXTS, _MOST_SIZES
    for pattern in dict.fromkeys(_patterns(root)):
        texts -= len(pattern)
        if len(pattern) > _MOST_TEXT or texts < 0:
            found[pattern] = None
        elif _compiles(f"(?:x(?:{pattern})){{0}}", _LARGEST):
            # Repeated zero times, the pattern is parsed, but its program is empty.
            tried = [size for size in _SIZES if size <= sizes]
            found[pattern], spent = _search(pattern, tried)
            sizes -= spent
    return found


def _patterns(root: Json) -> Iterator[str]:
    for part in objects_in(root):
        if isinstance(pattern := part.get("pattern"), str):
            yield pattern
        if isinstance(named := part.get("patternProperties"), dict):
            yield from named


def _search(pattern: str, sizes: list[int]) -> tuple[Search | None, int]:
    """The pattern's cost, and the total bytes of the trials."""
    around = not _compiles(f"(?:x(?:{pattern})){{0}}", _LARGEST, around=False)
    for tried, size in enumerate(sizes, 1):
        if _compiles(pattern, size, around=around):
            return Search(size * (1 + pattern.count("(?")) if around else size, around), sum(sizes[:tried])
    return None, sum(sizes)


def _compiles(pattern: str, size: int, *, around: bool = True) -> bool:
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

    try:
        validator_for({"pattern": pattern}, pattern_options=engine(around=around, size=size))
    except ValidationError:
        return False
    return True


def engine(*, around: bool, size: int = _LARGEST) -> "RegexOptions | FancyRegexOptions":
    """The options of the pattern engine. `around`: with look-around and back-references."""
    from jsonschema_rs import FancyRegexOptions, RegexOptions  # noqa: PLC0415 - it takes longer to import than most of forge

    if around:
        return FancyRegexOptions(backtrack_limit=_BACKTRACKING, size_limit=size)
    return RegexOptions(size_limit=size)


# The maximum number of parts of a schema that apply to one value, which is the cost of a check for each value.
#
# A schema of 2 kB can check the same thing 2**30 times, by alternatives that each refer to the next definition twice.
# So the parts are counted, following references, before the schema is used. The count is an upper bound, because it
# also adds up parts that apply to different places. A schema that refers to itself has no bound, and is judged part by
# part.

MOST_VISITS = 1_000
"""Counting stops here."""


def visits(root: dict[str, Json]) -> int:
    """An upper bound for the parts that apply to one value; `MOST_VISITS` if it is that high or there is none."""
    counts: dict[int, int] = {}

    def count(part: Json, depth: int) -> int:
        if not isinstance(part, dict):
            return 1
        if id(part) not in counts:
            counts[id(part)] = MOST_VISITS  # for references back to this part
            if depth == _DEEPEST:
                return MOST_VISITS
            below = 0
            for keyword in part.keys() & (_SAME_VALUE | _INNER):
                within_it = [count(one, depth + 1) for one in _parts_of(part, keyword)]
                # A member has one name and an item one index, so only one of these parts applies.
                below += max(within_it, default=0) if keyword in ("properties", "prefixItems") else sum(within_it)
            if is_pointer(reference := part.get("$ref")):
                below += count(at_pointer(root, reference), depth + 1)
            counts[id(part)] = min(MOST_VISITS, 1 + below)
        return counts[id(part)]

    return count(root, 0)


# A compiled schema: its validator, the cost of a check, and the parts that are not checked.

_MOST_WORK = 10_000_000
"""Maximum units of a check by the validator alone; for a unit, see the patterns above."""

_UNFOLLOWED = frozenset({"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"})
"""Keywords that take the validator exponential time; hardly any tool has one."""

_IDENTIFIERS = frozenset({"$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"})
"""What references other than JSON pointers refer to."""


class SchemaError(ValueError):
    """A tool's parameters are not a JSON Schema that arguments can be checked against; the text says where and why."""


class Compiled(Struct, frozen=True, kw_only=True):
    """A schema with its validator, `whole`, which is not to be asked if `rate` is None.

    `draft` is the dialect that it names. `searches` has the costs of its patterns. `unchecked` names the parts that
    cost too much to check, so any value fits there. `rate` is the maximum work of the validator for each character of
    arguments, in units; None if it has no bound.
    """

    root: Json
    draft: str
    whole: "Validator"
    searches: Mapping[str, Search]
    unchecked: tuple[str, ...]
    rate: int | None

    def quick(self, size: int) -> bool:
        """Whether the validator alone can check arguments of so many characters in bounded time."""
        return self.rate is not None and self.rate * size <= _MOST_WORK


def compiled(parameters: bytes | Raw) -> Compiled:
    """The schema, compiled. Raises SchemaError for an invalid one; references are never fetched."""
    size, unchecked = len(bytes(parameters)), list[str]()
    schema = _read(parameters) if size <= MAX_BYTES else {}
    if size > MAX_BYTES:
        unchecked.append(f"all (it has {size} bytes, at most {MAX_BYTES} are read)")
    known = searches(schema)
    root = _checkable(known, unchecked, (), schema)
    if any(part.keys() & _UNFOLLOWED for part in objects_in(root)):
        # In a place that the walk above does not know, but to which a pointer may lead.
        unchecked, root = ["all"], {}
    ways = visits(root)
    kept = {pattern: search for pattern, search in known.items() if search}
    around = any(search.around for search in kept.values())
    bounded = not around and ways < MOST_VISITS
    return Compiled(
        root=root,
        draft=str(root.get("$schema", "")),
        whole=_validator(root, around=around),
        searches=kept,
        unchecked=tuple(unchecked),
        rate=3 * (ways + _compared(root)) + sum(search.rate for search in kept.values()) if bounded else None,
    )


def _compared(root: dict[str, Json]) -> int:
    """The number of arrays and objects in its enums, because the validator compares a value with each of them."""
    listed = (options for part in objects_in(root) if isinstance(options := part.get("enum"), list))
    return sum(isinstance(option, list | dict) for options in listed for option in options)


def _checkable(
    known: Mapping[str, Search | None], unchecked: list[str], path: SchemaPath, part: dict[str, Json]
) -> dict[str, Json]:
    """The part without the rules that cost too much to check, which are added to `unchecked`."""

    def inner(within: SchemaPath, one: Json) -> Json:
        return _checkable(known, unchecked, (*path, *within), one) if isinstance(one, dict) else one

    reference, pattern, named = part.get("$ref"), part.get("pattern"), part.get("patternProperties")
    gone = part.keys() & _UNFOLLOWED
    if isinstance(reference, str) and reference.startswith("#") and not is_pointer(reference):
        gone.add("$ref")
    if isinstance(pattern, str) and known.get(pattern, _UNKNOWN) is None:
        gone.add("pattern")
    if isinstance(named, dict) and any(
        (search := known.get(name, _UNKNOWN)) is None or search.around for name in named
    ):
        gone |= {"patternProperties", "additionalProperties"}
    unchecked += [dotted((*path, keyword)) for keyword in part if keyword in gone]
    return _with_parts({k: rule for k, rule in part.items() if k not in gone | _IDENTIFIERS}, inner)


_UNKNOWN = Search(0, around=False)


def _read(parameters: bytes | Raw) -> dict[str, Json]:
    try:
        schema = decode(any_json, bytes(parameters))
    except msgspec.DecodeError as error:
        raise SchemaError(f"the schema is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"the schema is {shown_value(schema)}; write a JSON object")
    if nested(bytes(parameters), MAX_DEPTH):
        raise SchemaError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    types = schema.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise SchemaError(f'the schema is wrong at "type": arguments are an object, not {shown_value(types)}')
    return schema


def _validator(schema: dict[str, Json], *, around: bool) -> "Validator":
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

    try:
        return validator_for(schema, pattern_options=engine(around=around), validate_formats=True, offline=True)
    except ValidationError as error:
        raise SchemaError(_explained(error)) from error


def _explained(error: "ValidationError") -> str:
    where = error.instance_path
    if error.kind.name == "$ref":
        return f"the schema refers outside of itself: {error.message}; refer to its own parts, as in #/$defs/name"
    keyword = next((step for step in reversed(where) if isinstance(step, str)), "schema")
    return f'the schema is wrong at "{dotted(where)}": {cut_text(error.message, 200)} (keyword "{keyword}")'


# Whether values fit parts of a schema: each question is answered once in a check, with bounded work in all.
#
# The validator alone would answer the same question again for every path through the schema that leads to it. So it is
# given single parts, with their references replaced by keywords of ours, whose questions come back here.

_DEEPEST = 150
"""Maximum depth of nested questions, because each takes some of the interpreter's stack."""

_MOST_QUESTIONS = 400_000
"""Maximum number of questions in one check: about two seconds, and 100 MB for the answers."""

_MOST_SEARCHED = 10_000_000
"""Maximum units for all patterns in one check."""

_LEVELS = 120
"""Maximum depth to which parts of a schema are followed, including references."""

_MOST_STEPS = 100_000
"""Maximum number of steps in one check: about one and a half seconds.

If a schema refers to itself in several alternatives, trying all of them would take exponential time.
"""

_PART, _PATTERN, _ENUM = "forge:part", "forge:pattern", "forge:enum"
"""Keywords of ours, whose questions come back here."""

_ALONE = "forge:alone"
"""Where a part is in the schema with which it is compiled."""

_ASKED = {"pattern": _PATTERN, "enum": _ENUM}
"""The keywords that two of them replace."""

_LEFT_OUT = _DEFINITIONS | _UNFOLLOWED | _IDENTIFIERS | {_PART, _PATTERN, _ENUM}


class _Unfit(Exception):  # noqa: N818 - a verdict: a keyword of ours raises it for a value that does not fit
    """The value does not fit."""


class Judge:
    """The verdicts of one check; use a new Judge for each. `size` is the length of the arguments' text.

    `exhausted`: there were too many questions, and verdicts are unreliable.
    """

    def __init__(self, schema: Compiled, size: int) -> None:
        self.schema = schema
        self.exhausted = False
        self._questions = min(1_000 + 4 * size, _MOST_QUESTIONS)
        self._steps = min(2_000 + 4 * size, _MOST_STEPS)
        self._searched = _MOST_SEARCHED
        self._waiting = 0
        self._asking = False
        self._asked: list[Json] = []
        # By ids of part and value. The values are kept, so that no id is reused.
        self._verdicts: dict[tuple[int, int], bool] = {}
        self._kept: dict[int, object] = {}
        self._validators: dict[int, Validator] = {}
        self._own: dict[int, Validator] = {}
        self._patterns: dict[str, Validator] = {}
        self._options: dict[int, frozenset[str]] = {}
        self._cases: dict[int, dict[str, str]] = {}
        self._found: dict[tuple[str, str], bool] = {}
        # In these drafts, a `$ref` overrides the keywords beside it.
        self._overriding = any(name in schema.draft for name in ("draft-04", "draft-06", "draft-07"))

    def fits(self, part: Json, value: object) -> bool:
        """Whether the value fits that part of the schema; False if there is no such part."""
        if not isinstance(part, dict):
            return part is True
        key = id(part), id(value)
        known = self._verdicts.get(key)
        if known is not None:
            return known
        if not self._questions or self._waiting >= _DEEPEST:
            self.exhausted = True
        if self.exhausted:
            return False
        self._questions -= 1
        self._waiting += 1
        self._kept[id(value)] = value
        # A part that only refers back to itself accepts everything.
        self._verdicts[key] = True
        verdict = False
        try:
            verdict = self._validator(part).is_valid(value)
        except RecursionError:
            # The caller has used up most of the interpreter's stack. The validator would take the error for a verdict.
            self.exhausted = True
        finally:
            self._verdicts[key] = verdict
            self._waiting -= 1
        return verdict

    def step(self) -> bool:
        """Whether to take another step of a walk through the schema; False without verdicts."""
        if self.exhausted or not self._steps:
            return False
        self._steps -= 1
        return True

    def learn(self, value: Json, *, fits: bool) -> None:
        """Record the validator's own verdict on a value of the whole schema."""
        self._kept[id(value)] = value
        self._verdicts[id(self.schema.root), id(value)] = fits

    def lists(self, part: dict[str, Json], value: Json) -> bool:
        """Whether the part's `const` or `enum` allows the value; True if it has neither."""
        listed = [part["const"]] if "const" in part else part.get("enum")
        if not isinstance(listed, list):
            return True
        options = self._options.get(id(part))
        if options is None:
            options = self._options[id(part)] = frozenset(map(canonical_value, listed))
        return canonical_value(value) in options

    def in_other_case(self, part: dict[str, Json], text: str) -> str | None:
        """The one text of the part's `const` or `enum` that this is but for its case and blanks around it, or None."""
        known = self._cases.get(id(part))
        if known is None:
            listed = [part["const"]] if "const" in part else part.get("enum")
            texts = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
            alike = Counter(map(str.casefold, texts))
            known = self._cases[id(part)] = {one.casefold(): one for one in texts if alike[one.casefold()] == 1}
        return known.get(text.strip().casefold())

    def finds(self, pattern: str, text: str) -> bool:
        """Whether the pattern matches in the text; True if searching for it would cost too much."""
        search = self.schema.searches.get(pattern)
        cost = 0 if search is None or (pattern, text) in self._found else search.cost(len(text))
        if search is None or cost > self._searched:
            return True
        if (pattern, text) not in self._found:
            self._searched -= cost
            if pattern not in self._patterns:
                self._patterns[pattern] = self._compiled({"pattern": pattern})
            self._found[pattern, text] = self._patterns[pattern].is_valid(text)
        return self._found[pattern, text]

    def _validator(self, part: dict[str, Json]) -> "Validator":
        found = self._validators.get(id(part))
        if found is None:
            found = self._validators[id(part)] = self._compiled(self._alone(part))
        return found

    def own(self, part: dict[str, Json], keywords: frozenset[str]) -> "Validator":
        """The validator of only these keywords of the part."""
        found = self._own.get(id(part))
        if found is None:
            rules = {keyword: rule for keyword, rule in part.items() if keyword in keywords}
            found = self._own[id(part)] = self._compiled(rules)
        return found

    def _compiled(self, schema: dict[str, Json]) -> "Validator":
        from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

        # Behind a reference, as in the whole schema: a draft requires nothing of parts in places that it does not know,
        # such as `$defs` in draft 7, so the validator must not refuse them here.
        whole: dict[str, Json] = {"$ref": f"#/{_ALONE}", _ALONE: schema}
        try:
            return validator_for(
                {**whole, "$schema": self.schema.draft} if self.schema.draft else whole,
                keywords=self._keywords if self._asking else None,
                pattern_options=engine(around=True),
                validate_formats=True,
                offline=True,
            )
        except ValidationError:
            return validator_for(True)  # nothing in the schema leads the validator to this part

    @cached_property
    def _keywords(self) -> "dict[str, type[KeywordValidator]]":
        # Weak, because the garbage collector cannot see a cycle that goes through the validator.
        judge = ref(self)

        class Part:
            def __init__(self, parent_schema: object, value: int, schema_path: object) -> None:  # noqa: ARG002 - not ours
                self._part = None if (asked := judge()) is None else asked._asked[value]  # noqa: SLF001 - its own keyword

            def validate(self, instance: object) -> None:
                asked = judge()
                if asked is None or not asked.fits(self._part, instance):
                    raise _Unfit

        class Pattern:
            def __init__(self, parent_schema: object, value: str, schema_path: object) -> None:  # noqa: ARG002 - not ours
                self._pattern = value

            def validate(self, instance: object) -> None:
                asked = judge()
                if isinstance(instance, str) and (asked is None or not asked.finds(self._pattern, instance)):
                    raise _Unfit

        class Enum:
            def __init__(self, parent_schema: object, value: list[Json], schema_path: object) -> None:  # noqa: ARG002 - not ours
                self._options = frozenset(map(canonical_value, value))

            def validate(self, instance: Json) -> None:
                if canonical_value(instance) not in self._options:
                    raise _Unfit

        return {_PART: Part, _PATTERN: Pattern, _ENUM: Enum}

    def _alone(self, part: dict[str, Json]) -> dict[str, Json]:
        """The part by itself, with keywords of ours for its references, patterns and enums."""
        left = {keyword: rule for keyword, rule in part.items() if keyword not in _LEFT_OUT}
        if self._overriding and "$ref" in part:
            left = {"$ref": part["$ref"]}
        left = _with_parts(left, lambda _, one: self._alone(one) if isinstance(one, dict) else one)
        for keyword, ours in _ASKED.items():
            if keyword in left:
                left[ours] = left.pop(keyword)
                self._asking = True
        if is_pointer(reference := left.pop("$ref", None)):
            conjuncts = left.get("allOf")
            asked = self._question(at_pointer(self.schema.root, reference))
            left["allOf"] = [*(conjuncts if isinstance(conjuncts, list) else []), asked]
        return left

    def _question(self, part: Json) -> dict[str, Json]:
        """A keyword of ours that asks whether the value fits that part."""
        self._asking = True
        self._asked.append(part)
        return {_PART: len(self._asked) - 1}


# The parts of a schema that apply to each place in a value.

Path = tuple[str | int, ...]
"""The names and indexes that lead to a place in a value."""


class Place(Struct, frozen=True):
    """A part of a schema and the place in a value that it applies to."""

    judge: Judge
    part: Json
    path: Path = ()
    level: int = 0

    @property
    def rules(self) -> dict[str, Json]:
        """The part's keywords."""
        return self.part if isinstance(self.part, dict) else {}

    def fits(self, value: Json) -> bool:
        """Whether the value fits the part; False if there is no such part."""
        return self.judge.fits(self.part, value)

    def lasts(self) -> bool:
        """Whether to continue at this place, which costs a step of its check; never deeper than `_LEVELS`."""
        return self.level <= _LEVELS and self.judge.step()

    def conjuncts(self) -> list[Self]:
        """Further parts that apply to the same value: the target of `$ref`, and `allOf`."""
        target = self.rules.get("$ref")
        referred = [self._at(at_pointer(self.judge.schema.root, target))] if is_pointer(target) else []
        return referred + self._branches("allOf") if "allOf" in self.rules else referred

    def alternatives(self) -> list[list[Self]]:
        """The lists of parts one of which must fit the same value: `anyOf` and `oneOf`."""
        return [self._branches(keyword) for keyword in ("anyOf", "oneOf") if keyword in self.rules]

    def member(self, name: str) -> Self:
        """The part for that member of an object."""
        declared = self.rules.get("properties")
        if isinstance(declared, dict) and name in declared:
            return self._child(declared[name], name)
        return self._child(self.rules.get("additionalProperties"), name)

    def members(self, value: dict[str, Json]) -> Iterator[tuple[str, Json, Self]]:
        """The members that the part has rules for, each with its part.

        In the value's order, or in the schema's if that declares fewer: a schema of many small parts about one large
        object would otherwise take the product of both.
        """
        declared, others = members_of(self.rules), self.rules.get("additionalProperties")
        names = value if isinstance(others, dict) or len(value) <= len(declared) else declared
        for name in names:
            if name in value and (name in declared or isinstance(others, dict)):
                yield name, value[name], self._child(declared.get(name, others), name)

    def items(self, value: list[Json]) -> Iterator[tuple[int, Json, Self]]:
        """The items that the part has rules for, each with its part.

        From `prefixItems` (or draft 7's list of `items`), or for the rest.
        """
        items, first = self.rules.get("items"), self.rules.get("prefixItems")
        leading, rest = (items, self.rules.get("additionalItems")) if isinstance(items, list) else (first, items)
        listed = leading if isinstance(leading, list) else []
        for i, item in enumerate(value if isinstance(rest, dict) else value[: len(listed)]):
            yield i, item, self._child(listed[i] if i < len(listed) else rest, i)

    def _branches(self, keyword: str) -> list[Self]:
        branches = self.rules[keyword]
        return [self._at(branch) for branch in branches] if isinstance(branches, list) else []

    def _at(self, part: Json) -> Self:
        return type(self)(self.judge, part, self.path, self.level + 1)

    def _child(self, part: Json, step: str | int) -> Self:
        return type(self)(self.judge, part, (*self.path, step), self.level + 1)
