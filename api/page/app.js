// The page put together: the query box runs queries, the chart and the legend show what comes of them,
// and the address carries the question, so that it can be sent to somebody.

import { Chart, inWords } from "./chart.js";
import { Completion, forget } from "./complete.js";
import { make, millis } from "./format.js";
import { Legend } from "./legend.js";
import { Monitor } from "./monitor.js";
import { Failed, identity, offsetOf, placeOf, run } from "./stream.js";

const $ = (id) => document.getElementById(id);
const [query, from, to, step, again] = ["query", "from", "to", "step", "again"].map($);

const chart = new Chart($("chart"), $("tip"), {
  zoomed: (begin, end) => {
    from.value = new Date(begin).toISOString();
    to.value = new Date(end).toISOString();
    start();
  },
  pointed: (series) => legend.mark(series),
});
const legend = new Legend($("legend"), $("legend-note"), chart);
const completion = new Completion(query, $("proposals"));
const monitor = new Monitor({
  away: $("away"),
  figures: Object.fromEntries(["workers", "queued", "running", "oldest"].map((name) => [name, $(`figure-${name}`)])),
  workers: $("workers"),
  queries: $("queries"),
  inquiries: $("inquiries"),
  waterfall: {
    section: $("waterfall"), table: $("waterfall-table"), text: $("waterfall-text"),
    about: $("waterfall-about"), id: $("waterfall-id"), error: $("waterfall-error"),
  },
});

/** The query under way, if any: what stops it. */
let running = null;
let repeat = null;

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000, y: 31_536_000_000 };

/** A duration such as 1h30m, in milliseconds; null where it is none. */
function durationOf(text) {
  const parts = [...text.matchAll(/(\d+)(ms|[smhdwy])/g)];
  if (!parts.length || parts.map((part) => part[0]).join("") !== text) return null;
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0);
}

/** An instant as the node reads it, in milliseconds; null where it is none. */
function instantOf(text, now) {
  const relative = /^now(?:([+-])(\w+))?$/.exec(text);
  if (relative) {
    const by = relative[2] ? durationOf(relative[2]) : 0;
    return by === null ? null : now + (relative[1] === "-" ? -by : by);
  }
  if (/^\d+$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}

/** The step that is used where none is chosen, as the node chooses it. */
function usualStep(range) {
  const hours = range / UNITS.h;
  if (range <= 65 * UNITS.m) return 10_000;
  if (hours <= 12) return UNITS.m;
  if (hours <= 24) return 5 * UNITS.m;
  return hours <= 72 ? 20 * UNITS.m : UNITS.h;
}

/** What is asked, with every time settled; null, and the reader told, where it makes no sense. */
function question() {
  const text = query.value.trim();
  if (!text) return fail(new Failed("a query is expected"), "");
  const now = Date.now();
  const [begin, end] = [instantOf(from.value.trim(), now), instantOf(to.value.trim(), now)];
  for (const [at, field, name] of [[begin, from, "start"], [end, to, "end"]]) {
    field.setAttribute("aria-invalid", String(at === null));
    if (at === null) return fail(new Failed(`the ${name} is no time: now-1h, 2026-01-31T12:00:00Z and milliseconds are`), "");
  }
  if (end < begin) return fail(new Failed("the end is before the start"), "");
  const width = step.value ? durationOf(step.value) : usualStep(end - begin);
  // Steps on round times: what is asked again falls on the same ones.
  const first = Math.floor(begin / width) * width;
  return { q: query.value, s: String(first), e: String(Math.max(first, end)), step: `${width}ms`, first, end, width };
}

function fail(error, text) {
  const box = $("error");
  const lines = [make("p", {}, error.message)];
  const place = text && placeOf(error.message);
  if (place) {
    // The place is told by lines and bytes; shown is the line with a mark under it.
    const offset = offsetOf(text, place);
    const line = text.split("\n")[place.line - 1] ?? "";
    const before = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
    lines.push(make("pre", { "aria-hidden": "true" }, `${line}\n${before.replace(/[^\t]/g, " ")}`, make("mark", {}, "^")));
    query.focus();
    query.setSelectionRange(offset, Math.min(offset + 1, text.length));
  }
  if (error.status === 401) {
    $("identity").open = true;
    $("key").focus();
  }
  query.setAttribute("aria-invalid", String(Boolean(text)));
  box.replaceChildren(...lines);
  box.hidden = false;
  return null;
}

function say(text, waiting = false) {
  $("status").textContent = text;
  $("status").classList.toggle("waiting", waiting);
}

async function start() {
  completion.close();
  clearTimeout(repeat);
  running?.abort();
  $("error").hidden = true;
  query.setAttribute("aria-invalid", "false");
  const asked = question();
  if (!asked) return;
  remember();
  const stop = new AbortController();
  running = stop;
  const progress = $("progress");
  const begun = performance.now();
  let [values, first, id] = [0, null, null];
  progress.classList.add("busy");
  progress.removeAttribute("value");
  $("cancel").disabled = false;
  say("Asked.");

  // The picture before stays until the first values are here, so that a repeated query does not flicker.
  let isFresh = false;
  const begin = () => {
    if (isFresh) return;
    isFresh = true;
    chart.clear(asked.first, asked.end, asked.width);
    legend.clear();
  };
  let planned = null;
  const refresh = () => {
    planned ??= setTimeout(() => { planned = null; legend.update(); }, 100);
  };
  try {
    const { q, s, e, step: width } = asked;
    await run({ q, s, e, step: width }, stop.signal, {
      started: (name) => { id = name; monitor.watch(id); },
      result: ({ tags, value, timestamp, label }) => {
        begin();
        first ??= performance.now() - begun;
        values += 1;
        chart.add(label, tags, timestamp, typeof value === "number" ? value : numberOf(value));
      },
      progress: ({ done, total }) => {
        progress.max = Math.max(1, total);
        progress.value = done;
        say(`${done} of ${total} work items, ${values.toLocaleString("en")} values`);
      },
      waiting: () => say("No worker is there. The query waits until one comes up.", true),
      piece: () => { if (isFresh) { chart.redraw(); refresh(); } },
    });
    begin();
    const took = millis(performance.now() - begun);
    const soon = first === null ? "" : `, the first after ${millis(first)}`;
    say(values ? `${chart.series.size} series, ${values.toLocaleString("en")} values in ${took}${soon}` : `No values between these times (${took})`);
  } catch (error) {
    if (error.name === "AbortError") {
      // One that was replaced has nothing more to say.
      if (running !== stop) return;
      say(`Cancelled after ${millis(performance.now() - begun)}; its work on the workers too.`);
    } else {
      say("");
      fail(error, asked.q);
    }
  } finally {
    clearTimeout(planned);
    if (running === stop) {
      running = null;
      $("cancel").disabled = true;
      progress.classList.remove("busy");
      legend.update();
      chart.redraw();
      $("chart").setAttribute("aria-label", inWords(chart));
      monitor.look();
      plan();
    }
  }
}

function numberOf(text) {
  return { "+Inf": Infinity, "-Inf": -Infinity }[text] ?? NaN;
}

/** Asks again after a while, where that is wanted and the page is seen. */
function plan() {
  clearTimeout(repeat);
  if (!again.value) return;
  repeat = setTimeout(() => (document.hidden ? plan() : start()), Number(again.value) * 1000);
}

/** Puts the question into the address. */
function remember() {
  const parts = new URLSearchParams({ q: query.value, s: from.value, e: to.value });
  if (step.value) parts.set("step", step.value);
  if (again.value) parts.set("again", again.value);
  const hash = `#${parts}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  document.title = `${query.value.trim().slice(0, 60)} · Tributary`;
  presets();
}

/** Takes the question from the address; whether there is one. */
function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.get("q")) return false;
  query.value = parts.get("q");
  from.value = parts.get("s") || "now-1h";
  to.value = parts.get("e") || "now";
  for (const [field, name] of [[step, "step"], [again, "again"]]) {
    const value = parts.get(name) ?? "";
    if (value && durationOf(name === "step" ? value : `${value}s`) !== null && ![...field.options].some((option) => option.value === value)) {
      field.append(make("option", { value }, value));
    }
    field.value = value;
  }
  presets();
  return true;
}

function presets() {
  for (const button of document.querySelectorAll("[data-range]")) {
    const isIt = to.value.trim() === "now" && from.value.trim() === `now-${button.dataset.range}`;
    button.setAttribute("aria-pressed", String(isIt));
  }
}

for (const button of document.querySelectorAll("[data-range]")) {
  button.addEventListener("click", () => {
    from.value = `now-${button.dataset.range}`;
    to.value = "now";
    presets();
    if (query.value.trim()) start();
  });
}
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
$("cancel").addEventListener("click", () => running?.abort());
query.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey) return;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    start();
  }
});
for (const field of [step, again]) field.addEventListener("change", () => { if (query.value.trim()) start(); });
for (const field of [from, to]) {
  field.addEventListener("change", presets);
}
addEventListener("popstate", () => { if (recall()) start(); });
$("identity-form").addEventListener("submit", (event) => {
  event.preventDefault();
  identity.set($("key").value.trim(), $("tenant").value.trim());
  $("identity").open = false;
  $("identity").classList.toggle("known", Boolean(identity.key || identity.tenant));
  forget();
  monitor.look();
  if (query.value.trim()) start();
});
$("key").value = identity.key;
$("tenant").value = identity.tenant;
$("identity").classList.toggle("known", Boolean(identity.key || identity.tenant));

presets();
if (recall()) start();
else query.focus();
