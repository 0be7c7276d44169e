"""Players of the longer scenarios of the seeds."""

import re
from collections.abc import Generator
from typing import Any

from tests.evals.players import LOOK, Moves, Worked, call


def error_recovery(message: str) -> Moves:
    (count,) = re.findall(r"Fetch (\d+)", message)
    yield call("fetch", count=count)
    records = yield call("fetch", count=count.zfill(4))
    yield call("summarize", content=f"{records['fetched']} records; the newest is the {records['newest']}.")


def sequential_reasoning(message: str) -> Moves:
    (name,) = re.findall(r"medication of (.+) for", message)
    patient_id = (yield call("identify_patient", name=name))["patient_id"]
    medication = (yield call("get_records", patient_id=patient_id))["medication"]
    found = yield call("check_interactions", medication=medication)
    findings = f"With {medication} avoid {found['avoid']}: risk of {found['risk']}."
    yield call("recommend", patient_id=patient_id, findings=findings)


def recommendation_for_another(message: str) -> Moves:
    yield call("recommend", patient_id="PT-1", findings="Nothing to say.")
    yield from sequential_reasoning(message)


def conditional_routing(message: str) -> Moves:
    (alert_id,) = re.findall(r"AL-\d+", message)
    service = (yield call("get_alert", alert_id=alert_id))["service"]
    yield call("check_metrics", service=service)
    found = yield call("check_deployment", service=service)
    diagnosis = f"The deployment changed {found['changed']}: {found['release_notes']}."
    yield call("diagnose", diagnosis=diagnosis, action="Roll back to the version before.")


def data_gap_recovery(message: str) -> Moves:
    (employee_id,) = re.findall(r"E-\d+", message)
    known = yield call("get_employee", employee_id=employee_id)
    clearance = (yield call("security_audit", employee_id=employee_id))["clearance"]
    hint = (yield call("personnel_file", employee_id=employee_id))["emergency_contact"]
    assert "onboarding records" in hint
    contact = (yield call("onboarding_records", employee_id=employee_id))["emergency_contact"]
    report = f"{known['department']}, clearance {clearance}, emergency contact {contact}"
    if "salary band" in message:
        band = (yield call("compensation_v2", employee_id=employee_id))["salary_band"]
        assert "project_assignments" in (yield call("access_control", employee_id=employee_id))["deprecated"]
        groups = (yield call("project_assignments", employee_id=employee_id))["active_access_groups"]
        report += f", salary band {band}, access to {' and '.join(groups)}"
    yield call("submit_report", employee_name=known["name"], report=report)


def argument_transformation(message: str) -> Moves:
    ((quarter, year, limit),) = re.findall(r"(Q\d) (\d{4}): .* comes to (\d+) US", message)
    payments = yield call("list_transactions", quarter=quarter, year=int(year))
    approved = yield call("get_approved_vendors")
    flagged = [one for one in payments if one["vendor"] not in approved and one["amount"] * 1.2 >= int(limit)]
    amounts = {}
    for one in flagged:
        amount = one["amount"]
        if one["currency"] != "USD":
            amount = (yield call("currency_convert", amount=amount, currency=one["currency"]))["usd"]
        if amount >= int(limit):
            registered = (yield call("get_vendor_details", vendor=one["vendor"]))["registered_name"]
            if registered not in approved:
                amounts[one["id"]] = (amount, one["vendor"])
    total = [amount for amount, _ in amounts.values()]
    yield call(
        "submit_audit_report",
        transaction_ids=list(amounts),
        total_flagged_usd=Worked(" + ".join(f"{amount:.12g}" for amount in total), sum(total)),
        top_vendor=max(amounts.values())[1],
    )


def inconsistent_api_recovery(message: str) -> Moves:
    ((name, year),) = re.findall(r"account (\w+) for the whole year (\d{4})", message)
    accounts = yield call("legacy_list_accounts", page=1, page_size=20)
    (number,) = (account["id"] for account in accounts if account["name"] == name)
    yield call("legacy_get_balance", account=str(number))
    yield call("legacy_get_balance", account=f"ACC-{number}")
    dates = {"start": f"{year}-01-01", "end": f"{year}-12-31"}
    payments = (yield call("legacy_get_transactions", account_id=number, **dates))["payments"]
    yield call("legacy_categorize_spend", account_id=number, category="services")
    yield call("legacy_categorize_spend", account_id=number, category="SVCS")
    yield call("legacy_check_compliance", region="FR", period=f"Q4 {year}")
    yield call("legacy_check_compliance", region="fr", period=f"Q4 {year}")
    status = (yield call("legacy_check_compliance", region="fr", period=f"{year}-Q4"))["status"]
    yield call("legacy_aggregate_subtotal", amounts=", ".join(map(str, payments)))
    amounts = "|".join(f"{payment:.2f}" for payment in payments)
    total = (yield call("legacy_aggregate_subtotal", amounts=amounts))["subtotal"]
    yield call("legacy_submit_audit", report=f"{len(payments)} payments, {total:,.2f} in all, compliance {status}.")


def grounded_synthesis(message: str) -> Moves:
    (role_id,) = re.findall(r"R-\d+", message)
    yield call("get_open_role", role_id=role_id)
    pool = [one["name"] for one in (yield call("get_candidate_pool", role_id=role_id))]
    obstacles = {}
    for name in pool:
        obstacles[name] = (yield call("get_compatibility_check", candidate=name))["obstacle"]
    yield call("get_team_dynamics", role_id=role_id)
    able = {}
    for name in [name for name in pool if obstacles[name].startswith("none")]:
        able[name] = (yield call("get_skill_summary", candidate=name))["skills"]
    (chosen,) = (name for name, skills in able.items() if skills.startswith("all"))
    against = "; ".join(f"{name}: {obstacle}" for name, obstacle in obstacles.items() if name not in able)
    yield call("submit_hiring_decision", candidate=chosen, rationale=f"Has {able[chosen]}. Against others: {against}.")


def relevance_detection(message: str) -> Moves:
    yield call("decline", reason=f"None of my tools can answer: {message}")


def flight_for_no_reason(message: str) -> Moves:
    yield call("book_flight", origin="Oslo", destination="Rome", date="2026-01-01")
    yield from relevance_detection(message)


def compaction_chain(message: str) -> Moves:
    (name,) = re.findall(r"Take (.+) through", message)
    patient = yield call("patient_lookup", name=name)
    mrn = patient["mrn"]
    labs_id = (yield call("pull_records", records_id=patient["records_id"]))["lab_order_id"]
    labs = yield call("order_labs", lab_order_id=labs_id)
    images = yield call("review_imaging", imaging_id=labs["imaging_id"])
    referral = yield call("request_referral", specialty=images["refer_to"], finding=images["finding"])
    late = yield from _again(str(labs["hba1c"]), 3)
    prescription = {"prescription_id": referral["prescription_id"], "hba1c": labs["hba1c"]}
    medicine = (yield call("check_pharmacy", **prescription))["medicine"]
    yield from _again(mrn, 1)
    policy_id = (yield call("verify_insurance", mrn=mrn))["policy_id"]
    referral_id, specialist = referral["referral_id"], referral["specialist"]
    for fact, number in ((medicine, 6 + late), (referral_id, 5)):
        yield from _again(fact, number)
    agreed = yield call("request_prior_auth", referral_id=referral_id, policy_id=policy_id, medicine=medicine)
    yield from _again(specialist, 5)
    appointment = {"referral_id": referral_id, "authorization_id": agreed["authorization_id"]}
    yield call("schedule_appointment", **appointment, specialist=specialist)
    shown, facts = (yield LOOK), (mrn, labs["hba1c"], images["finding"], specialist, medicine)
    assert all(str(fact) in shown for fact in facts)
    yield call("submit_treatment_plan", summary=", ".join(map(str, facts)))


def _again(value: str, number: int) -> Generator[Any, Any, int]:
    """Read the result of the call with that number again, if what it said is no longer shown; how many it took."""
    shown, call_id = (yield LOOK), f"call_{number:09}"
    if value in shown:
        return 0
    assert call_id in shown, f"{value} is not shown, nor the call that it came from:\n{shown}"
    again = str((yield call("recall", call_id=call_id)))
    assert value in again, again
    return 1


PERFECT = {
    "error_recovery": error_recovery,
    "sequential_reasoning": sequential_reasoning,
    "conditional_routing": conditional_routing,
    "data_gap_recovery": data_gap_recovery,
    "data_gap_recovery_extended": data_gap_recovery,
    "argument_transformation": argument_transformation,
    "inconsistent_api_recovery": inconsistent_api_recovery,
    "grounded_synthesis": grounded_synthesis,
    "relevance_detection": relevance_detection,
    **{f"compaction_chain_{budget}": compaction_chain for budget in ("baseline", "p1", "p2", "p3")},
}
HARMFUL = {"sequential_reasoning": recommendation_for_another, "relevance_detection": flight_for_no_reason}
