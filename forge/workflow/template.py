"""Templates: a text with `{placeholders}` in which every other brace stands for itself."""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}")


def placeholders(template: str) -> set[str]:
    """The names of the template's placeholders."""
    return {match[2] for match in _PLACEHOLDER.finditer(template) if match[2]}


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced; `{{name}}` stands for `{name}`. KeyError for a name without a value."""
    return _PLACEHOLDER.sub(lambda match: values[match[2]] if match[2] else f"{{{match[1]}}}", template)


def literal(text: str) -> str:
    """The template that stands for this text: its braces, too, are what they are."""
    return _PLACEHOLDER.sub(lambda match: f"{{{match[0]}}}", text)
