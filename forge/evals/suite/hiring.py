"""A vacancy: the best on paper cannot take it, and the rationale must say so."""

from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, looked_up, mentions, sent, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins
from stages.rules import Limits


class _Candidate(Struct, frozen=True):
    """`words` say what stands in the way, of which a rationale has one; empty: nothing does."""

    years: int
    skills: str
    obstacle: str
    words: tuple[str, ...]


_STRONG = "all that the role asks for, and has done it on a larger scale"
_KINDS = (
    (8, "all that the role asks for, and has taught it", "none; can start next month", ()),
    (14, _STRONG, "a non-compete clause forbids this work for another year", ("non-compete", "clause", "compete")),
    (12, _STRONG, "has no visa, and none can be had before the role begins", ("visa",)),
    (11, "all that the role asks for", "only comes as the team's lead", ("lead",)),
    (3, "half of what the role asks for", "none; can start at once", ()),
)


@dataclass(frozen=True)
class _Vacancy:
    """Candidates by name, in the order of `_KINDS`: the first is the right one."""

    role_id: str
    title: str
    candidates: dict[str, _Candidate]
    shown: tuple[str, ...]

    def get_open_role(self, role_id: str) -> dict[str, str]:
        """Read what an open role asks for."""
        return found({self.role_id: {"title": self.title, "begins": "in six weeks"}}, role_id, "role")

    def get_candidate_pool(self, role_id: str) -> list[dict[str, object]]:
        """List the candidates for a role, with their years of experience."""
        known = {self.role_id: [{"name": name, "years": self.candidates[name].years} for name in self.shown]}
        return found(known, role_id, "role")

    def get_skill_summary(self, candidate: str) -> dict[str, str]:
        """Read what a candidate can do."""
        return {"skills": found(self.candidates, candidate, "candidate").skills}

    def get_compatibility_check(self, candidate: str) -> dict[str, str]:
        """Check whether anything keeps a candidate from taking the role."""
        return {"obstacle": found(self.candidates, candidate, "candidate").obstacle}

    def get_team_dynamics(self, role_id: str) -> dict[str, str]:
        """Read about the team that a role is in."""
        told = {"lead": "the team has a lead, who stays", "wants": "somebody whom they can learn from"}
        return found({self.role_id: told}, role_id, "role")

    def submit_hiring_decision(self, candidate: str, rationale: str) -> str:
        """Submit whom to hire.

        Args:
            candidate: First and family name.
            rationale: Why this one; and of the more experienced, by name, what speaks against them.
        """
        return f"{candidate} is proposed: {rationale}"


def _grounded_synthesis(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    candidates = {draw.person(): _Candidate(*kind) for kind in _KINDS}
    title = draw.choice(("data engineer", "accountant", "toolmaker", "translator", "surveyor", "buyer"))
    vacancy = _Vacancy(draw.id("R-"), title, candidates, tuple(draw.sample(list(candidates), len(candidates))))
    about_role = [vacancy.get_open_role, vacancy.get_candidate_pool, vacancy.get_team_dynamics]
    about_one = [vacancy.get_skill_summary, vacancy.get_compatibility_check]
    workflow = Workflow(
        "grounded_synthesis",
        tools=[*map(read, about_role), *map(read, about_one), vacancy.submit_hiring_decision],
        terminal_tool="submit_hiring_decision",
        required_steps=["get_candidate_pool"],
        grounded={"submit_hiring_decision": ("candidate",)},
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=20),
    )
    message = (
        f"Decide whom to hire for role {vacancy.role_id}. It must be somebody whom nothing keeps from taking it, who "
        "fits the team, and can do what the role asks for."
    )
    right = partial(_decided, vacancy, thorough=stateful)
    return World(workflow=workflow, messages=(message,), right=right)


def _decided(vacancy: _Vacancy, trajectory: Trajectory, *, thorough: bool) -> str:
    name, *_ = vacancy.candidates
    rationale = written(trajectory, "submit_hiring_decision", "rationale")
    named = [other for other, known in vacancy.candidates.items() if known.words and _rejected(rationale, other, known)]
    blocked = [other for other, known in vacancy.candidates.items() if known.words and thorough]
    return first_of(
        sent(trajectory, "submit_hiring_decision", candidate=name),
        "" if named else "the rationale names nobody with what speaks against them",
        *(looked_up(trajectory, "get_compatibility_check", candidate=other) for other in blocked),
    )


def _rejected(rationale: str, name: str, known: _Candidate) -> bool:
    said = any(mentions(rationale, word) for word in known.words)
    return said and any(mentions(rationale, part) for part in (name, *name.split()))


HIRING = twins(
    "grounded_synthesis",
    "the strongest of five candidates cannot take the role; the decision says why",
    _grounded_synthesis,
    ideal_calls=11,
    tags={"model_quality", "reasoning", "advanced"},
)
