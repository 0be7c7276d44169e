"""Options: values from users' code, checked at run time, so that a wrong one is explained in words."""

from typing import TYPE_CHECKING

from stages._later import later

if TYPE_CHECKING:
    from stages.options.option_checks import OptionError, Options, checked
    from stages.options.types import Count, Fraction, Seconds, Tokens

__all__ = [
    "Count",
    "Fraction",
    "OptionError",
    "Options",
    "Seconds",
    "Tokens",
    "checked",
]

__getattr__ = later(
    __name__,
    {
        "stages.options.option_checks": (
            "OptionError",
            "Options",
            "checked",
        ),
        "stages.options.types": (
            "Count",
            "Fraction",
            "Seconds",
            "Tokens",
        ),
    },
)
