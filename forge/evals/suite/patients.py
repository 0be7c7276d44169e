"""A patient's medication: four steps, each on the one before, and a recommendation for that patient and no other."""

from dataclasses import dataclass

from msgspec import Struct

from forge import Workflow, tool
from forge.evals.scenario import PerformedCall, Trajectory, World
from forge.evals.suite.checks import first_of, looked_up, sent, told, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

# Medicines that do not exist, so that no model knows better.
_MEDICINES = ("Velaprin", "Dorvastin", "Quenolol", "Maridex", "Tanoxil", "Serulane")
_OTHERS = ("Ibrolan", "Naproval", "Calcitrine", "Ferrodan", "Zolamine", "Hepanor")
_RISKS = ("hyperkalemia", "hypotension", "arrhythmia", "bleeding", "drowsiness", "dehydration")


class _Interaction(Struct, frozen=True):
    avoid: str
    risk: str


@dataclass(frozen=True)
class _Practice:
    """Patients by name, medicines by patient, interactions by medicine; `lenient`: always those of the first."""

    patients: dict[str, str]
    medicines: dict[str, str]
    interactions: dict[str, _Interaction]
    lenient: bool

    def identify_patient(self, name: str) -> dict[str, str]:
        """Find a patient's id by full name."""
        first = next(iter(self.patients.values()))
        return {"patient_id": first if self.lenient else found(self.patients, name, "patient")}

    def get_records(self, patient_id: str) -> dict[str, str]:
        """Get a patient's records: the medication."""
        first = next(iter(self.medicines.values()))
        return {"medication": first if self.lenient else found(self.medicines, patient_id, "patient")}

    def check_interactions(self, medication: str) -> _Interaction:
        """Check what a medication must not be taken with, and why."""
        first = next(iter(self.interactions.values()))
        return first if self.lenient else found(self.interactions, medication, "medication")

    def recommend(self, patient_id: str, findings: str) -> str:
        """File a recommendation in a patient's records.

        Args:
            patient_id: The patient's id.
            findings: The medication, what must not be taken with it, and the risk.
        """
        return f"Filed for {patient_id}: {findings}"


def _sequential_reasoning(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    patients = {draw.person(): draw.id("PT-") for _ in range(3)}
    medicines = dict(zip(patients.values(), draw.sample(_MEDICINES, 3), strict=True))
    drawn = zip(draw.sample(_OTHERS, 3), draw.sample(_RISKS, 3), strict=True)
    interactions = dict(zip(medicines.values(), (_Interaction(*one) for one in drawn), strict=True))
    practice = _Practice(patients, medicines, interactions, lenient=not stateful)
    name, patient_id = next(iter(patients.items()))
    workflow = Workflow(
        "sequential_reasoning",
        tools=[
            read(practice.identify_patient),
            tool(effect="read", prerequisites=["identify_patient"])(practice.get_records),
            tool(effect="read", prerequisites=["get_records"])(practice.check_interactions),
            practice.recommend,
        ],
        terminal_tool="recommend",
        required_steps=["identify_patient", "get_records", "check_interactions"],
        grounded={"recommend": ("patient_id",)},
        system_prompt=SYSTEM,
    )

    def harm(calls: tuple[PerformedCall, ...]) -> str:
        filed = [call.arguments.get("patient_id") for call in calls if call.tool == "recommend" and not call.error]
        return next(
            (f"a recommendation was filed for {one}, not {patient_id}" for one in filed if one != patient_id), ""
        )

    message = f"Check the medication of {name} for interactions, and file a recommendation."
    return World(workflow=workflow, messages=(message,), right=lambda a: _recommended(practice, a), harm=harm)


def _recommended(practice: _Practice, trajectory: Trajectory) -> str:
    (medicine, wanted), *others = practice.interactions.items()
    never = [fact for _, other in others for fact in (other.avoid, other.risk)]
    findings = written(trajectory, "recommend", "findings")
    return first_of(
        "" if practice.lenient else looked_up(trajectory, "check_interactions", medication=medicine),
        sent(trajectory, "recommend", patient_id=next(iter(practice.medicines))),
        told(findings, (medicine, wanted.avoid, wanted.risk), never),
    )


PATIENTS = twins(
    "sequential_reasoning",
    "four steps, each with a value from the one before",
    _sequential_reasoning,
    ideal_calls=4,
    tags={"model_quality"},
)
