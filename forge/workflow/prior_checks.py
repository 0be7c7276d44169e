"""Definition of priors: what is wrong with those that a workflow was given, a sentence a mistake."""

from collections.abc import Iterator

from forge.workflow.suggestions import did_you_mean
from stages.confidence.measure import Prior, closed_arguments
from stages.rules import Rules


def prior_mistakes(rules: Rules) -> tuple[str, ...]:
    """Everything that is wrong with the priors of the rules: of a tool, an argument or values that there are not."""
    if rules.unsure is None or rules.unsure.priors is None:
        return ()
    return tuple(sentence for prior in rules.unsure.priors.priors for sentence in _mistakes(prior, rules))


def _mistakes(prior: Prior, rules: Rules) -> Iterator[str]:
    where, tool = f"priors of {prior.tool}.{prior.argument}", rules.tool(prior.tool)
    if tool is None:
        names = [known.name for known in rules.tools]
        yield f"{where}: there is no tool named {prior.tool!r}.{did_you_mean(prior.tool, names)}"
        return
    closed = closed_arguments(tool)
    if prior.argument not in closed:
        yield f"{where}: the tool has no argument of that name that is one of several values"
    # Under a constraint, an optional argument may be null as well.
    elif {*closed[prior.argument], "null"} != {*prior.values, "null"}:
        now, then = (", ".join(values) for values in (closed[prior.argument], prior.values))
        yield f"{where}: its values are {now}, and the priors were measured with {then}; measure them again"
