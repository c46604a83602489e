// How numbers, times and sizes are written, and a short way to make elements. Knows nothing of queries.

/** Makes an element: `make("td", {class: "number"}, "5")`. Text is text, never markup. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes an element of SVG. */
export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const LARGE = ["", "k", "M", "G", "T", "P", "E"];
const SMALL = ["", "m", "µ", "n", "p"];

/** A value in few characters: 1.23k, 45.6m, 7.89e+30. */
export function short(value) {
  if (value === undefined || value === null) return "–";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "−Inf";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e21 || size < 1e-12) return value.toExponential(2).replace("-", "−");
  let power = size >= 1000 ? Math.floor(Math.log10(size) / 3) : 0;
  if (size < 0.01) power = -Math.ceil(-Math.log10(size) / 3);
  const scaled = value / 1000 ** power;
  const digits = Math.abs(scaled) >= 100 ? 1 : Math.abs(scaled) >= 10 ? 2 : 3;
  const text = String(Number(scaled.toFixed(digits)));
  return text.replace("-", "−") + (power >= 0 ? LARGE[power] : SMALL[-power]);
}

/** A value in full, as the node told it. */
export function exact(value) {
  if (value === Infinity) return "+Inf";
  return String(value);
}

/** A size in bytes. */
export function bytes(count) {
  if (count === undefined || count === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let power = 0;
  while (count >= 1024 && power + 1 < units.length) {
    count /= 1024;
    power += 1;
  }
  return `${power === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[power]}`;
}

/** A span of milliseconds: 4.2 ms, 1.35 s, 3 min. */
export function millis(span) {
  if (span === undefined || span === null) return "–";
  if (span < 10) return `${Number(span.toFixed(2))} ms`;
  if (span < 1000) return `${Math.round(span)} ms`;
  if (span < 60_000) return `${(span / 1000).toFixed(2)} s`;
  if (span < 5_400_000) return `${Math.round(span / 60_000)} min`;
  return `${(span / 3_600_000).toFixed(1)} h`;
}

const two = (number) => String(number).padStart(2, "0");

/** Year, month and day, where the reader is. */
export function day(ms) {
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** Hours, minutes and, where they say something, seconds. */
export function clock(ms, seconds = true) {
  const at = new Date(ms);
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return seconds ? `${minutes}:${two(at.getSeconds())}` : minutes;
}

/** A whole instant. */
export function instant(ms) {
  return `${day(ms)} ${clock(ms)}`;
}

/** A span of time between two instants, the day told once. */
export function span(from, to) {
  if (from === null && to === null) return "all time";
  const begin = from === null ? "…" : `${day(from).slice(5)} ${clock(from, false)}`;
  if (to === null) return `${begin} – …`;
  const sameDay = from !== null && day(from) === day(to - 1);
  return `${begin} – ${sameDay ? "" : `${day(to).slice(5)} `}${clock(to, false)}`;
}

/** Round numbers between two bounds: for the marks of an axis. */
export function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((times) => times * base).find((size) => size >= rough);
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high + step * 1e-9; mark += step) {
    marks.push(Math.abs(mark) < step * 1e-9 ? 0 : mark);
    if (marks.length > 50) break;
  }
  return marks;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
  1000, 2000, 5000, 10_000, 15_000, 30_000,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
];

/** Round instants between two others, in the reader's time, each with the text that belongs there. */
export function timeTicks(from, to, wanted) {
  const rough = (to - from) / Math.max(1, wanted);
  const step = TIME_STEPS.find((size) => size >= rough) ?? TIME_STEPS.at(-1);
  const away = new Date(from).getTimezoneOffset() * MINUTE;
  const marks = [];
  for (let at = Math.ceil((from - away) / step) * step + away; at <= to; at += step) {
    const midnight = clock(at) === "00:00:00";
    const text = step >= DAY || midnight ? day(at).slice(5) : clock(at, step < MINUTE);
    marks.push({ at, text });
  }
  return marks;
}
