// The waterfall of a query's work: one row for each work item, with what happened to it when. Draws
// what `/monitor/queries/{query_id}` tells, and nothing else.

import { bytes, draw, make, millis, span, ticks } from "./format.js";

const WIDTH = 1000;

const ENDS = {
  fetched: "fetched", rejected: "not taken", failed: "failed", worker_lost: "worker lost",
  artifact_lost: "artifact lost", fetch_failed: "fetch failed", mismatch: "wrong artifact",
  superseded: "another was faster", drained: "worker was leaving", cancelled: "cancelled",
};

/** The stretches of an attempt: from, to, which kind. */
function stretches(attempt, now) {
  const end = attempt.ended_ms ?? now;
  const marks = [
    ["handed", attempt.assigned_ms],
    ["running", attempt.started_ms],
    ["ready", attempt.ready_ms],
    ["fetching", attempt.fetching_ms],
  ].filter(([, at]) => at !== null);
  return marks.map(([kind, from], index) => [kind, from, marks[index + 1]?.[1] ?? end]);
}

/** Attempts side by side, where one began before another was over; otherwise all on one line. */
function lanes(attempts, now) {
  const overlap = attempts.some((attempt, index) => index && attempt.assigned_ms < (attempts[index - 1].ended_ms ?? now));
  return overlap ? attempts.map((attempt) => [attempt]) : [attempts];
}

function bar(item, now, x) {
  const picture = draw("svg", { viewBox: `0 0 ${WIDTH} 16`, preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" });
  let [top, high] = [2, 12];
  const stretch = (kind, from, to) => {
    const width = Math.max(1.5, x(to) - x(from));
    const thin = kind === "waiting";
    picture.append(draw("rect", { class: `part ${kind}`, x: x(from), y: thin ? top + high / 2 - 1.5 : top, width, height: thin ? 3 : high }));
  };
  // The end of the attempt that counts.
  let free = 0;
  const rows = lanes(item.attempts, now);
  rows.forEach((attempts, lane) => {
    [top, high] = [2 + (12 / rows.length) * lane, 12 / rows.length - (rows.length > 1 ? 1 : 0)];
    let begun = lane ? null : 0;
    for (const attempt of attempts) {
      if (begun !== null && attempt.assigned_ms > begun) stretch("waiting", begun, attempt.assigned_ms);
      for (const [kind, from, to] of stretches(attempt, now)) stretch(kind, from, to);
      if (attempt.end && attempt.end !== "fetched") {
        picture.append(draw("rect", { class: `part broken ${attempt.end}`, x: x(attempt.ended_ms) - 2, y: top - 1, width: 4, height: high + 2 }));
      }
      begun = attempt.ended_ms ?? now;
      if (attempt.end === "fetched" || !free) free = begun;
    }
  });
  [top, high] = [2, 12];
  if (!item.attempts.length) stretch("waiting", 0, now);
  if (item.delivered_ms !== null) {
    if (item.delivered_ms > free) stretch("held", free, item.delivered_ms);
    picture.append(draw("rect", { class: "part delivered", x: Math.min(x(item.delivered_ms), WIDTH - 2), y: 0, width: 2, height: 16 }));
  }
  return picture;
}

function story(item) {
  const lines = item.attempts.map((attempt) => {
    const parts = [`attempt ${attempt.attempt} on ${attempt.worker}: assigned at ${millis(attempt.assigned_ms)}`];
    if (attempt.started_ms !== null) parts.push(`started at ${millis(attempt.started_ms)}`);
    if (attempt.ready_ms !== null) parts.push(`ready at ${millis(attempt.ready_ms)}`);
    if (attempt.end) parts.push(`${ENDS[attempt.end]} at ${millis(attempt.ended_ms)}`);
    if (attempt.rows !== null) parts.push(`${attempt.rows} rows in ${bytes(attempt.size_bytes)}`);
    return parts.join(", ");
  });
  if (item.delivered_ms !== null) lines.push(`merged from ${millis(item.delivered_ms)} on`);
  return lines.join("\n") || "waits for a worker";
}

/** The attempt that counts: the one that was fetched, or the last. */
function telling(item) {
  return item.attempts.find((attempt) => attempt.end === "fetched") ?? item.attempts.at(-1);
}

function took(item) {
  const last = telling(item);
  if (!last) return "waits";
  if (!last.end) return last.ready_ms !== null ? "fetching" : last.started_ms !== null ? "running" : "handed out";
  if (last.end !== "fetched") return ENDS[last.end];
  return millis(last.ended_ms - item.attempts[0].assigned_ms);
}

/** Draws a record into a table whose last column has the bars. */
export function show(table, record) {
  const elapsed = Date.now() - record.begun_unix_ms;
  const happened = record.items.flatMap((item) => [
    item.delivered_ms, ...item.attempts.flatMap((attempt) => [attempt.assigned_ms, attempt.ready_ms, attempt.ended_ms]),
  ]);
  const latest = Math.max(0.001, ...happened.filter((at) => at !== null));
  const now = record.ended_ms ?? Math.max(latest, elapsed);
  const end = Math.max(latest, record.ended_ms ?? now);
  const x = (at) => (at / end) * WIDTH;

  const axis = make("div", { class: "axis", "aria-hidden": "true" });
  for (const mark of ticks(0, end, 5)) {
    if (mark > end * 0.94) continue;
    const text = make("span", {}, millis(mark));
    text.style.left = `${(mark / end) * 100}%`;
    axis.append(text);
  }
  table.tHead.rows[0].cells[5].replaceChildren(axis);

  table.tBodies[0].replaceChildren(...record.items.map((item) => {
    const worker = telling(item)?.worker ?? "–";
    const leaf = record.leaves[item.leaf] ?? "";
    const bars = make("td", { class: "bars", title: story(item) }, bar(item, now, x));
    return make("tr", { class: item.tries > 1 ? "retried" : null },
      make("td", { class: "number" }, String(item.item)),
      make("td", { class: "leaf", title: `leaf ${item.leaf}: ${leaf}` }, leaf || `leaf ${item.leaf}`),
      make("td", { class: "span" }, span(item.from_ms, item.to_ms)),
      make("td", {}, item.tries > 1 ? `${worker} (${item.tries} tries)` : worker),
      make("td", { class: "number" }, took(item)),
      bars);
  }));
}

/** A record in one line. */
export function inShort(record) {
  const items = record.items.length;
  const words = [`${record.done} of ${record.total} work items`];
  const workers = new Set(record.items.flatMap((item) => item.attempts.map((attempt) => attempt.worker)));
  if (workers.size) words.push(`${workers.size} ${workers.size === 1 ? "worker" : "workers"}`);
  const again = record.items.reduce((sum, item) => sum + Math.max(0, item.tries - 1), 0);
  if (again) words.push(`${again} tried again`);
  const size = record.items.flatMap((item) => item.attempts).reduce((sum, attempt) => sum + (attempt.end === "fetched" ? attempt.size_bytes ?? 0 : 0), 0);
  if (size) words.push(`${bytes(size)} fetched`);
  if (record.waited_for_workers) words.push("waited for workers");
  if (record.total > items) words.push(`the first ${items} shown`);
  words.push(record.ended_ms === null ? "running" : `${record.outcome} after ${millis(record.ended_ms)}`);
  return words.join(" · ");
}
