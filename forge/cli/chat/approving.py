"""Approver: asks the person of a chat about calls, and remembers what was allowed for the session."""

from forge.cli.approval import question_lines
from forge.cli.chat.allowing import EditWanted, choices, decided, edited
from forge.cli.chat.face import Face
from forge.cli.layout import LabelledText
from forge.interpreters import Answer
from stages.effect import Approved, Ask


class Approver:
    """An `ask` for the runs of a chat. `always` are the tools that need no further question."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self.always = set[str]()

    async def __call__(self, question: Ask) -> Answer:
        """The person's decision about a call."""
        tool = question.call.name
        if tool in self.always and question.in_doubt is None:
            self._face.show(LabelledText("allowed", "always in this session", "", "green"))
            return Approved(digest=question.digest)
        width, height = self._face.size()
        lines = tuple(question_lines(question, width))
        found = decided(question, await self._answer(lines, height, choices(question)))
        if isinstance(found, EditWanted):
            prompt = "change the arguments; an empty line is a no"
            found = edited(question, await self._face.answer((), prompt, found.text))
        if found.always:
            self.always.add(tool)
        return found.answer

    async def _answer(self, lines: tuple[str, ...], height: int, prompt: str) -> str | None:
        """The answer to the question, which is shown a screen at a time; a no, if the person stops reading."""
        while len(lines) > height:
            left = len(lines) - height
            typed = await self._face.answer(lines[:height], f"{left} more lines: [Enter] to continue, [n] no")
            if typed is None or typed.strip():
                return typed and "n"
            lines = lines[height:]
        return await self._face.answer(lines, prompt)
