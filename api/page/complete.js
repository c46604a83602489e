// Proposals while a query is typed: functions, metrics, labels, and their values. Asks the node once
// for a list and keeps it for a while; what fits where is guessed from the text before the caret.

import { make } from "./format.js";
import { texts } from "./stream.js";

const WORDS = [
  "abs", "absent", "absent_over_time", "avg", "avg_over_time", "bottomk", "ceil", "changes", "clamp",
  "clamp_max", "clamp_min", "count", "count_over_time", "count_values", "day_of_month", "day_of_week",
  "day_of_year", "days_in_month", "delta", "deriv", "exp", "floor", "group", "histogram_quantile",
  "hour", "idelta", "increase", "irate", "label_join", "label_replace", "last_over_time", "ln", "log10",
  "log2", "max", "max_over_time", "min", "min_over_time", "minute", "month", "predict_linear",
  "present_over_time", "quantile", "quantile_over_time", "rate", "resets", "round", "scalar", "sgn",
  "sort", "sort_desc", "sqrt", "stddev", "stddev_over_time", "stdvar", "stdvar_over_time", "sum",
  "sum_over_time", "time", "timestamp", "topk", "vector", "year",
];
const KEYWORDS = ["and", "bool", "by", "group_left", "group_right", "ignoring", "offset", "on", "or", "unless", "without"];

const FRESH_MS = 60_000;
const MOST = 12;

/** Lists by their path, each asked for once in a while. */
const known = new Map();

function listed(path) {
  const held = known.get(path);
  if (held && performance.now() - held.at < FRESH_MS) return held.list;
  // Without a list there are no proposals, and that is all that goes wrong.
  const list = texts(path).catch(() => []);
  known.set(path, { at: performance.now(), list });
  return list;
}

/** Forgets what another tenant was told. */
export function forget() {
  known.clear();
}

/** What is being typed: from where, how it begins, and what may stand there. */
function context(text, caret) {
  const before = text.slice(0, caret);
  const inQuotes = /([A-Za-z_]\w*)\s*(?:=~|!~|!=|=)\s*"([^"\\]*)$/.exec(before);
  const braces = before.lastIndexOf("{") > before.lastIndexOf("}");
  if (inQuotes && braces) {
    const typed = inQuotes[2];
    return { kind: "value", label: inQuotes[1], typed, from: caret - typed.length };
  }
  if ((before.match(/"/g)?.length ?? 0) % 2) return null;
  const typed = /[A-Za-z_:][\w:]*$/.exec(before)?.[0] ?? "";
  const from = caret - typed.length;
  const lead = before.slice(0, from);
  const grouping = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*$/.test(lead);
  if (braces || grouping) {
    const metric = /([A-Za-z_:][\w:]*)\s*\{[^{}]*$/.exec(lead)?.[1];
    return { kind: "label", metric, typed, from };
  }
  // A duration, or the end of a number: nothing to propose.
  if (/[\d.]$/.test(lead) || /\[[^\]]*$/.test(lead)) return null;
  return typed ? { kind: "word", typed, from } : null;
}

async function proposals(place) {
  if (place.kind === "value") {
    const all = await listed(`api/v1/label/${encodeURIComponent(place.label)}/values?limit=2000`);
    return all.map((text) => ({ text, kind: "value" }));
  }
  if (place.kind === "label") {
    const of = place.metric ? `&match[]=${encodeURIComponent(place.metric)}` : "";
    const all = await listed(`api/v1/labels?limit=2000${of}`);
    return all.filter((text) => text !== "__name__").map((text) => ({ text, kind: "label" }));
  }
  const metrics = await listed("api/v1/label/__name__/values?limit=20000");
  return [
    ...metrics.map((text) => ({ text, kind: "metric" })),
    ...WORDS.map((text) => ({ text, kind: "function", after: "(" })),
    ...KEYWORDS.map((text) => ({ text, kind: "keyword", after: " " })),
  ];
}

/** Those that fit, the best first: equal beginnings before words inside. */
function fitting(all, typed) {
  const wanted = typed.toLowerCase();
  const rank = ({ text }) => {
    const lower = text.toLowerCase();
    if (lower.startsWith(wanted)) return 0;
    return lower.includes(wanted) ? 1 : 2;
  };
  return all
    .map((one, index) => ({ one, index, rank: rank(one) }))
    .filter(({ one, rank: fits }) => fits < 2 && one.text !== typed)
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .slice(0, MOST)
    .map(({ one }) => one);
}

export class Completion {
  constructor(box, list) {
    this.box = box;
    this.list = list;
    this.found = [];
    this.chosen = -1;
    box.addEventListener("input", () => this.#look());
    box.addEventListener("keydown", (event) => this.#key(event));
    box.addEventListener("blur", () => this.close());
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("[role=option]");
      if (option) this.#take(Number(option.dataset.index));
    });
  }

  get isOpen() { return !this.list.hidden; }

  close() {
    this.list.hidden = true;
    this.chosen = -1;
    this.box.setAttribute("aria-expanded", "false");
    this.box.removeAttribute("aria-activedescendant");
  }

  async #look() {
    const { value, selectionStart } = this.box;
    const place = context(value, selectionStart);
    if (!place) return this.close();
    const all = await proposals(place);
    // Whoever typed on while the list came is asked about that.
    if (this.box.value !== value || document.activeElement !== this.box) return undefined;
    this.place = place;
    this.found = fitting(all, place.typed);
    if (!this.found.length) return this.close();
    this.chosen = -1;
    this.#show();
    return undefined;
  }

  #show() {
    this.list.replaceChildren(...this.found.map(({ text, kind }, index) => make("li", {
      role: "option", id: `proposal-${index}`, "data-index": index,
      "aria-selected": String(index === this.chosen),
    }, make("span", {}, text), make("small", {}, kind))));
    this.list.hidden = false;
    this.box.setAttribute("aria-expanded", "true");
    if (this.chosen >= 0) this.box.setAttribute("aria-activedescendant", `proposal-${this.chosen}`);
    else this.box.removeAttribute("aria-activedescendant");
  }

  #key(event) {
    if (!this.isOpen || event.ctrlKey || event.metaKey) return;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      this.chosen = (this.chosen + by + this.found.length) % this.found.length;
      if (by < 0 && this.chosen < 0) this.chosen = this.found.length - 1;
      this.#show();
    } else if (event.key === "Tab" || (event.key === "Enter" && this.chosen >= 0)) {
      this.#take(Math.max(0, this.chosen));
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  #take(index) {
    const { text, after = "" } = this.found[index];
    const { box, place } = this;
    const rest = box.value.slice(box.selectionStart);
    const added = rest.startsWith(after) ? "" : after;
    box.setRangeText(text + added, place.from, box.selectionStart, "end");
    this.close();
    box.dispatchEvent(new Event("change"));
  }
}
