"use strict";
// Everything that models and files said is set as text, never as HTML.
(() => {
  const by = (id) => document.getElementById(id);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const data = JSON.parse(by("data").textContent);
  const make = (tag, name, ...children) => {
    const made = document.createElement(tag);
    if (name) made.className = name;
    made.append(...children);
    return made;
  };
  const count = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

  // The filters of the heat map.
  const rows = all("#scenarios tr");
  const heads = all("#heat [data-col][data-model]");
  const kept = (head) => !by("by-ablation").value || head.dataset.ablation === by("by-ablation").value;
  const filter = () => {
    const tag = by("by-tag").value;
    const columns = new Set(heads.filter(kept).map((head) => head.dataset.col));
    for (const cell of all("#heat [data-col]")) cell.hidden = !columns.has(cell.dataset.col);
    for (const model of all("#heat .models th")) {
      const own = heads.filter((head) => head.dataset.model === model.dataset.model && columns.has(head.dataset.col));
      model.hidden = own.length === 0;
      model.colSpan = own.length || 1;
    }
    for (const row of rows) row.hidden = tag !== "" && !row.dataset.tags.split(" ").includes(tag);
    const shown = rows.filter((row) => !row.hidden).length;
    by("shown").value = `${shown} of ${count(rows.length, "scenario")}, ${columns.size} of ${count(heads.length, "configuration")}`;
  };
  for (const id of ["by-ablation", "by-tag"]) by(id).addEventListener("change", filter);

  // A cell opens its runs, a run its timeline.
  const timeline = (sections) => {
    const made = make("details", "", make("summary", "", "Timeline"));
    const fill = () => {
      for (const [title, note, items] of sections) {
        const list = make("dl", "");
        for (const [label, text] of items) list.append(make("dt", "", label), make("dd", "", text));
        made.append(make("section", "", make("h3", "", title, " ", make("small", "", note)), list));
      }
    };
    made.addEventListener("toggle", fill, { once: true });
    return made;
  };
  const run = (one) => {
    const facts = [
      `${count(one.calls, "model call")} (ideal ${one.ideal})`,
      one.retries && count(one.retries, "correction"),
      `${one.seconds} s`,
      one.tokens && count(one.tokens, "token"),
      `ended as ${one.end}`,
    ];
    const made = make(
      "article",
      "run",
      make("span", `verdict ${one.verdict}`, one.verdict),
      make("b", "", `seed ${one.seed}`),
      make("p", "", one.why),
      make("p", "facts", facts.filter(Boolean).join(" · ")),
    );
    const [journal] = one.journals;
    if (Object.hasOwn(data.timelines, journal)) made.append(timeline(data.timelines[journal]));
    else if (journal) made.append(make("p", "none", "Its timeline: ", make("code", "", `forge replay ${one.journals.join(" ")}`)));
    return made;
  };
  const most = 1000; // a page with more of them takes seconds to open a cell
  const open = (key) => {
    const runs = data.runs[key];
    const [column, scenario] = key.split(",");
    by("runs-title").textContent = `${data.scenarios[scenario]} · ${data.columns[column]}`;
    const more = runs.length - most;
    const rest = more > 0 ? [make("p", "none", `${count(more, "run")} more, which the file of results has.`)] : [];
    by("runs-list").replaceChildren(...runs.slice(0, most).map(run), ...rest);
    by("runs").showModal();
    by("runs").scrollTop = 0;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-runs]");
    if (button) open(button.dataset.runs);
    else if (event.target === by("runs")) by("runs").close();
  });

  for (const form of all("form.filters")) form.addEventListener("submit", (event) => event.preventDefault());

  by("plain").remove();
  filter();
})();
