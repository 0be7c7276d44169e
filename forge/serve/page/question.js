// The question of a waiting run as a form: approve a call (with its arguments, or changed ones), reject it, settle an
// unknown outcome, or answer in words.

import { argumentsOf, exactly, inert, make, members, timeOf, unseen } from "./text.js";

let made = 0;

const field = (label, control, hint = "") => {
  made += 1;
  control.id = `answer-${made}`;
  const name = make("label", "", inert(label));
  name.htmlFor = control.id;
  const place = make("p", "field", name, control);
  if (hint) {
    const note = make("small", "", inert(hint));
    note.id = `${control.id}-hint`;
    control.setAttribute("aria-describedby", note.id);
    place.append(note);
  }
  return place;
};

const area = (value, name = "") => {
  const control = make("textarea", name);
  control.value = value;
  control.spellcheck = false;
  control.rows = Math.min(12, Math.max(1, value.split("\n").length, Math.ceil(value.length / 70)));
  return control;
};

const button = (label, name, act) => {
  const one = make("button", name, label);
  one.type = "button";
  one.addEventListener("click", act);
  return one;
};

/** Fields for the arguments, and `read()`, which returns their JSON text or throws an explanation. */
const editor = (json, parameters, changed) => {
  const parts = members(json);
  const place = make("div", "editor");
  const known = parameters?.properties ?? {};
  const twice = parts && new Set(parts.map(([name]) => name)).size < parts.length;
  const asJson = parts === null || twice;
  const controls = (asJson ? [["Arguments, as JSON", json]] : parts).map(([name, value]) => {
    const isText = !asJson && value.startsWith('"');
    const control = area(isText ? JSON.parse(value) : value, isText ? "" : "code");
    const before = control.value;
    const about = asJson ? {} : (known[name] ?? {});
    const kind = asJson || isText ? "" : ((Array.isArray(about.type) ? about.type.join(" or ") : about.type) ?? "JSON");
    const warning = make("small", "hidden-text");
    const row = field(name, control, [about.description, kind].filter(Boolean).join(" · "));
    const look = () => {
      const found = unseen(control.value);
      warning.replaceChildren();
      if (found.length) warning.append(`Contains invisible characters (${found.join(", ")}): `, inert(control.value));
    };
    control.addEventListener("input", () => {
      control.removeAttribute("aria-invalid");
      look();
      changed();
    });
    row.append(warning);
    place.append(row);
    return { name, value, isText, control, before, look };
  });
  if (!controls.length) place.append(make("p", "dim", "No arguments."));
  const edited = () => controls.some(({ control, before }) => control.value !== before);
  const read = () => {
    const parsed = ({ name, control }) => {
      try {
        return JSON.parse(control.value);
      } catch (error) {
        control.setAttribute("aria-invalid", "true");
        control.focus();
        throw new Error(`${name}: not valid JSON (${error.message}).`, { cause: error });
      }
    };
    if (asJson) {
      parsed(controls[0]);
      return controls[0].control.value;
    }
    // The fields' own text, so that JavaScript rounds no number.
    const written = controls.map((one) => {
      if (one.control.value === one.before) return one.value;
      if (one.isText) return JSON.stringify(one.control.value);
      parsed(one);
      return one.control.value;
    });
    return `{${controls.map(({ name }, at) => `${JSON.stringify(name)}:${written[at]}`).join(",")}}`;
  };
  for (const { look } of controls) look();
  return { place, edited, read };
};

const panel = (title, ...children) => {
  const heading = make("h2", "", title);
  heading.tabIndex = -1;
  heading.id = "question-title";
  const place = make("section", "question", heading, ...children);
  place.setAttribute("aria-labelledby", heading.id);
  return place;
};

const problemLine = () => {
  const line = make("p", "problem");
  line.setAttribute("role", "alert");
  line.hidden = true;
  return line;
};

/** Answers are sent one at a time; errors are shown beside the button. */
const sender = (place, problem, send) => async (compose) => {
  const buttons = [...place.querySelectorAll("button")];
  problem.hidden = true;
  for (const one of buttons) one.disabled = true;
  try {
    await send(compose());
  } catch (error) {
    problem.hidden = false;
    problem.replaceChildren(inert(error.message));
  } finally {
    for (const one of buttons) one.disabled = false;
  }
};

const until = (question) =>
  question.until ? [make("p", "dim", "Open until ", timeOf(question.until, exactly(question.until)), ".")] : [];

/** May this call run? */
export const approval = (question, tool, send) => {
  const { call, digest } = question;
  const problem = problemLine();
  const approve = button("Approve", "primary", () =>
    answer(() => (fields.edited() ? { type: "edit", digest, arguments: fields.read() } : { type: "approve", digest })),
  );
  const fields = editor(call.arguments, tool?.parameters, () => {
    approve.textContent = fields.edited() ? "Approve with these changes" : "Approve";
  });
  const reason = area("");
  const reject = button("Reject", "danger", () => answer(() => ({ type: "reject", digest, reason: reason.value })));
  const rejecting = make("div", "reject", field("Reason, told to the model", reason), make("p", "row", reject));
  const form = make("div", "answer", fields.place, make("p", "row", approve), rejecting);
  const place = panel("A call waits for approval", make("p", "what", make("code", "name", inert(call.name)), " ", tool ? inert(tool.description) : ""));
  if (question.problem) place.append(make("p", "problem", "The previous arguments were refused: ", inert(question.problem)));
  place.append(form, problem, ...until(question));
  const answer = sender(place, problem, send);
  return place;
};

/** Did the call with the unknown outcome take effect? */
export const settling = (question, send) => {
  const { in_doubt: unsure, call, digest } = question;
  const problem = problemLine();
  const result = area("");
  const row = make(
    "p",
    "row",
    button("It took effect", "primary", () => answer(() => ({ type: "settle", digest, happened: true, result: result.value }))),
    button("It did not take effect", "", () => answer(() => ({ type: "settle", digest, happened: false }))),
    button("Reject the call", "danger", () => answer(() => ({ type: "reject", digest, reason: "" }))),
  );
  const place = panel(
    "Did this call take effect?",
    make("p", "", inert(`Its outcome is unknown${unsure.why ? `: ${unsure.why}` : ""}. Check where it would have acted, then answer.`)),
    make("article", "call in-doubt", make("header", "", make("code", "name", inert(unsure.name))), argumentsOf(unsure.arguments)),
    ...(call.arguments === unsure.arguments
      ? []
      : [make("p", "", "If not, the model wants to make this call now:"), argumentsOf(call.arguments)]),
    field("Its result, if it took effect and you know it", result),
    row,
    problem,
    ...until(question),
  );
  const answer = sender(place, problem, send);
  return place;
};

/** The question that a run ended with. */
export const asking = (outcome, send) => {
  const problem = problemLine();
  const text = area("");
  const suggestions = make("p", "row suggestions");
  for (const one of outcome.suggestions)
    suggestions.append(
      button("", "chip-button", () => {
        text.value = one;
        text.focus();
      }),
    );
  [...suggestions.children].forEach((one, at) => one.append(inert(outcome.suggestions[at])));
  const given = button("Answer", "primary", () =>
    answer(() => {
      if (!text.value.trim()) throw new Error("Write an answer first.");
      return { type: "input", text: text.value };
    }),
  );
  const asked = make("div", "asked", inert(outcome.question));
  const place = panel("The run asks", asked, field("Your answer", text), suggestions, make("p", "row", given), problem);
  const answer = sender(place, problem, send);
  return place;
};
