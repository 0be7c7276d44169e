"""Whether values fit parts of a schema, each question asked once in a check, and all of them in bounded work.

The validator alone would ask the same again for every way through the schema that leads to it. So it is given single
parts, whose references, instead of being followed, come back here as questions.
"""

from functools import cached_property
from typing import TYPE_CHECKING
from weakref import ref

from stages.schema.canonical_json import canonical_value
from stages.schema.compilation import Compiled
from stages.schema.searches import engine
from stages.schema.subschemas import DEFINITIONS, INNER, UNEVALUATED, Step, with_parts
from stages.schema.value import Json, at_pointer, is_pointer

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator, Validator

_DEEPEST = 150
"""Maximum questions that wait for one another. Each takes some of the interpreter's stack."""

_INLINED, _NESTED, _LEVELS = 100, 3, 100
"""Maximum copies of what references lead to, of parts around one another that ask what is unevaluated, and depth."""

_MOST_SEARCHED = 10_000_000
"""Maximum units for the patterns in one check; see `stages.schema.searches`."""

_REFERENCE, _PATTERN, _ENUM = "forge:reference", "forge:pattern", "forge:enum"
"""Keywords of our own, for what comes back here."""

_ASKED = {"pattern": _PATTERN, "enum": _ENUM}
"""The keywords that they stand for."""

_ANY: dict[str, Json] = {"additionalProperties": True, "items": True}
"""Any value fits this, and nothing in it is unevaluated."""

_LEFT_OUT = DEFINITIONS | {_REFERENCE, _PATTERN, _ENUM, "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor"}


class _Unfit(Exception):  # noqa: N818 - how the validator is told
    """The value does not fit."""


class Judge:
    """The verdicts of one check, which uses it up. `size` is the length of the arguments' text.

    `exhausted` says that there were too many questions; verdicts are not to be relied on then.
    """

    def __init__(self, schema: Compiled, size: int) -> None:
        self.schema = schema
        self.exhausted = False
        self._questions = 1_000 + 4 * size
        self._searched = _MOST_SEARCHED
        self._inlined = _INLINED
        self._waiting = 0
        self._asking = False
        # By identity. The value is kept with its verdict, so that no other takes its place in memory.
        self._verdicts: dict[tuple[int, int], tuple[object, bool]] = {}
        self._validators: dict[int, Validator] = {}
        self._own: dict[int, Validator] = {}
        self._patterns: dict[str, Validator] = {}
        self._options: dict[int, frozenset[str]] = {}
        self._found: dict[tuple[str, str], bool] = {}
        # In these a reference overrides what stands beside it.
        self._overriding = any(name in schema.draft for name in ("draft-04", "draft-06", "draft-07"))

    def fits(self, part: Json, value: object) -> bool:
        """Whether the value fits that part of the schema; False where there is none."""
        if not isinstance(part, dict):
            return part is True
        key = id(part), id(value)
        if known := self._verdicts.get(key):
            return known[1]
        if not self._questions or self._waiting >= _DEEPEST:
            self.exhausted = True
        if self.exhausted:
            return False
        self._questions -= 1
        self._waiting += 1
        # What depends on itself alone demands nothing.
        self._verdicts[key] = value, True
        verdict = False
        try:
            verdict = self._validator(part).is_valid(value)
        except RecursionError:
            # Whoever called has used up most of the interpreter's stack. The validator would take this for a verdict.
            self.exhausted = True
        finally:
            self._verdicts[key] = value, verdict
            self._waiting -= 1
        return verdict

    def learn(self, value: Json, *, fits: bool) -> None:
        """Note the validator's own verdict on a value of the whole schema."""
        self._verdicts[id(self.schema.root), id(value)] = value, fits

    def lists(self, part: dict[str, Json], value: Json) -> bool:
        """Whether the value is one that the part lists; True where it lists none."""
        listed = [part["const"]] if "const" in part else part.get("enum")
        if not isinstance(listed, list):
            return True
        options = self._options.get(id(part))
        if options is None:
            options = self._options[id(part)] = frozenset(map(canonical_value, listed))
        return canonical_value(value) in options

    def finds(self, pattern: str, text: str) -> bool:
        """Whether the pattern is in the text; True where to search for it would cost too much."""
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
        """The validator of these rules of the part."""
        found = self._own.get(id(part))
        if found is None:
            rules = {keyword: rule for keyword, rule in part.items() if keyword in keywords}
            found = self._own[id(part)] = self._compiled(rules)
        return found

    def _compiled(self, schema: dict[str, Json]) -> "Validator":
        from jsonschema_rs import validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

        return validator_for(
            {**schema, "$schema": self.schema.draft} if self.schema.draft else schema,
            keywords=self._keywords if self._asking else None,
            pattern_options=engine(around=True),
            validate_formats=True,
            offline=True,
        )

    @cached_property
    def _keywords(self) -> "dict[str, type[KeywordValidator]]":
        # Weak: the validator's hold on a judge that holds the validator would never be seen and freed.
        judge = ref(self)

        class Reference:
            def __init__(self, parent_schema: object, value: str, schema_path: object) -> None:  # noqa: ARG002 - not ours
                self._target = None if (asked := judge()) is None else at_pointer(asked.schema.root, value)

            def validate(self, instance: object) -> None:
                asked = judge()
                if asked is None or not asked.fits(self._target, instance):
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

        return {_REFERENCE: Reference, _PATTERN: Pattern, _ENUM: Enum}

    def _alone(self, part: dict[str, Json], nested: int = 0, level: int = 0) -> dict[str, Json]:
        """The part by itself: its references and patterns come back here.

        `nested` counts the parts around it that ask what in the same value is unevaluated. That cannot be asked through
        a reference, so what is referred to is copied.
        """
        nested += bool(part.keys() & UNEVALUATED)
        if nested > _NESTED or level > _LEVELS:
            return _ANY
        left = {keyword: rule for keyword, rule in part.items() if keyword not in _LEFT_OUT}
        if self._overriding and "$ref" in part:
            left = {"$ref": part["$ref"]}

        def inner(step: Step, one: Json) -> Json:
            return self._alone(one, 0 if step[0] in INNER else nested, level + 1) if isinstance(one, dict) else one

        left = with_parts(left, inner)
        for keyword, own in _ASKED.items():
            if keyword in left:
                left[own] = left.pop(keyword)
                self._asking = True
        referred = [
            self._referred(rule, nested, level) if keyword == "$ref" else _ANY
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef")
            if (rule := left.pop(keyword, None)) is not None
        ]
        conjuncts = left.get("allOf")
        return {**left, "allOf": [*(conjuncts if isinstance(conjuncts, list) else []), *referred]} if referred else left

    def _referred(self, reference: Json, nested: int, level: int) -> Json:
        """What stands for the reference."""
        if self.schema.documents or not is_pointer(reference):
            return _ANY
        if not nested:
            self._asking = True
            return {_REFERENCE: reference}
        if not self._inlined:
            return _ANY
        self._inlined -= 1
        target = at_pointer(self.schema.root, reference)
        return self._alone(target, nested, level + 1) if isinstance(target, dict) else target
