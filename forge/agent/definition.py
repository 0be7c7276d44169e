"""An agent's definition: the workflow that it runs for each message, and the sections of its system prompt."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Generic

from forge.agent.built_in import NAMES, BuiltIn, built_in_names, built_in_tools
from forge.agent.options import AgentOptions, with_defaults
from forge.errors import DefinitionError
from forge.outcome import R_co
from forge.tools.decorator import Tool, tool
from forge.workflow.checks import OnText
from forge.workflow.template import literal
from forge.workflow.workflow import Workflow
from stages.guards import no_echoes
from stages.nudges import how_to_end
from stages.view.notes import Section, joined, sections_of

if TYPE_CHECKING:
    from typing import _SpecialForm  # what a type checker takes Annotated[…] and Literal[…] for

AnyTool = Tool[..., object] | Callable[..., object]


@dataclass(frozen=True)
class Definition(Generic[R_co]):
    """What an agent is made of. The options are those of `forge.agent.Agent`."""

    name: str
    _: KW_ONLY
    tools: tuple[AnyTool, ...]
    instructions: str
    background: str
    on_text: OnText
    built_in_tools: Sequence[BuiltIn] | None
    result: "type[R_co] | _SpecialForm | None"
    options: AgentOptions

    @cached_property
    def built_in(self) -> tuple[BuiltIn, ...]:
        """The names of its built-in tools. A conversation without other tools needs none."""
        if self.built_in_tools is not None:
            return tuple(name for name in NAMES if name in self.built_in_tools)
        only_talks = self.on_text == "accept" and not self.tools and self.result is None
        return () if only_talks else built_in_names(self.on_text, result=self.result is not None)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections of its system prompt."""
        guidance = how_to_end(self.built_in, words=self.on_text == "accept")
        return sections_of({"instructions": self.instructions, "background": self.background, "guidance": guidance})

    @cached_property
    def workflow(self) -> Workflow[R_co]:
        """What it runs for each message. DefinitionError, with every mistake, for a wrong definition."""
        own = tuple(made if isinstance(made, Tool) else tool(made) for made in self.tools)
        if taken := sorted({made.name for made in own} & {*self.built_in}):
            raise DefinitionError(tuple(_RESERVED.format(name=name) for name in taken))
        echoes = (no_echoes("ask_question", "question"),) if "ask_question" in self.built_in else ()
        options: AgentOptions = {**self.options, "guards": (*echoes, *self.options.get("guards", ()))}
        return Workflow(
            self.name,
            tools=(*own, *built_in_tools(self.built_in)),
            system_prompt=literal(joined(self.sections)),
            # A tool for words is built in; the workflow adds none of its own.
            on_text="nudge" if self.on_text == "respond" else self.on_text,
            result=self.result,
            **with_defaults(options),
        )


_RESERVED = (
    "tools: {name} is the name of a built-in tool; rename yours, or leave that one out with built_in_tools=[…], the "
    "names of those to keep"
)
