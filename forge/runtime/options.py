"""Checked: public functions hold their options to their annotations; a wrong one is a DefinitionError, in words."""

from forge.errors import DefinitionError
from stages.options.option_checks import checking

checked = checking(DefinitionError)
