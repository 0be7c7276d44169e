"""Checked: public functions hold their options to their annotations; a wrong one is a DefinitionError, in words."""

from forge.errors import DefinitionError
from forge.workflow.suggestions import did_you_mean
from stages.options import checking

checked_options = checking(DefinitionError, did_you_mean)
