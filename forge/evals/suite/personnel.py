"""A report on an employee: what is wanted is not where one looks for it, but it says there where it has gone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from msgspec import Struct

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import Fact, first_of, looked_up, sent, told, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins
from stages.rules import Limits

_DEPARTMENTS = ("engineering", "finance", "logistics", "research", "procurement", "legal")
_GROUPS = ("payments-prod", "internal-apis", "data-lake", "build-farm", "vault-readers", "edge-nodes")


class _Employee(Struct, frozen=True):
    """What there is to know of one; `groups` and `band` as of now, and as they were once."""

    name: str
    department: str
    clearance: str
    contact: str
    phone: str
    band: str
    old_band: str
    groups: tuple[str, ...]
    old_groups: tuple[str, ...]

    @classmethod
    def drawn(cls, draw: Draw) -> "_Employee":
        bands, groups = draw.sample(range(2, 9), 2), draw.sample(_GROUPS, 2)
        return cls(
            name=draw.person(),
            department=draw.choice(_DEPARTMENTS),
            clearance=f"L{draw.randrange(1, 6)}",
            contact=draw.person(),
            phone=f"555-{draw.randrange(1000, 9999)}",
            band=f"B{bands[0]}",
            old_band=f"B{bands[1]}",
            groups=(f"{groups[0]}-v3", f"{groups[1]}-v2"),
            old_groups=(f"{groups[0]}-v1", f"{groups[1]}-v1"),
        )


@dataclass(frozen=True)
class _Archive:
    """Employees by id; `lenient`: it is always the first."""

    employees: dict[str, _Employee]
    lenient: bool

    def _of(self, employee_id: str) -> _Employee:
        first = next(iter(self.employees.values()))
        return first if self.lenient else found(self.employees, employee_id, "employee")

    def get_employee(self, employee_id: str) -> dict[str, str]:
        """Look up an employee: name and department."""
        one = self._of(employee_id)
        return {"name": one.name, "department": one.department}

    def security_audit(self, employee_id: str) -> dict[str, object]:
        """Read the last security audit of an employee: clearance, and access groups as they were at the time."""
        one = self._of(employee_id)
        return {"clearance": one.clearance, "audited": "three years ago", "access_groups_then": one.old_groups}

    def personnel_file(self, employee_id: str) -> dict[str, str]:
        """Read the personnel file of an employee: contract and emergency contact."""
        self._of(employee_id)
        return {"contract": "permanent", "emergency_contact": "no longer kept here; see the onboarding records"}

    def onboarding_records(self, employee_id: str) -> dict[str, str]:
        """Read what an employee filled in on the first day."""
        one = self._of(employee_id)
        return {"laptop": "yes", "emergency_contact": f"{one.contact}, {one.phone}"}

    def compliance_check(self, employee_id: str) -> dict[str, str]:
        """Check whether an employee has taken the yearly courses."""
        self._of(employee_id)
        return {"courses": "all taken"}

    def hr_directory(self, employee_id: str) -> dict[str, str]:
        """Look up an employee's office: room and extension."""
        self._of(employee_id)
        return {"room": "2.14", "extension": "88"}

    def compensation_history(self, employee_id: str) -> dict[str, str]:
        """Read the salary bands of an employee over the years."""
        self._of(employee_id)
        return {"deprecated": "Closed last year. Salary bands are in compensation_v2."}

    def compensation_v2(self, employee_id: str) -> dict[str, str]:
        """Read the compensation of an employee."""
        return {"salary_band": self._of(employee_id).band}

    def access_control(self, employee_id: str) -> dict[str, str]:
        """Read the access groups of an employee."""
        self._of(employee_id)
        return {"deprecated": "Access is given by project now: see project_assignments."}

    def project_assignments(self, employee_id: str) -> dict[str, object]:
        """Read which projects an employee works on, and the access that comes with them."""
        return {"projects": 2, "active_access_groups": self._of(employee_id).groups}

    def legacy_records(self, employee_id: str) -> dict[str, object]:
        """Read what the old system had on an employee; nobody has updated it since."""
        one = self._of(employee_id)
        return {"salary_band": one.old_band, "access_groups": one.old_groups}

    def submit_report(self, employee_name: str, report: str) -> str:
        """Submit the report on an employee.

        Args:
            employee_name: First and family name.
            report: All that was asked for.
        """
        return f"Report on {employee_name}: {report}"


def _world(seed: int, *, stateful: bool, extended: bool) -> World:
    draw = Draw(seed)
    archive = _Archive({draw.id("E-"): _Employee.drawn(draw) for _ in range(2)}, lenient=not stateful)
    reads: list[Callable[..., object]] = [archive.get_employee, archive.security_audit, archive.personnel_file]
    reads += [archive.onboarding_records, archive.compliance_check, archive.hr_directory]
    if extended:
        reads += [archive.compensation_history, archive.compensation_v2, archive.project_assignments]
        reads += [archive.access_control, archive.legacy_records]
    draw.shuffle(reads)
    workflow = Workflow(
        "data_gap_recovery_extended" if extended else "data_gap_recovery",
        tools=[*map(read, reads), archive.submit_report],
        terminal_tool="submit_report",
        required_steps=["get_employee"],
        system_prompt=SYSTEM,
        limits=Limits(max_iterations=20 if extended else 15),
    )
    wanted = "the department, the clearance, and the emergency contact with name and phone"
    more = "; also the salary band and all access groups as they are today" if extended else ""
    message = f"Submit a report on employee {next(iter(archive.employees))}: {wanted}{more}."
    return World(workflow=workflow, messages=(message,), right=partial(_reported, archive, extended=extended))


def _reported(archive: _Archive, trajectory: Trajectory, *, extended: bool) -> str:
    employee_id, one = next(iter(archive.employees.items()))
    facts: list[Fact] = [one.department, one.clearance, one.contact, one.phone]
    facts += [one.band, *one.groups] if extended else []
    sources = ("security_audit", "onboarding_records") if not archive.lenient else ()
    return first_of(
        *(looked_up(trajectory, source, employee_id=employee_id) for source in sources),
        sent(trajectory, "submit_report", employee_name=one.name),
        told(
            written(trajectory, "submit_report", "report"), facts, (one.old_band, *one.old_groups) if extended else ()
        ),
    )


PERSONNEL = (
    *twins(
        "data_gap_recovery",
        "what is wanted has been moved, and the place where it was says where to",
        partial(_world, extended=False),
        ideal_calls=5,
        tags={"model_quality", "reasoning"},
    ),
    *twins(
        "data_gap_recovery_extended",
        "what is wanted has been moved; among twelve tools, three of which are out of date",
        partial(_world, extended=True),
        ideal_calls=8,
        tags={"model_quality", "reasoning", "advanced"},
    ),
)
