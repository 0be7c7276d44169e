"""The log of a run: its events at DEBUG, with names and sizes only, so that no value can leak."""

import logging
from datetime import UTC, datetime

import msgspec

from forge.errors import quantity
from stages import events
from stages.effect import Failed, Succeeded
from stages.message import ToolCall
from stages.wire.deltas import Delta

_log = logging.getLogger("forge")

_NAME_LIMIT = 64
"""Maximum characters of a name in the log; a model may invent one."""


def escape_record(record: logging.LogRecord) -> bool:
    """Escape what could forge a log line or control a terminal: parts may come from a server or a model."""
    text = record.getMessage()
    if not text.isprintable():
        record.msg = with_escapes(text)
        record.args = ()
    return True


def with_escapes(text: str) -> str:
    """The text with escapes for what cannot be printed, on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_log.addFilter(escape_record)


class JsonFormatter(logging.Formatter):
    """A line of JSON for each record: its time, level, logger and message, and of a run its id, workflow and turn.

    `parent` is the run whose call asked for this one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        told |= {name: value for name in _FIELDS if (value := getattr(record, name, None))}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            told["exception"] = record.exc_text
        return msgspec.json.encode(told, enc_hook=str).decode()


_FIELDS = ("run", "parent", "workflow", "turn", "event", "request")


def logging_turns() -> bool:
    """Whether turns are logged."""
    return _log.isEnabledFor(logging.DEBUG)


def log_event(stamped: events.Stamped) -> None:
    """Log the event, if it belongs to a turn."""
    if logging_turns() and (line := _line(stamped.event)):
        event = type(stamped.event).__struct_config__.tag
        known = {"run": stamped.run, "workflow": stamped.agent, "turn": stamped.turn, "event": event}
        _log.debug("run %s: %s", stamped.run[:8] or "-", line, extra={**known, "parent": stamped.parent})


def _line(event: events.Event | Delta) -> str:
    match event:
        case events.TurnStarted(turn=turn, prompt_tokens=tokens, context_tokens=room, calls_left=left):
            return (
                f"turn {turn}: model asked, about {tokens} of {room or '?'} tokens, {quantity(left, 'model call')} left"
            )
        case events.ModelReplied(turn=turn, summary=True):
            return f"turn {turn}: reply with a summary"
        case events.ModelReplied(turn=turn, reply=reply):
            names = ", ".join(_name(call.name) for call in reply.calls) or "no native call"
            thought = f", {len(reply.reasoning)} of reasoning" if reply.reasoning else ""
            return f"turn {turn}: reply with {names}; {len(reply.text)} characters of text{thought}; {reply.finish}"
        case events.CallsAccepted(calls=calls):
            return f"runs {', '.join(map(_call, calls))}"
        case events.ApprovalAsked(call=call, in_doubt=in_doubt):
            return f"asks a person about {_call(call)}{', whose outcome is unknown' if in_doubt else ''}"
        case events.ToolsReturned(results=results):
            became = []
            for one in results:
                match one:
                    case Succeeded(text=text):
                        became.append(f"{one.call_id} succeeded, {len(text)} characters")
                    case Failed(error=error):
                        became.append(f"{one.call_id} failed with {_name(error)}")
                    case _:
                        became.append(f"{one.call_id} {type(one).__name__}")
            return f"results: {', '.join(became)}"
        case events.SummaryAsked(turn=turn, messages=count):
            return f"turn {turn}: summary asked for, of {count} messages"
        case events.RunFinished(outcome=outcome):
            return f"finished: {type(outcome).__name__}"
        case events.RunHalted(halt=halt):
            return f"halted: {type(halt).__name__}"
        case events.BackendReplaced(halt=halt):
            return f"halted: {type(halt).__name__}; goes on with the next of the fallbacks"
        case events.ModelFailed(turn=turn, attempts=attempts):
            return f"turn {turn}: no reply, {quantity(attempts, 'attempt')}"
        case _ if isinstance(event, events.Notice):
            known = ", ".join(f"{name} {value}" for name, value in events.facts(event).items())
            return events.told(event).log or f"{event.__struct_config__.tag}: {known}"
        case _:
            return ""  # the other events tell of it, or the caller's exception


def _call(call: ToolCall) -> str:
    return f"{_name(call.name)} ({call.id}, {len(call.arguments)} characters of arguments)"


def _name(text: str) -> str:
    """The name as one printable ASCII word: a server or a model may have chosen it."""
    return ascii(text[:_NAME_LIMIT])[1:-1]
