// Text of models, tools and people is shown inert: never as markup, isolated from the direction of the text around it,
// with invisible characters written out as code points.

// Joiners are part of some scripts and emoji; elsewhere they hide text.
const BESIDE = String.raw`(?:(?!\p{ASCII})[\p{L}\p{M}]|\p{Extended_Pictographic}|\p{Emoji_Modifier})`;
const UNSEEN = new RegExp(
  String.raw`(?!(?<=${BESIDE})[\u200c\u200d](?=${BESIDE}))(?![\n\t])` +
    String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u2800\u3164\uffa0\u{e0100}-\u{e01ef}]`,
  "gu",
);
const FOLDED = 1200;
const MOST = 200_000;

export const make = (tag, name, ...children) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...children);
  return made;
};

export const codePoint = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The code points of the invisible characters in the text. */
export const unseen = (text) => [...new Set(Array.from(text.matchAll(UNSEEN), ([found]) => codePoint(found)))];

/** The text as an element. */
export const inert = (text) => {
  const made = make("bdi");
  const clean = String(text).replaceAll("\r\n", "\n");
  let done = 0;
  for (const found of clean.matchAll(UNSEEN)) {
    const mark = make("span", "code-point", codePoint(found[0]));
    mark.title = "An invisible character";
    made.append(clean.slice(done, found.index), mark);
    done = found.index + found[0].length;
  }
  made.append(clean.slice(done));
  return made;
};

/** A block of text; a long one is folded, with a button to show all of it. */
export const block = (text, name = "said") => {
  const made = make("div", name);
  if (text.length <= FOLDED) {
    made.append(inert(text));
    return made;
  }
  const button = make("button", "quiet small", `Show all ${count(text.length, "character")}`);
  button.type = "button";
  button.addEventListener("click", () => {
    made.replaceChildren(inert(text.slice(0, MOST)));
    if (text.length > MOST) made.append(make("p", "dim", "The rest is in the journal."));
    made.tabIndex = -1;
    made.focus();
  });
  made.append(inert(text.slice(0, FOLDED / 2)), "… ", button);
  return made;
};

export const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

/** The members of a JSON object as [name, JSON text of the value], as they were written; null for anything else. */
export const members = (json) => {
  try {
    const value = JSON.parse(json);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  } catch {
    return null;
  }
  const found = [];
  let depth = 0;
  let begun = 0;
  let name = null;
  // Strings are skipped whole, so brackets and commas in them do not count; the text is known to be JSON.
  for (const token of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs)) {
    const [text] = token;
    if (text === "{" || text === "[") depth += 1;
    const closes = text === "}" || text === "]";
    if (closes) depth -= 1;
    if (depth === 1 && text === ":" && name === null) {
      name = JSON.parse(json.slice(begun, token.index).trim());
      begun = token.index + 1;
    } else if ((depth === 1 && text === ",") || (depth === 0 && closes)) {
      if (name !== null) found.push([name, json.slice(begun, token.index).trim()]);
      [name, begun] = [null, token.index + 1];
    } else if (depth === 1 && text === "{" && begun === 0) {
      begun = token.index + 1;
    }
  }
  return found;
};

/** Arguments as a list of names and values; as text if they are not an object. */
export const argumentsOf = (json) => {
  const parts = members(json);
  if (parts === null) return block(json, "said code");
  if (parts.length === 0) return make("p", "dim", "no arguments");
  const list = make("dl", "arguments");
  for (const [name, value] of parts) {
    const said = value.startsWith('"') ? JSON.parse(value) : value;
    list.append(make("dt", "", inert(name)), make("dd", "", block(said, value.startsWith('"') ? "said" : "said code")));
  }
  return list;
};

const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How long ago, or how far ahead. */
export const ago = (iso) => {
  const seconds = (Date.parse(iso) - Date.now()) / 1000;
  for (const [unit, size] of UNITS)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  return "just now";
};

const ABSOLUTE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A time as an element: relative, with the exact time on hover. */
export const timeOf = (iso, words = ago(iso)) => {
  const made = make("time", "", words);
  made.dateTime = iso;
  made.title = ABSOLUTE.format(new Date(iso));
  return made;
};

export const exactly = (iso) => ABSOLUTE.format(new Date(iso));
