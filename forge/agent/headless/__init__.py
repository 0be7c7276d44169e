"""Headless: unattended work on a task file, with limits before each call, gates at the end, and a record."""

from forge.agent.headless.limits import TaskLimits, Violation
from forge.agent.headless.record import Record
from forge.agent.headless.running import run_task
from forge.agent.headless.task import AgentTask, Gate, read_task

__all__ = ["AgentTask", "Gate", "Record", "TaskLimits", "Violation", "read_task", "run_task"]
