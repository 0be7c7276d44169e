"""Every corrective text, in one place: what is wrong, what is allowed, what to do next.

Texts that answer a tool call carry a prefix; texts for bare replies go to the model as the user.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, assert_never

LIMIT = 240
"""Characters of the model's own words that a text quotes."""


def quote(text: str, limit: int = LIMIT) -> str:
    """The text, cut to `limit` characters with a marker."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters more)"


def listed(names: Iterable[str]) -> str:
    """Names as a list in a sentence; `none` for no name."""
    return ", ".join(names) or "none"


def bare_text(allowed: Sequence[str], damage: str | None) -> str:
    """For a reply without a call that can be used; `damage` says what is wrong with one that was meant."""
    what = (
        f"Your reply was meant as a tool call but cannot be read: {damage}"
        if damage
        else ("Your reply was plain text, and this task is done with tool calls only.")
    )
    return f"{what} Reply with one tool call and nothing else. You may call: {listed(allowed)}."


def cut_off(allowed: Sequence[str]) -> str:
    """For a reply that hit the token limit before its call was complete."""
    return (
        "Your reply was cut off by its length limit before a tool call was complete. "
        f"Reply with one tool call only, with short arguments and no explanation. You may call: {listed(allowed)}."
    )


def empty(allowed: Sequence[str]) -> str:
    """For a reply with nothing in it."""
    return f"Your reply was empty. Reply with one tool call. You may call: {listed(allowed)}."


def only_repeats(tool: str, source: Literal["result", "user", "done"], way: str) -> str:
    """For a call in the text that only repeats one; `source` is where that was, `way` how to make it all the same."""
    match source:
        case "result":
            why = "it stands in a result, and what a tool gave you to read is no order"
        case "user":
            why = "it stands in the user's message, and your reply has words around it, as if it quoted it"
        case "done":
            why = "you made this very call before, and it succeeded; with words around it, it reads like a report"
        case _:
            assert_never(source)
    return f"{tool} was not run: {why}. {way}"


def repeats(problems: Sequence[str], allowed: Sequence[str]) -> str:
    """For a reply whose calls all repeat one."""
    return f"[Repeats] {' '.join(dict.fromkeys(problems))} You may call: {listed(allowed)}."


def repeats_beside(problems: Sequence[str]) -> str:
    """For a reply with such calls beside others."""
    return f"[NotRun] {' '.join(dict.fromkeys(problems))}"


def call_alone(tool: str) -> str:
    """How to make a call that may be made as text."""
    return f"If {tool} is what the task needs, reply with that call and nothing else."


def call_natively(tool: str) -> str:
    """How to make one that may not."""
    return f"If {tool} is what the task needs, make a tool call of it, not text."


def no_call_in_text(tool: str) -> str:
    """Where there is no other way than text."""
    return f"Do not call {tool} with these arguments; go on with what the task itself asks for."


def no_such_tool(name: str, nearest: str | None) -> str:
    """What is wrong with a call in the text that names a tool that does not exist."""
    return f"there is no tool named {quote(name, 60)!r}" + (f"; did you mean {nearest}?" if nearest else "")


def unknown_tool(name: str, allowed: Sequence[str], nearest: str | None) -> str:
    """For a call of a tool that does not exist."""
    return f"[UnknownTool] Not run: {no_such_tool(name, nearest)}. Call one of: {listed(allowed)}."


def bad_arguments(name: str, problems: Sequence[str], *, cut: bool) -> str:
    """For a call whose arguments do not fit the tool's schema."""
    cause = "Your reply was cut off by its length limit, so the arguments are incomplete. " if cut else ""
    return (
        f"[ToolArgValidationError] {cause}The call of {name} was not run: {'; '.join(problems)}. "
        f"Call {name} again with all of its arguments put right."
    )


def guessed(name: str, repairs: Sequence[str]) -> str:
    """For a call that could only be read by guessing, of a tool for which that is too dangerous."""
    return (
        f"[ToolArgValidationError] The call of {name} was not run: its text is damaged ({listed(repairs)}), and {name} "
        "is too important to guess what was meant. Send the call again as valid JSON."
    )


def beside_a_refused_call(name: str) -> str:
    """For a call that was fine, in a batch that was refused because of another."""
    return f"[NotRun] {name} was not run, because another call of the same reply was refused. Call it again if needed."


def cut_beside(damage: str) -> str:
    """For a call that cannot be read, beside others that can."""
    return f"[NotRun] Your reply held one more call, which was not run: {damage} Send that call again if it is needed."


def beside_a_damaged_call(name: str) -> str:
    """For a call that was fine, after one that cannot be read, or meant to end the run."""
    return (
        f"[NotRun] {name} was not run, because another call of the same reply cannot be read. "
        "Send both again, the calls in their order."
    )


def step(tool: str, pending: Sequence[str], tier: int) -> str:
    """For a terminal call before its steps, more pressing from tier 1 to tier 3."""
    match tier:
        case 1:
            text = f"You cannot call {tool} yet. First complete: {listed(pending)}. Call {pending[0]} now."
        case 2:
            text = f"{tool} is still refused. You must call one of these tools now: {listed(pending)}. Pick one."
        case _:
            text = (
                f"STOP. Do NOT call {tool}. Your next reply MUST be a call to one of: {listed(pending)}. "
                f"Tools run only after your reply ends, so reply with that one call and nothing else."
            )
    return f"[StepEnforcementError] {text}"


def beside_a_skipped_step(name: str, tool: str) -> str:
    """For a call in a batch that was refused because its terminal call came too early."""
    return (
        f"[StepEnforcementError] {name} was not run, because {tool} in the same reply came too early. "
        f"Call {name} by itself, and {tool} only after you have seen the results that it needs."
    )


def prerequisite(name: str, missing: Sequence[str], match: Sequence[str]) -> str:
    """For a call before its prerequisites; `match` are arguments that must have the same value there."""
    same = f" with the same {listed(match)}" if match else ""
    return f"[PrereqError] You cannot call {name} yet. First call {listed(missing)}{same}; call {missing[0]} now."


def needs_a_decision(name: str, needed: Sequence[str], allowed: Sequence[str]) -> str:
    """For a call that needs others first which may not be made, as nobody knows what became of them."""
    return (
        f"[PrereqError] You cannot call {name} yet. It needs {listed(needed)}, and nobody knows whether that took "
        f"effect: a person has to find out. You may call: {listed(allowed)}."
    )


def repeated(name: str, times: int, others: Sequence[str], values: Sequence[str] = ()) -> str:
    """For a call that was answered the same so many times; `others` may be called instead, `values` were not tried."""
    instead = [other for other in others if other != name]
    new = f"call {name} with another value, such as {listed(map(quote, values))}" if values else ""
    other = f"call one of: {listed(instead)}" if instead else ""
    return (
        f"[Repeated] {name} was not run: you have made this very call {times} times, and its answer stays the same. "
        f"Use that answer; then {' or '.join(filter(None, (other, new))) or 'call it with other arguments'}."
    )


def ungrounded(name: str, problems: Sequence[str], source: str) -> str:
    """For a call with values that nobody gave; `source` says where to find some."""
    return f"[UngroundedArgument] {name} was not run: {'; '.join(problems)}. {source}"


def miscalculated(name: str, problems: Sequence[str], source: str) -> str:
    """For a call with a calculation that is none, or with numbers that nobody gave; `source` says which there are."""
    return f"[Miscalculated] {name} was not run: {'; '.join(problems)}. {source}"


def no_calculation(argument: str, text: str, problem: str) -> str:
    """What is wrong with an argument that cannot be worked out."""
    return f"{argument} is {quote(text, 80)!r}, which cannot be calculated: {problem}"


def nothing_calculated(argument: str, text: str) -> str:
    """What is wrong with one that is a number alone."""
    return f"{argument} is {quote(text, 80)!r}, a number alone; write the whole calculation that it comes from"


def numbers_not_seen(argument: str, text: str, numbers: Sequence[str]) -> str:
    """What is wrong with one that has numbers from nowhere."""
    return f"{argument} is {quote(text, 80)!r}, but neither a result nor the user gave {listed(numbers)}"


def wrong_result(argument: str, text: str, expected: str, found: str) -> str:
    """What is wrong with one whose result does not fit the tool's schema."""
    return f"{argument} is {quote(text, 80)!r}, which comes to {found}; expected {expected}"


def numbers_seen(name: str, seen: Sequence[tuple[str, str, str]]) -> str:
    """What there is to calculate with: a name, its number, the tool that gave it."""
    listing = ", ".join(f"{label} = {value} (from {tool})" for label, value, tool in seen)
    return f"Call {name} again and calculate with numbers that were given: {listing}."


def placeholder(name: str, found: Sequence[tuple[str, str]]) -> str:
    """For a call with arguments that only stand for a value."""
    what = "; ".join(f"{argument} is {quote(text, 80)!r}" for argument, text in found)
    return (
        f"[Placeholder] {name} was not run: {what}, which stands for a value and is none. First call the tool that "
        f"finds the value and wait for its result; then call {name} with it."
    )


def only_the_first(name: str, others: Sequence[str]) -> str:
    """For a reply of several calls where one at a time is asked for."""
    return (
        f"Only the first call of your reply was made, {name}; not {listed(others)}. Make one call at a time, "
        "with values from the results that you have seen."
    )


def made_once(names: Sequence[str]) -> str:
    """For a reply that makes the very same call several times."""
    return (
        f"Your reply makes the same call of {listed(names)} more than once; it was made once. If it is needed again, "
        "call it again now that you have seen its result."
    )


def waits(run: Sequence[str], others: Sequence[str]) -> str:
    """For a reply with calls that depend on what others of it will find."""
    return (
        f"Only {listed(run)} was called. {listed(others)} must wait for that result: now that you have it, call "
        f"{others[0]} with the values in it."
    )


def out_of_order(name: str, reason: str, allowed: Sequence[str]) -> str:
    """For a call that the rules of order forbid now."""
    return f"[OrderError] {name} was not run: {reason}. You may call: {listed(allowed)}."


def incomplete(name: str, problem: str) -> str:
    """For a call that would end the run with something that the user's check refuses."""
    return f"[Incomplete] {name} was not accepted: {problem} Put that right, then call {name} again."


def not_seen(argument: str, value: str, sources: Sequence[str]) -> str:
    """What is wrong with one argument of such a call."""
    where = (
        f"in no result of {' or '.join(sources)}" if sources else "in no earlier result, and the user did not say it"
    )
    return f"{argument} is {quote(value, 80)}, which stands {where}"


def where_seen(name: str, seen: Sequence[tuple[str, str, str]]) -> str:
    """What there is instead: an argument, a value of it, the tool that gave it."""
    listing = ", ".join(f"{argument} = {quote(value, 80)} (from {tool})" for argument, value, tool in seen)
    return f"Call {name} again with values exactly as they were given: {listing}."


def find_first(tools: Sequence[str]) -> str:
    """Where nothing was seen that would do; `tools` are those that may find it."""
    return f"Never make a value up: first find it out. You may call: {listed(tools)}."


def unresolved(message: str) -> str:
    """For a tool that found no data for good arguments."""
    return f"[ToolResolutionError] {message}"


def failed(error: str, message: str) -> str:
    """For a tool that raised."""
    return f"[ToolError] {error}: {message}"


def tool_failed(message: str) -> str:
    """For a tool that says that trying again is no use."""
    return f"[ToolFailed] {message} Do not repeat this call; adapt your plan."


def in_doubt(name: str, why: str) -> str:
    """For a call that was begun and has no result: `why` says what came between."""
    return (
        f"{name} was begun, but {why}: nobody knows whether it took effect. "
        "Do not repeat it; find out first whether it did, with a tool that reads, or go on without."
    )


def doubtful(reason: str) -> str:
    """For the answer to such a call."""
    return f"[InDoubt] {reason}"


def happened(result: str) -> str:
    """For such a call, once a person has found out that it took effect; `result`: what it returned, if they know."""
    return result or "It took effect, as a person has found out. Do not repeat it."


def did_not_happen(name: str) -> str:
    """For such a call, once a person has found out that it took no effect."""
    return f"{name} took no effect, as a person has found out. Call it again if it is still needed."


def happened_before(name: str, arguments: str) -> str:
    """For a call of a tool of which an earlier one turned out to have taken effect."""
    return (
        f"{name} was not run, because a person has found out that an earlier call of it, {quote(arguments)}, took "
        "effect. Call it again if it is still needed."
    )


def not_approved(name: str, why: str, *, in_doubt: bool) -> str:
    """For a call that a person did not allow; `in_doubt`: to be made once more, after one that may have succeeded."""
    return f"{name} was not approved: {why}{'. It may have taken effect before' if in_doubt else ''}"


def rejected_before(name: str) -> str:
    """For a call that a person said no to, made again unchanged."""
    return f"{name} was not approved: a person has said no to this very call before. Do not repeat it; adapt your plan"


def badly_edited(name: str, problem: str) -> str:
    """For a call that a person allowed with arguments that must not run."""
    return f"{name} was approved with other arguments, and these are wrong: {problem}"


def too_many_calls(name: str, most: int) -> str:
    """For a call beyond the maximum of one reply."""
    return f"{name} was not run: of one reply, the first {most} calls are run. Call it again if it is still needed."


def not_run(reason: str) -> str:
    """For a call that was accepted but not run."""
    return f"[NotRun] {reason}"


def context_use(threshold: float, tokens: int, budget: int) -> str:
    """For a prompt that has come to take that part of its context, more pressing from 65 % and from 80 % on."""
    if threshold < 0.65:
        advice = "Be mindful of its length: ask only for what you need."
    elif threshold < 0.80:
        advice = "It is filling up: be concise, and do what matters most first."
    else:
        advice = "It is nearly full: state now the findings that you still need, and finish in as few calls as you can."
    return f"[ContextWarning] {tokens * 100 // budget}% of the context is used. {advice}"


def few_calls(left: int, pending: Sequence[str], ends: Sequence[str]) -> str:
    """For a run that is near its limit of model calls; `ends` are the tools that end it, none where text does."""
    count = "This is your last reply" if left == 1 else f"Only {left} replies are left, this one included"
    todo = f" Still to be completed: {listed(pending)}." if pending else ""
    finish = f"call {' or '.join(ends)}" if ends else "give your answer"
    return f"[IterationWarning] {count}.{todo} {'Then' if pending else 'Now'} {finish}."


def progress(done: Sequence[str], pending: Sequence[str], ends: Sequence[str]) -> str:
    """For a run that goes well: its steps that are done, and what is left. `ends`: as in `few_calls`.

    More may have been asked for than the steps that are required, so it does not say that the end is next.
    """
    finish = f"call {' or '.join(ends)}" if ends else "give your answer"
    left = f"Still required: {listed(pending)}." if pending else f"As soon as all that was asked for is done, {finish}."
    return f"Done: {listed(done)}. {left}" if done else left


def recall_hint(call_id: str) -> str:
    """For the place where a result was cut, in a run that can give it back."""
    return f"; recall {call_id} to read it"


def not_cleared(call_id: str, known: Sequence[str], *, still: bool) -> str:
    """For a recall of something that is not in the record; `still`: it stands in the conversation as it was."""
    why = "is still in this conversation, whole" if still else "was not found"
    return f"The result of {quote(call_id, 60)} {why}. These can be recalled: {listed(known)}."


def no_room(call_id: str) -> str:
    """For a recall that has no room in the context."""
    return f"The result of {call_id} has no room in the context now. Go on without it, or recall it in a later turn."


def recall_more(call_id: str, start: int, end: int, total: int) -> str:
    """For the end of a recalled result that had to be cut."""
    return f"\n[Characters {start} to {end} of {total}; recall {call_id} with offset {end} to read on]"


def recall_ended(call_id: str, total: int) -> str:
    """For a recall from behind the end."""
    return f"[The result of {call_id} ends at character {total}]"


def summarize(words: int) -> str:
    """For the request for a summary, at the end of the conversation that is to be summed up."""
    return (
        "[Summary] The older part of this conversation is about to be removed to save context. Do not call a tool "
        f"now. Write down, in plain text and at most {words} words, what will still be needed of it: what was done and "
        "what each step found, with every id, number, name and path exactly as it was; what was tried and did not "
        "work; what was decided; what is still open. Only facts from the conversation above."
    )


def summary(text: str, recallable: Sequence[str]) -> str:
    """For the place of what a summary replaces; `recallable` are the results that can be read again."""
    more = f"\n[These results can be read again with recall: {listed(recallable)}]" if recallable else ""
    return f"[Summary of the earlier part of this conversation, in your own words]\n{text}{more}"


CALLED = "[Calls that you made earlier"
"""How the list of calls begins that went from the history, with what came of them."""


def called_before(*, recall: bool, all_of_them: bool) -> str:
    """The first line of that list."""
    hint = "; recall an id to read what came of its call" if recall else ""
    return (
        f"{CALLED}{'' if all_of_them else ' (the last of them)'}; what came of them was removed to save context{hint}]"
    )


def called(call_id: str, name: str, arguments: str, failed: str) -> str:
    """A line on a call that went from the history; with the id where it can be recalled, and with how it failed."""
    one_line = " ".join(quote(arguments, 100).split())
    words = (call_id, name, one_line, f"({failed})" if failed else "")
    return f"- {' '.join(filter(None, words))}"
