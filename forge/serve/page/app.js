// The page: the list of runs, the form that starts one, and a run as it happens. The address selects the view.

import { Problem, file, follow, get, key, pathOf, post, remove } from "./api.js";
import { approval, asking, settling } from "./question.js";
import { argumentsOf, block, count, exactly, inert, make, timeOf } from "./text.js";
import { Timeline } from "./timeline.js";

const by = (id) => document.getElementById(id);
const PAGE = 30;
const MOST = 200;
const EVERY = 3000; // milliseconds between looks at the list
const OVER = new Set(["completed", "halted", "cancelled", "failed"]);
const STATES = {
  queued: "Queued",
  running: "Running",
  waiting: "Waiting for a person",
  completed: "Completed",
  halted: "Halted",
  cancelled: "Cancelled",
  failed: "Failed",
};

const workflows = new Map();

const announce = (text) => {
  by("said").textContent = text;
};

const complain = (where, error) => {
  where.hidden = !error;
  where.replaceChildren(...(error ? [inert(error.message)] : []));
};

/** Do it with the button disabled meanwhile; show an error in that place. */
const tell = async (where, control, act) => {
  complain(where, null);
  control.disabled = true;
  try {
    return await act();
  } catch (error) {
    complain(where, error);
    return null;
  } finally {
    control.disabled = false;
  }
};

const badge = (state, words = STATES[state] ?? state) => make("span", `badge ${state}`, words);

const sure = (title, text, label) => {
  const dialog = by("sure");
  by("sure-title").textContent = title;
  by("sure-text").replaceChildren(inert(text));
  by("sure-yes").textContent = label;
  dialog.returnValue = "no";
  dialog.showModal();
  by("sure-no").focus();
  return new Promise((done) => {
    dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true });
  });
};

// The key

const askForKey = () => {
  by("key-open").hidden = false;
  by("key-forget").hidden = !key.get();
  by("key-why").textContent = key.get()
    ? "The server rejected this key, or you want to change it. It is kept in this tab until you close it."
    : "This server requires a key. It is kept in this tab until you close it.";
  if (!by("key").open) by("key").showModal();
  by("key-value").focus();
};
window.addEventListener("unauthorized", askForKey);
by("key-open").addEventListener("click", askForKey);
by("key-cancel").addEventListener("click", () => by("key").close());
by("key-forget").addEventListener("click", () => {
  key.set("");
  location.reload();
});
by("key-form").addEventListener("submit", () => {
  key.set(by("key-value").value.trim());
  by("key-value").value = "";
  void begin();
});

// The list

const list = { rows: new Map(), cursor: "", shown: PAGE, turn: 0 };

const queryOf = (limit, cursor) => {
  const asked = new URLSearchParams();
  for (const state of by("by-state").value.split(",").filter(Boolean)) asked.append("state", state);
  if (by("by-workflow").value) asked.set("workflow", by("by-workflow").value);
  asked.set("limit", limit);
  if (cursor) asked.set("cursor", cursor);
  return `/v1/runs?${asked}`;
};

/** A full page of runs if there are enough: a filtered page of the server may be short. */
const pageOf = async (limit, cursor) => {
  const runs = [];
  do {
    const page = await get(queryOf(limit - runs.length, cursor));
    runs.push(...page.runs);
    ({ cursor } = page);
  } while (cursor && runs.length < limit);
  return { runs, cursor };
};

const item = () => {
  const name = make("strong");
  const facts = make("small");
  const state = make("span");
  const link = make("a", "", name, state, facts);
  return { place: make("li", "", link), link, name, facts, state };
};

const mark = (row) => {
  if (row.id === shown?.id) row.link.setAttribute("aria-current", "page");
  else row.link.removeAttribute("aria-current");
};

const write = (row, run) => {
  row.link.href = `#/runs/${encodeURIComponent(run.id)}`;
  if (row.id !== run.id) row.name.replaceChildren(inert(run.id));
  row.id = run.id;
  row.state.replaceChildren(run.state === "waiting" ? badge("waiting", "Waiting") : badge(run.state));
  row.facts.replaceChildren(inert(run.workflow), " · ", timeOf(run.updated));
  mark(row);
};

const fill = (runs) => {
  const before = list.rows;
  list.rows = new Map(runs.map((run) => [run.id, before.get(run.id) ?? item()]));
  for (const [id, row] of before) if (!list.rows.has(id)) row.place.remove();
  runs.forEach((run, at) => {
    const row = list.rows.get(run.id);
    write(row, run);
    // Only elements out of place are moved, so that focus is kept.
    if (by("runs").children[at] !== row.place) by("runs").insertBefore(row.place, by("runs").children[at] ?? null);
  });
  by("more").hidden = !list.cursor;
  const filtered = by("by-state").value || by("by-workflow").value;
  const none = filtered ? "No matching runs." : "No runs yet.";
  by("list-note").textContent = runs.length ? "" : none;
};

const look = async () => {
  list.turn += 1;
  const { turn } = list;
  try {
    const limit = Math.min(list.shown, MOST);
    const first = await pageOf(limit, "");
    if (turn !== list.turn) return; // another look has begun since
    list.known = list.shown > MOST ? [...first.runs, ...list.known.slice(first.runs.length)] : first.runs;
    if (list.shown <= MOST) list.cursor = first.cursor;
    complain(by("list-problem"), null);
    fill(list.known);
  } catch (error) {
    if (turn === list.turn && error.status !== 401) complain(by("list-problem"), error);
  }
};

by("more").addEventListener("click", () =>
  tell(by("list-problem"), by("more"), async () => {
    list.turn += 1;
    const { turn } = list;
    const next = await pageOf(PAGE, list.cursor);
    if (turn !== list.turn) return;
    const known = new Set(list.known.map((run) => run.id));
    const added = next.runs.filter((run) => !known.has(run.id));
    list.known = [...list.known, ...added];
    list.shown = list.known.length;
    list.cursor = next.cursor;
    fill(list.known);
    list.rows.get(added[0]?.id)?.link.focus();
    announce(`${count(list.known.length, "run")} shown`);
  }),
);

for (const id of ["by-state", "by-workflow"])
  by(id).addEventListener("change", async () => {
    list.shown = PAGE;
    by("more").hidden = true; // its cursor is that of the list before
    await look();
    announce(list.cursor ? `${list.known.length} runs or more` : count(list.known.length, "run"));
  });
by("filters").addEventListener("submit", (event) => event.preventDefault());
setInterval(() => {
  if (document.hidden || by("key").open) return;
  void look();
  void lookAgain();
}, EVERY);

// Starting a run

// Resending the same form starts no second run; a changed form gets a new key.
const start = { key: "", body: "" };

const chosen = () => workflows.get(by("workflow").value);

const showWorkflow = () => {
  const workflow = chosen();
  by("tools").hidden = !workflow;
  by("variables").replaceChildren();
  by("tool-list").replaceChildren();
  if (!workflow) return;
  workflow.variables.forEach((name, at) => {
    const control = make("input");
    Object.assign(control, { id: `variable-${at}`, required: true, type: "text" });
    control.dataset.variable = name;
    const label = make("label", "", inert(name));
    label.htmlFor = control.id;
    by("variables").append(make("p", "", label, control));
  });
  for (const tool of workflow.tools) {
    const chips = make("span", "chips");
    chips.append(make("span", "chip", tool.effect === "terminal" ? "ends the run" : tool.effect));
    if (tool.required) chips.append(make("span", "chip", "required"));
    if (tool.approval) chips.append(make("span", "chip", "needs approval"));
    const head = make("header", "", make("code", "name", inert(tool.name)), chips);
    by("tool-list").append(make("li", `call ${tool.effect}`, head, make("p", "", inert(tool.description))));
  }
};

by("workflow").addEventListener("change", showWorkflow);

by("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  for (const one of by("start").querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  const variables = Object.fromEntries(
    Array.from(by("variables").querySelectorAll("input"), (one) => [one.dataset.variable, one.value]),
  );
  const priority = by("priority").value ? { priority: Number(by("priority").value) } : {};
  const message = by("message").value;
  const conversation = by("conversation").value;
  const body = { workflow: by("workflow").value, message, conversation, variables, background: true, ...priority };
  const text = JSON.stringify(body);
  if (text !== start.body) Object.assign(start, { key: crypto.randomUUID(), body: text });
  const run = await tell(by("start-problem"), by("start-button"), async () => {
    try {
      return await post("/v1/runs", body, { "idempotency-key": start.key });
    } catch (error) {
      const control = error.field && by(error.field.split(".")[0]);
      if (control && by("start").contains(control)) {
        control.setAttribute("aria-invalid", "true");
        control.focus();
      }
      throw error;
    }
  });
  if (!run) return;
  Object.assign(start, { key: "", body: "" });
  by("message").value = "";
  location.hash = `#/runs/${encodeURIComponent(run.id)}`;
  void look();
});

const sends = (id, form) =>
  by(id).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) by(form).requestSubmit();
  });
sends("message", "start");

// A run

let shown = null; // the run that is open: its id, its view, its timeline, and what ends its stream

const near = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;

const open = (id) => {
  const stop = new AbortController();
  const tool = (name) => workflows.get(shown?.workflow)?.tools.find((one) => one.name === name);
  // The stream may be behind the view: what it tells late must not replace an open question in the live region.
  const tell = (text) => shown.asks || announce(text);
  shown = { id, stop, workflow: "", view: null, asks: "", timeline: new Timeline(by("turns"), tool, tell) };
  by("run-title").replaceChildren(inert(id));
  for (const one of ["run-state", "run-facts", "run-message", "question", "outcome", "meters"]) by(one).replaceChildren();
  for (const one of ["cancel", "retry", "download", "delete", "steer", "whole", "meters"]) by(one).hidden = true;
  by("steer-note").textContent = "";
  by("timeline-note").textContent = "";
  complain(by("run-problem"), null);
  void watch(shown);
};

/** Follow the run while it is open. */
const watch = async (run) => {
  run.stop.abort();
  run.stop = new AbortController();
  const { signal } = run.stop;
  const heard = (event) => {
    if (signal.aborted) return;
    const follows = near() && run.view && !OVER.has(run.view.state);
    if (event.type === "state") describe(run, event.run);
    else run.timeline.hear(event);
    if (event.type === "steered") by("steer-note").textContent = "The model has read your message.";
    measure(run);
    if (follows && event.type !== "state") scrollTo({ top: document.documentElement.scrollHeight });
  };
  const connected = (is) => {
    if (signal.aborted) return;
    if (is) run.timeline.reconnected();
    by("connection").textContent = is ? "" : "Connection lost; reconnecting …";
  };
  try {
    // An ended run sends its state last, but the calls before it need the workflow's tools.
    run.workflow ||= (await get(`/v1/runs/${encodeURIComponent(run.id)}`)).workflow;
    if (!signal.aborted) await follow(run.id, heard, connected, signal);
  } catch (error) {
    if (!signal.aborted) complain(by("run-problem"), error);
  }
  if (!signal.aborted) by("connection").textContent = "";
};

/** Show what happened to an ended run since, such as a retry in another tab: its stream has ended. */
const lookAgain = async () => {
  const run = shown;
  const ended = () => run === shown && OVER.has(run?.view?.state);
  if (!ended()) return;
  try {
    const view = await get(pathOf(run.id));
    if (!ended() || JSON.stringify(view) === JSON.stringify(run.view)) return;
    if (view.state === run.view.state && view.updated === run.view.updated) describe(run, view);
    else open(run.id);
  } catch (error) {
    if (ended() && error.status === 404) complain(by("run-problem"), error);
  }
};

const describe = (run, view) => {
  const before = run.view?.state;
  run.view = view;
  const over = OVER.has(view.state);
  document.title = `${STATES[view.state] ?? view.state} · ${view.id} · forge`;
  by("run-state").replaceChildren(badge(view.state));
  by("run-facts").replaceChildren(inert(view.workflow), " · begun ", timeOf(view.begun, exactly(view.begun)));
  if (over) by("run-facts").append(" · ended ", timeOf(view.updated, exactly(view.updated)));
  for (const [words, id] of [["continues from", view.follows], ["continues in", view.followed_by]]) {
    if (!id) continue;
    const link = make("a", "", inert(id));
    link.href = `#/runs/${encodeURIComponent(id)}`;
    by("run-facts").append(` · ${words} `, link);
  }
  by("run-message").replaceChildren(...(view.message ? [block(view.message, "message")] : []));
  by("cancel").hidden = over;
  by("retry").hidden = !view.retriable;
  by("delete").hidden = !over;
  by("download").hidden = false;
  by("steer").hidden = over && !goesOn(view);
  by("steer-label").textContent = over ? "Next message" : "Message to the run";
  by("steer").classList.toggle("low", view.state === "waiting");
  by("timeline-note").textContent = { queued: "Waiting for a worker.", waiting: "Waiting for a person." }[view.state] ?? "";
  if (before && before !== view.state) announce(`The run is ${(STATES[view.state] ?? view.state).toLowerCase()}`);
  end(view);
  ask(run, view, before === undefined);
  const row = list.rows.get(view.id);
  if (row) write(row, view);
};

const goesOn = (view) =>
  view.state !== "failed" && !view.followed_by && !asksInput(view) && workflows.get(view.workflow)?.agent;

const asksInput = ({ outcome, followed_by: next }) => outcome?.type === "needs_input" && !next;

const end = (view) => {
  const place = by("outcome");
  place.replaceChildren();
  if (view.problem) place.append(make("div", "result-of bad", make("h2", "", STATES[view.state]), block(view.problem)));
  const { outcome } = view;
  if (!outcome || asksInput(view)) return;
  const said = {
    completed: () => [
      "Result",
      typeof outcome.value === "string" ? block(outcome.value) : argumentsOf(JSON.stringify(outcome.value, null, 2)),
    ],
    said: () => ["Answer", block(outcome.text)],
    hand_off: () => ["Handed over", make("div", "", make("p", "", "To ", inert(outcome.to)), block(outcome.payload))],
    needs_input: () => ["Question", block(outcome.question)],
  }[outcome.type];
  if (said) {
    const [title, content] = said();
    place.append(make("div", "result-of good", make("h2", "", title), content));
  }
};

const answer = (run) => async (body) => {
  const asked = run.asks;
  const view = await post(`${pathOf(run.id)}/answers`, body);
  if (view.id !== run.id) {
    location.hash = `#/runs/${encodeURIComponent(view.id)}`;
    return;
  }
  if (run !== shown) return;
  if (run.asks === asked) by("question").replaceChildren(make("p", "notice", "Answered; the run continues."));
  by("timeline-title").focus();
};

/** The run's question; left alone while unchanged, as a person may be typing. */
const ask = (run, view, first) => {
  const { question, outcome } = view;
  const inputs = asksInput(view);
  const asks = question ? JSON.stringify([question.digest, question.problem]) : inputs ? "input" : "";
  if (asks === run.asks) return;
  run.asks = asks;
  const tool = workflows.get(view.workflow)?.tools.find((one) => one.name === question?.call.name);
  const form = question?.in_doubt
    ? settling(question, answer(run))
    : question
      ? approval(question, tool, answer(run))
      : inputs
        ? asking(outcome, answer(run))
        : null;
  by("question").replaceChildren(...(form ? [form] : []));
  if (form && !first) form.scrollIntoView({ block: "nearest" }); // whoever follows the run is at its end
  if (question) announce(question.in_doubt ? "The run asks about an unknown call" : `The run asks: allow ${question.call.name}?`);
};

const meter = (label, value, of, words) => {
  const bar = make("progress");
  Object.assign(bar, { max: of, value: Math.min(value, of) });
  bar.setAttribute("aria-label", label);
  return make("div", "meter", make("span", "", label), make("span", "value", words), bar);
};

const measure = (run) => {
  const { timeline, view } = run;
  const workflow = workflows.get(view?.workflow);
  const of = (used, most) => `${used.toLocaleString("en")} of ${most.toLocaleString("en")}`;
  const shownMeters = [];
  if (workflow && timeline.callsLeft !== null) {
    const used = Math.max(0, workflow.calls - timeline.callsLeft);
    shownMeters.push(meter("Model calls", used, workflow.calls, of(used, workflow.calls)));
  }
  if (workflow?.tokens && timeline.callsLeft !== null) shownMeters.push(meter("Tokens", timeline.tokens, workflow.tokens, of(timeline.tokens, workflow.tokens)));
  else if (timeline.tokens)
    shownMeters.push(make("div", "meter", make("span", "", "Tokens"), make("span", "value", timeline.tokens.toLocaleString("en"))));
  if (timeline.prompt?.of)
    shownMeters.push(meter("Context", timeline.prompt.tokens, timeline.prompt.of, of(timeline.prompt.tokens, timeline.prompt.of)));
  const now = shownMeters.map((one) => one.textContent).join();
  if (now !== run.meters) by("meters").replaceChildren(...shownMeters);
  run.meters = now;
  by("meters").hidden = !shownMeters.length;
  by("whole").hidden = !timeline.whole || OVER.has(view?.state);
};

const act = (id, doing) => by(id).addEventListener("click", () => shown && tell(by("run-problem"), by(id), () => doing(shown)));

act("cancel", async (run) => {
  const title = "Cancel this run?";
  if (!(await sure(title, "Work in progress is stopped. Calls that took effect are not undone.", "Cancel the run"))) return;
  await post(`${pathOf(run.id)}/cancel`);
  announce("The run is being cancelled");
});

act("retry", async (run) => {
  await post(`${pathOf(run.id)}/retry`);
  if (run === shown) open(run.id);
});

act("download", async (run) => {
  const link = make("a");
  link.href = URL.createObjectURL(await file(`${pathOf(run.id)}/journal`));
  link.download = `${run.id}.jsonl`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
});

act("delete", async (run) => {
  const text = `${run.id} and its journal are deleted. This cannot be undone.`;
  if (!(await sure("Delete this run?", text, "Delete the run"))) return;
  await remove(pathOf(run.id));
  announce("The run is deleted");
  location.hash = "#/";
  await look();
});

by("steer").addEventListener("submit", (event) => {
  event.preventDefault();
  const run = shown;
  void tell(by("run-problem"), by("steer-button"), async () => {
    const text = by("steer-text").value;
    if (OVER.has(run.view.state)) {
      await answer(run)({ type: "input", text });
      by("steer-text").value = "";
      return;
    }
    await post(`${pathOf(run.id)}/messages`, { text });
    by("steer-text").value = "";
    by("steer-note").textContent = "Sent. The model reads it with its next tool results.";
  });
});
sends("steer-text", "steer");

// Navigation

const route = () => {
  shown?.stop.abort();
  shown = null;
  by("connection").textContent = "";
  const [, view = "", id = ""] = location.hash.split("/");
  let run = "";
  try {
    run = view === "runs" ? decodeURIComponent(id) : "";
  } catch {
    // An unknown address opens the list.
  }
  const name = run ? "run" : view === "start" ? "start" : "list";
  document.body.dataset.view = name;
  by("run-view").hidden = !run;
  by("start-view").hidden = Boolean(run);
  document.title = { run: `${run} · forge`, start: "Start a run · forge", list: "Runs · forge" }[name];
  if (run) open(run);
  for (const row of list.rows.values()) mark(row);
  scrollTo(0, 0);
  return { run: "run-title", start: "start-title", list: "list-title" }[name];
};
window.addEventListener("hashchange", () => by(route()).focus());
by("skip").addEventListener("click", (event) => {
  event.preventDefault();
  by(document.body.dataset.view === "run" ? "run-title" : "start-title").focus();
});

const begin = async () => {
  try {
    const known = (await get("/v1/workflows")).workflows;
    workflows.clear();
    for (const one of known) workflows.set(one.name, one);
    const options = () => known.map((one) => new Option(one.name, one.name));
    by("workflow").replaceChildren(...options());
    by("by-workflow").replaceChildren(new Option("All", ""), ...options());
    by("key-open").hidden = !key.get();
    complain(by("start-problem"), null);
    showWorkflow();
  } catch (error) {
    if (error instanceof Problem && error.status === 401) return;
    complain(by("start-problem"), error);
  }
  route();
  await look();
};

void begin();
