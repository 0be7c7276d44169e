// A run's events as turns: what the model said, its calls with their results, and how it was corrected.

import { argumentsOf, block, count, inert, make } from "./text.js";

const RESULTS = {
  succeeded: "succeeded",
  unresolved: "found nothing",
  failed: "failed",
  not_run: "not run",
  in_doubt: "unknown outcome",
  refused: "refused",
  paused: "asks the user",
};
const NUDGES = {
  step_nudge: "a required step is missing",
  prerequisite_nudge: "another tool comes first",
  retry_nudge: "it was asked to try again",
  provenance_nudge: "it only repeated a call that it was shown",
};
const LIVE = 300; // milliseconds: a reply that took longer than this to arrive is not a replay

const noted = (name, label, text) => make("div", `note ${name}`, make("strong", "", label), block(text));

export class Timeline {
  #list;
  #tool;
  #announce;
  #turns = new Map();
  #within = new Map(); // the timelines of agents within the run, by their own runs
  #calls = new Map();
  #live = null;
  #asked = 0;
  #paint = 0;

  /** `tool` looks up a tool by name; `announce` speaks to screen readers. */
  constructor(list, tool, announce) {
    this.#list = list;
    this.#tool = tool;
    this.#announce = announce;
    list.replaceChildren();
    this.tokens = 0;
    this.callsLeft = null;
    this.prompt = null;
    this.whole = false;
  }

  hear(event) {
    if (event.within) this.#inner(event);
    else if (Object.hasOwn(this.#heard, event.type)) this.#heard[event.type](event);
    else if (event.details) this.#into(event, noted("warned", event.title, event.details));
    else if (event.title) this.#into(event, make("p", "aside", inert(event.title)));
  }

  /** The stream starts again: live events of the reply being written are sent again. */
  reconnected() {
    for (const [run, inner] of this.#within) if (!inner.recorded) this.#reset(run);
    if (!this.#live) return;
    Object.assign(this.#live, { text: "", reasoning: "", calls: [] });
  }

  /** Show an inner agent's events at the call that started it: live first, then as recorded. */
  #inner(event) {
    const { agent, run, parent, call_id: call } = event.within;
    if (event.id && this.#within.get(run)?.recorded === false) this.#reset(run);
    let inner = this.#within.get(run);
    if (!inner) {
      const card = (this.#within.get(parent)?.timeline ?? this).#calls.get(call);
      if (!card) return;
      const list = make("ol", "turns");
      const place = make("details", "within", make("summary", "", "Agent ", inert(agent)), list);
      place.open = !event.id;
      card.results.before(place);
      inner = { place, recorded: Boolean(event.id), timeline: new Timeline(list, () => {}, () => {}) };
      this.#within.set(run, inner);
    }
    inner.timeline.hear({ ...event, within: null });
  }

  #reset(run) {
    this.#within.get(run).place.remove();
    this.#within.delete(run);
  }

  #heard = {
    connected: (event) => {
      const size = event.context_tokens ? `, context of ${count(event.context_tokens, "token")}` : "";
      this.#into(event, make("p", "aside", "Model ", inert(event.model || "?"), `, ${event.mode}${size}`));
    },
    turn_started: (event) => {
      this.#refuse(event.turn - 1);
      this.callsLeft = event.calls_left;
      this.prompt = { tokens: event.prompt_tokens, of: event.context_tokens };
      this.#asked = performance.now();
      const { title } = this.#turn(event.turn);
      const target = event.target === "main" ? "" : `${event.target} model, `;
      title.querySelector("small").textContent = `${target}prompt of about ${count(event.prompt_tokens, "token")}`;
      this.#begin(event);
    },
    text: (event) => this.#grow(event, (live) => (live.text += event.text)),
    reasoning: (event) => this.#grow(event, (live) => (live.reasoning += event.text)),
    reclassified: (event) =>
      this.#grow(event, (live) => {
        const [text, reasoning] = [Array.from(live.text), Array.from(live.reasoning)];
        const thought = event.to_reasoning ? text.splice(-event.to_reasoning) : [];
        const said = event.to_text ? reasoning.splice(-event.to_text) : [];
        [live.text, live.reasoning] = [[...text, ...said].join(""), [...reasoning, ...thought].join("")];
      }),
    call_started: (event) =>
      this.#grow(event, (live) => (live.calls[event.index] = { arguments: "", ...live.calls[event.index], name: event.name })),
    call_delta: (event) =>
      this.#grow(event, (live) => {
        const call = (live.calls[event.index] ??= { name: "", arguments: "" });
        call.arguments += event.arguments;
      }),
    retry: (event) => {
      this.#begin(event);
      const when = event.seconds ? ` Again in ${event.seconds.toFixed(1)} s.` : "";
      this.#into(event, noted("trouble", `Attempt ${event.attempt} failed`, event.fault.detail + when));
    },
    model_replied: (event) => this.#replied(event),
    model_failed: (event) => {
      this.#forget();
      this.#into(event, noted("trouble", "No reply", event.problem));
    },
    calls_accepted: (event) => {
      for (const call of event.calls) this.#accepted(event, call);
      const names = event.calls.map((call) => call.name).join(", ");
      this.#announce(`Turn ${event.turn}: calls ${names}`);
    },
    approval_asked: (event) => {
      const card = this.#card(event, event.call);
      this.#state(card, "asks", event.in_doubt ? "unknown outcome, waiting for a person" : "waiting for a person");
      if (event.problem) card.results.append(noted("trouble", "Arguments refused", event.problem));
    },
    approval_answered: (event) => {
      const card = this.#calls.get(event.call_id);
      if (!card) return;
      const found = event.happened ? "the earlier call took effect" : event.approved ? "approved" : "not approved";
      this.#state(card, event.approved ? "asked" : "refused", found);
      if (event.approved && event.arguments && event.arguments !== card.json) {
        this.#arguments(card, event.arguments);
        this.#chip(card, "arguments changed by a person");
      }
    },
    tool_progressed: (event) => {
      const card = this.#calls.get(event.call_id);
      if (card) card.progress.replaceChildren(inert(event.text));
    },
    tools_returned: (event) => {
      for (const result of event.results) this.#returned(event, result);
    },
    nudged: (event) => {
      this.#refuse(event.turn);
      this.#into(event, noted("nudge", `Corrected: ${NUDGES[event.kind] ?? event.kind}`, event.text));
      this.#announce(`Turn ${event.turn}: corrected`);
    },
    steered: (event) => this.#into(event, noted("user", "User, while it worked", event.text)),
    summary_asked: (event) => {
      this.#asked = performance.now();
      this.#into(event, make("p", "aside", `Asked for a summary of ${count(event.messages, "message")}`));
      this.#begin(event);
    },
    summary_failed: (event) => this.#into(event, noted("trouble", "The summary cannot be used", event.problem)),
    backend_replaced: (event) => this.#into(event, noted("trouble", "Switched to another backend", event.explanation)),
    finished: (event) => this.#end(event, "good", "The run is completed"),
    halted: (event) => this.#end(event, "bad", `The run halted: ${event.explanation}`),
    failed: (event) => this.#end(event, "bad", `The run failed: ${event.problem}`),
  };

  // Turns

  #turn(number) {
    const known = this.#turns.get(number);
    if (known) return known;
    const title = make("h3", "", number ? `Turn ${number} ` : "Start ", make("small"));
    const items = make("div", "items");
    const place = make("li", "turn", title, items);
    this.#list.append(place);
    const made = { title, items, place };
    this.#turns.set(number, made);
    return made;
  }

  #into(event, element) {
    // The reply being written stays at the end.
    const { items } = this.#turn(event.turn);
    const live = this.#live?.place;
    if (live?.parentNode === items) live.before(element);
    else items.append(element);
    return element;
  }

  #end(event, kind, text) {
    this.#forget();
    this.#refuse(event.turn);
    this.#into(event, make("p", `end ${kind}`, inert(text)));
  }

  // The reply being written

  #begin(event) {
    this.#forget();
    const place = make("div", "live", make("p", "waiting", "The model is asked …"));
    this.#live = { place, text: "", reasoning: "", calls: [], any: false };
    this.#turn(event.turn).items.append(place);
  }

  #forget() {
    this.#live?.place.remove();
    this.#live = null;
  }

  #grow(event, change) {
    if (!this.#live) this.#begin(event); // the stream started in the middle of the reply
    this.#live.any = true;
    this.whole = false;
    change(this.#live);
    if (this.#paint) return;
    this.#paint = requestAnimationFrame(() => {
      this.#paint = 0;
      if (this.#live) this.#write(this.#live);
    });
  }

  #write({ place, text, reasoning, calls }) {
    place.replaceChildren();
    if (reasoning) place.append(make("div", "thought", make("strong", "", "Reasoning"), make("div", "said", inert(reasoning))));
    if (text) place.append(make("div", "said", inert(text)));
    for (const call of calls.filter(Boolean))
      place.append(make("p", "writing", make("code", "", inert(call.name)), " ", make("code", "", inert(call.arguments))));
    (place.lastElementChild ?? place).append(make("span", "caret"));
  }

  #replied(event) {
    const streamed = this.#live?.any ?? false;
    if (!streamed && this.#asked && performance.now() - this.#asked > LIVE) this.whole = true;
    this.#asked = 0;
    this.#forget();
    const { text, reasoning, calls, finish, usage } = event.reply;
    this.tokens += usage ? usage.prompt + usage.completion : 0;
    if (reasoning) {
      const thought = make("details", "thought", make("summary", "", "Reasoning"), block(reasoning));
      this.#into(event, thought);
    }
    if (text) this.#into(event, event.summary ? noted("summary", "Summary", text) : block(text, "said reply"));
    const turn = this.#turn(event.turn);
    turn.proposed = calls.map((call) => {
      const name = make("code", "name", inert(call.name));
      const place = make("article", "call proposed", make("header", "", name, make("span", "state", "checked …")));
      place.ariaLabel = `Proposed call ${name.textContent}`;
      place.append(argumentsOf(call.arguments));
      return { name: call.name, place: this.#into(event, place) };
    });
    const facts = [`${event.seconds.toFixed(1)} s`];
    if (usage) facts.push(`${usage.prompt.toLocaleString("en")} + ${count(usage.completion, "token")}`);
    if (usage?.cached) facts.push(`${usage.cached.toLocaleString("en")} of them cached`);
    if (event.attempts > 1) facts.push(`attempt ${event.attempts}`);
    if (finish === "length") facts.push("cut at its token limit");
    if (!event.summary) turn.title.querySelector("small").textContent = facts.join(" · ");
  }

  // Calls

  /** Mark the turn's remaining proposed calls as not accepted. */
  #refuse(number) {
    for (const { place } of this.#turns.get(number)?.proposed ?? []) {
      place.querySelector(".state").textContent = "not accepted";
    }
  }

  #accepted(event, call) {
    const card = this.#card(event, call);
    if (call.arguments !== card.json) this.#arguments(card, call.arguments);
    this.#state(card, "runs", "runs …");
  }

  /** The card of a call, which replaces its proposal. */
  #card(event, call) {
    const known = this.#calls.get(call.id);
    if (known) return known;
    const { effect = "", approval = false } = this.#tool(call.name) ?? {};
    const state = make("span", "state");
    const chips = make("span", "chips");
    const progress = make("p", "progress");
    const results = make("div", "results");
    const name = make("code", "name", inert(call.name));
    const place = make("article", `call ${effect}`, make("header", "", name, chips, state));
    place.ariaLabel = `Call ${name.textContent}`;
    const card = { place, state, chips, progress, results, json: call.arguments, given: argumentsOf(call.arguments) };
    place.append(card.given, progress, results);
    if (effect) this.#chip(card, effect === "terminal" ? "ends the run" : effect);
    if (approval) this.#chip(card, "needs approval");
    if (call.origin !== "native") this.#chip(card, `found in text: ${call.origin}`);
    if (call.repairs.length) this.#chip(card, `repaired: ${call.repairs.join(", ")}`);
    const turn = this.#turn(event.turn);
    const proposal = turn.proposed?.find((one) => one.name === call.name);
    if (proposal) {
      turn.proposed = turn.proposed.filter((one) => one !== proposal);
      proposal.place.replaceWith(place);
    } else this.#into(event, place);
    this.#calls.set(call.id, card);
    return card;
  }

  #chip(card, text) {
    card.chips.append(make("span", "chip", inert(text)));
  }

  #arguments(card, json) {
    const given = argumentsOf(json);
    card.given.replaceWith(given);
    Object.assign(card, { given, json });
  }

  #state(card, name, text) {
    card.state.className = `state ${name}`;
    card.state.textContent = text;
  }

  #returned(event, result) {
    const card = this.#calls.get(result.call_id);
    const label = RESULTS[result.type] ?? result.type;
    const text = result.text ?? result.message ?? result.reason ?? result.asks.question;
    if (!card) return void this.#into(event, noted("result", label, text));
    this.#state(card, result.type, label);
    card.progress.replaceChildren();
    card.results.append(block(text, "said result"));
  }
}
