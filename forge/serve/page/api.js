// Requests to the server, and the stream of a run's events.

const KEY = "forge-key";

export class Problem extends Error {
  constructor(status, { detail = "", field = "" }) {
    super(detail || `the server answered with status ${status}`);
    this.status = status;
    this.field = field;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

const reach = async (path, { headers = {}, ...options } = {}) => {
  const authorization = key.get() ? { authorization: `Bearer ${key.get()}` } : {};
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...authorization, ...headers }, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server cannot be reached." });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await answer.json().catch(() => ({})));
  if (answer.status === 401) window.dispatchEvent(new Event("unauthorized"));
  throw problem;
};

export const get = async (path) => (await reach(path)).json();

export const file = async (path) => (await reach(path)).blob();

export const remove = (path) => reach(path, { method: "DELETE" });

export const post = async (path, body, headers = {}) => {
  const json = body === undefined ? {} : { body: JSON.stringify(body) };
  const typed = body === undefined ? headers : { "content-type": "application/json", ...headers };
  return (await reach(path, { method: "POST", headers: typed, ...json })).json();
};

export const pathOf = (run) => `/v1/runs/${encodeURIComponent(run)}`;

// The server writes a comment every 15 seconds, so a stream that is silent for longer is dead.
const SILENCE = 40_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

const later = (id, than) => {
  const [effect, number] = id.split(".").map(Number);
  const [before, last] = than.split(".").map(Number);
  return effect > before || (effect === before && number > last);
};

const pause = (milliseconds, signal) =>
  new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      window.removeEventListener("online", end);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, milliseconds);
    window.addEventListener("online", end);
    signal.addEventListener("abort", end);
  });

/** Pass on each event of the run once and in order, reconnecting as needed, until the run has ended.
 *
 * Each has its `type`, `id` and `turn`, and `within` if it is of an inner agent; one of type `state` has the `run`.
 */
export const follow = async (run, heard, connected, signal) => {
  let last = "";
  let over = false;
  let wait = FIRST_WAIT;
  const each = (type, id, told) => {
    wait = FIRST_WAIT;
    if (id && last && !later(id, last)) return;
    if (id) last = id;
    if (type === "state") over = ["completed", "halted", "cancelled", "failed"].includes(told.state);
    const { event, turn = 0, explanation, title, details, parent } = told;
    try {
      heard(type === "state" ? { type, run: told } : { ...event, id, turn, explanation, title, details, within: parent ? told : null });
    } catch (error) {
      reportError(error); // a bug in the page, not a connection error
    }
  };
  while (!signal.aborted) {
    try {
      if ((await listen(run, last, each, connected, signal)) === 204 || over) return;
    } catch (error) {
      if (signal.aborted) return;
      const stays = error instanceof Problem && error.status !== 429 && error.status > 0 && error.status < 500;
      if (stays) throw error;
    }
    if (signal.aborted) return;
    connected(false);
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
};

const listen = async (run, last, each, connected, signal) => {
  const silent = new AbortController();
  let timer;
  const heardOf = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), SILENCE);
  };
  const stop = () => silent.abort();
  signal.addEventListener("abort", stop);
  heardOf();
  try {
    const headers = { accept: "text/event-stream", ...(last && { "last-event-id": last }) };
    const answer = await reach(`${pathOf(run)}/events`, { headers, signal: silent.signal });
    connected(true);
    if (answer.status === 204) return 204;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    let event = { data: [] };
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return answer.status;
      heardOf();
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.map((one) => one.replace(/\r$/, ""))) {
        const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
        if (field === "data") event.data.push(value);
        else if (field) event[field] = value;
        if (line === "" && event.data.length) each(event.event, event.id ?? "", JSON.parse(event.data.join("\n")));
        if (line === "") event = { data: [] };
      }
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
};
