"""Ten steps of a treatment, each on an id from the one before, in contexts that hold all of them down to two.

Step 7 needs an id from step 1, steps 8 and 9 one from step 5: by then the results that had them may be cut, and can be
read again with `recall`.
"""

from dataclasses import dataclass
from functools import partial

from forge import TieredCompact, Workflow
from forge.evals.scenario import Scenario, Trajectory, World
from forge.evals.suite.checks import first_of, told, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import found, read
from forge.workflow.workflow import Context
from stages.rules import Limits

_STEPS = (
    "patient_lookup",
    "pull_records",
    "order_labs",
    "review_imaging",
    "request_referral",
    "check_pharmacy",
    "verify_insurance",
    "request_prior_auth",
    "schedule_appointment",
)
_SYSTEM = (
    "You are a clinic's case assistant. Do one step after the other, each once, with the ids that the steps before "
    f"gave: {', '.join(_STEPS)}; then submit_treatment_plan."
)
_FINDINGS = ("cortical thinning", "mild scarring", "a small cyst", "early calcification", "reduced perfusion")
_SPECIALTIES = ("nephrology", "cardiology", "endocrinology", "pulmonology", "rheumatology")
_MEDICINES = ("Velaprin", "Dorvastin", "Quenolol", "Maridex", "Tanoxil", "Serulane")
_NOTES = (
    "The visit before this one was uneventful. The patient walks to work, sleeps well and has given up smoking. ",
    "Nothing else in the file stands out; the family history was taken down in the first year and has not changed. ",
    "The staff were asked to write everything down, so that the next colleague finds what was done, when and by whom. ",
    "All of this was entered by hand and read over by a second person, as the rules of the house have it. ",
)


@dataclass(frozen=True)
class _Case:
    """The ids and findings of one patient."""

    name: str
    mrn: str
    records: str
    labs: str
    imaging: str
    referral: str
    prescription: str
    policy: str
    authorization: str
    hba1c: float
    finding: str
    specialty: str
    specialist: str
    medicine: str

    def patient_lookup(self, name: str) -> dict[str, str]:
        """Step 1: find a patient by name."""
        return found({self.name: {"mrn": self.mrn, "records_id": self.records, "notes": _notes(0)}}, name, "patient")

    def pull_records(self, records_id: str) -> dict[str, str]:
        """Step 2: read the patient's records."""
        return found({self.records: {"lab_order_id": self.labs, "notes": _notes(1)}}, records_id, "record")

    def order_labs(self, lab_order_id: str) -> dict[str, object]:
        """Step 3: order the laboratory and read its values."""
        told = {"hba1c": self.hba1c, "imaging_id": self.imaging, "notes": _notes(2)}
        return found({self.labs: told}, lab_order_id, "laboratory order")

    def review_imaging(self, imaging_id: str) -> dict[str, str]:
        """Step 4: review the images."""
        told = {"finding": self.finding, "refer_to": self.specialty, "notes": _notes(3)}
        return found({self.imaging: told}, imaging_id, "image")

    def request_referral(self, specialty: str, finding: str) -> dict[str, str]:
        """Step 5: refer the patient to a specialist, with the finding of step 4."""
        told = {"referral_id": self.referral, "specialist": self.specialist, "prescription_id": self.prescription}
        self._is(self.finding, finding, "finding")
        return found({self.specialty: {**told, "notes": _notes(4)}}, specialty, "specialty")

    def check_pharmacy(self, prescription_id: str, hba1c: float) -> dict[str, str]:
        """Step 6: ask the pharmacy which medicine was prescribed, given the HbA1c of step 3."""
        self._is(str(self.hba1c), str(hba1c), "HbA1c")
        return found(
            {self.prescription: {"medicine": self.medicine, "notes": _notes(5)}}, prescription_id, "prescription"
        )

    def verify_insurance(self, mrn: str) -> dict[str, str]:
        """Step 7: verify the insurance of the patient with that MRN, which step 1 gave."""
        return found({self.mrn: {"policy_id": self.policy, "notes": _notes(6)}}, mrn, "patient with the MRN")

    def request_prior_auth(self, referral_id: str, policy_id: str, medicine: str) -> dict[str, str]:
        """Step 8: have the insurance authorize the referral of step 5 and the medicine of step 6."""
        self._is(self.policy, policy_id, "policy")
        self._is(self.medicine, medicine, "medicine")
        return found(
            {self.referral: {"authorization_id": self.authorization, "notes": _notes(7)}}, referral_id, "referral"
        )

    def schedule_appointment(self, referral_id: str, authorization_id: str, specialist: str) -> dict[str, str]:
        """Step 9: make the appointment for the referral, with the specialist of step 5."""
        self._is(self.authorization, authorization_id, "authorization")
        self._is(self.specialist, specialist, "specialist")
        return found({self.referral: {"appointment": "confirmed", "notes": _notes(8)}}, referral_id, "referral")

    def submit_treatment_plan(self, summary: str) -> str:
        """Step 10: submit the plan.

        Args:
            summary: The patient's MRN, the HbA1c, the finding of the images, the specialist and the medicine.
        """
        return f"Submitted: {summary}"

    def _is(self, known: str, given: str, what: str) -> None:
        found({known: True}, given, what)


def _notes(step: int) -> str:
    """Some lines that nobody needs."""
    return "".join(_NOTES[(step + line) % len(_NOTES)] for line in range(10)).strip()


def _drawn(draw: Draw) -> _Case:
    return _Case(
        name=draw.person(),
        mrn=draw.id("", 5),
        records=draw.id("RC-"),
        labs=draw.id("LB-"),
        imaging=draw.id("IM-"),
        referral=draw.id("RF-"),
        prescription=draw.id("RX-"),
        policy=draw.id("PL-"),
        authorization=draw.id("AU-"),
        hba1c=draw.randrange(65, 120) / 10,
        finding=draw.choice(_FINDINGS),
        specialty=draw.choice(_SPECIALTIES),
        specialist=f"Dr. {draw.person()}",
        medicine=draw.choice(_MEDICINES),
    )


def _compaction_chain(seed: int) -> World:
    case = _drawn(Draw(seed))
    first = (case.patient_lookup, case.pull_records, case.order_labs, case.review_imaging)
    last = (case.verify_insurance, case.request_prior_auth, case.schedule_appointment)
    workflow = Workflow(
        "compaction_chain",
        tools=[*map(read, first), case.request_referral, read(case.check_pharmacy), *last, case.submit_treatment_plan],
        terminal_tool="submit_treatment_plan",
        required_steps=list(_STEPS),
        system_prompt=_SYSTEM,
        limits=Limits(max_iterations=20),
        context=Context(compactor=TieredCompact(keep_recent=2, phase_thresholds=(0.6, 0.75, 0.9)), recall=True),
    )
    message = f"Take {case.name} through all the steps and submit the treatment plan."
    return World(workflow=workflow, messages=(message,), right=partial(_planned, case))


def _planned(case: _Case, trajectory: Trajectory) -> str:
    made = tuple(call.tool for call in trajectory.calls if not call.error and call.tool in _STEPS)
    facts = (case.mrn, case.hba1c, case.finding, case.specialist.removeprefix("Dr. ").split()[1], case.medicine)
    return first_of(
        "" if made == _STEPS else f"the steps done were {', '.join(made)}",
        told(written(trajectory, "submit_treatment_plan", "summary"), facts),
    )


def _chain(name: str, about: str, context_tokens: int, *not_counted: str) -> Scenario:
    return Scenario(
        name=f"compaction_chain_{name}",
        about=about,
        world=_compaction_chain,
        ideal_calls=10,
        tags=frozenset({"seeds", "stateful", "advanced", "compaction"}),
        context_tokens=context_tokens,
        not_counted=frozenset(not_counted),
    )


# The seeds' budgets are of the history alone; these have room for the tools and for a reply as well. Without compaction
# the history outgrows p2 and p3; a plain loop, which keeps no room for a reply, gets through p2.
TREATMENT = (
    _chain("baseline", "ten steps in a context that holds them all", 8192),
    _chain("p1", "ten steps in a context for which old results are cut short", 5200),
    _chain("p2", "ten steps in a context for which old results are taken out", 4200, "no_compact", "bare"),
    _chain("p3", "ten steps in a context that holds three results", 3600, "no_compact", "bare", "plain"),
)
