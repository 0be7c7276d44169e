"""An alert: which look-up shows the cause is decided by what the one before has shown."""

from collections.abc import Callable
from dataclasses import dataclass

from forge import Workflow
from forge.evals.scenario import Trajectory, World
from forge.evals.suite.checks import first_of, told, written
from forge.evals.suite.drawing import Draw
from forge.evals.suite.lookups import SYSTEM, found, read
from forge.evals.suite.twin_scenarios import twins

_SERVICES = ("payments", "checkout", "search", "invoicing", "sign-in", "shipping")
_LIBRARIES = ("ledgerkit", "paywire", "quickform", "geoindex", "mailcore", "tokenbox")
_FIELDS = ("transaction_id", "customer_ref", "postal_code", "currency_code", "session_key", "unit_price")
_BACK = ("roll back", "rollback", "rolled back", "rolling back", "revert", "reverting", "downgrade", "undo", "go back")


@dataclass(frozen=True)
class _Operations:
    """What is known of a service; without `lenient`, only by its own name."""

    alert_id: str
    service: str
    library: str
    field: str
    minute: int
    errors: int
    lenient: bool

    def get_alert(self, alert_id: str) -> dict[str, object]:
        """Read an alert: the service that it is about, and what was noticed."""
        noticed: dict[str, object] = {"service": self.service, "noticed": f"{self.errors} % of requests fail"}
        return noticed if self.lenient else found({self.alert_id: noticed}, alert_id, "alert")

    def check_metrics(self, service: str) -> dict[str, str]:
        """Check the curves of a service over the last hour: errors, load, memory."""
        self._known(service)
        began = f"14:{self.minute + 6:02}"
        return {
            "errors": f"0.1 % until {began}, then {self.errors} % from one minute to the next",
            "load": "even, as on any other day",
            "memory": "even",
        }

    def check_logs(self, service: str) -> list[str]:
        """Read the newest warnings in the log of a service."""
        self._known(service)
        return ["WARN the disk is 71 % full", "WARN a certificate expires in 23 days", "WARN clock drift of 3 ms"]

    def check_deployment(self, service: str) -> dict[str, str]:
        """Look at the last deployment of a service: when it was, and what it changed."""
        self._known(service)
        return {
            "deployed": f"14:{self.minute:02}",
            "changed": f"{self.library} from v3.8.1 to v4.0.0",
            "release_notes": f"v4.0.0: responses no longer have {self.field} at the top; it is inside of data now",
        }

    def diagnose(self, diagnosis: str, action: str) -> str:
        """Hand the diagnosis in.

        Args:
            diagnosis: What caused the alert, down to what exactly has changed.
            action: The fastest way back to normal.
        """
        return f"Diagnosis: {diagnosis} Action: {action}"

    def _known(self, service: str) -> None:
        if not self.lenient:
            found({self.service: True}, service, "service")


def _conditional_routing(seed: int, *, stateful: bool) -> World:
    draw = Draw(seed)
    names = (draw.choice(_SERVICES), draw.choice(_LIBRARIES), draw.choice(_FIELDS))
    team = _Operations(draw.id("AL-"), *names, draw.randrange(2, 50), draw.randrange(18, 80), lenient=not stateful)
    reads: list[Callable[..., object]] = [team.get_alert, team.check_logs, team.check_metrics, team.check_deployment]
    workflow = Workflow(
        "conditional_routing",
        tools=[*map(read, reads), team.diagnose],
        terminal_tool="diagnose",
        required_steps=["get_alert", "check_metrics"],
        system_prompt=SYSTEM,
    )

    def right(trajectory: Trajectory) -> str:
        looked = [tool for tool in ("get_alert", "check_metrics", "check_deployment") if trajectory.of(tool)]
        cause = told(written(trajectory, "diagnose", "diagnosis"), ((team.library, "v4.0.0", "4.0.0"), team.field))
        action = told(written(trajectory, "diagnose", "action"), ((*_BACK, "v3.8.1", "3.8.1"),))
        return first_of("" if len(looked) == 3 or not stateful else f"only {looked} were looked at", cause, action)

    message = f"Alert {team.alert_id} has come in. Find its cause, and the fastest way back to normal."
    return World(workflow=workflow, messages=(message,), right=right)


INCIDENTS = twins(
    "conditional_routing",
    "what one look-up shows says which one comes next; another leads nowhere",
    _conditional_routing,
    ideal_calls=4,
    tags={"model_quality", "reasoning"},
)
