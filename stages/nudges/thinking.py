"""What the model is told where it is to think before a call that it is not sure of."""


def think_before_calling() -> str:
    """For a request that takes no call: what the thought is about."""
    return (
        "Do not call a tool yet. First think: which tool is right now, and which value is right for each argument? "
        "Compare those that are possible with what was asked and with the results, in a few sentences."
    )


def call_after_thinking() -> str:
    """After the thought."""
    return "Now make the call."
