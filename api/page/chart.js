// The chart: lines over time on a canvas, drawn while their points come. Knows series, not queries. A
// drawing is made at most once a frame, and a line of more points than the screen has columns is drawn
// by the lowest and the highest of each column, so that no peak is lost.

import { clock, exact, instant, short, ticks, timeTicks, make } from "./format.js";

const MARGIN = { right: 10, top: 10, bottom: 26 };

// Ten that can be told apart in both themes; more come from turning the hue.
const COLOURS = [
  "#2f8fd0", "#e8833a", "#2fa36b", "#d6495b", "#8b6fd6",
  "#c79a1e", "#d864a9", "#1fa3a3", "#7d8b99", "#92a83c",
];

/** The colour of a series by its number. */
export function colourOf(number) {
  if (number < COLOURS.length) return COLOURS[number];
  return `hsl(${Math.round((number * 137.508) % 360)} 55% 52%)`;
}

export class Chart {
  /** `zoomed(from, to)` is told when the reader marks a span; `pointed(series)` what is pointed at. */
  constructor(canvas, tip, { zoomed, pointed }) {
    this.canvas = canvas;
    this.tip = tip;
    this.zoomed = zoomed;
    this.pointed = pointed;
    this.clear(0, 1, 1);
    this.hover = null;
    this.drag = null;
    new ResizeObserver(() => this.redraw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    canvas.addEventListener("pointermove", (event) => this.#moved(event));
    canvas.addEventListener("pointerleave", () => this.#left());
    canvas.addEventListener("pointerdown", (event) => this.#pressed(event));
    canvas.addEventListener("pointerup", (event) => this.#released(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Forgets all series; the axis is from `from` to `to`, with values at every `step`. */
  clear(from, to, step) {
    Object.assign(this, { from, to: Math.max(to, from + 1), step });
    this.series = new Map();
    this.bright = null;
    this.hover = null;
    this.tip.hidden = true;
    this.redraw();
  }

  /** Adds a value, which comes after all others of its series. */
  add(label, tags, at, value) {
    let series = this.series.get(label);
    if (!series) {
      const number = this.series.size;
      series = { label, tags, number, colour: colourOf(number), hidden: false, at: [], values: [] };
      Object.assign(series, { min: NaN, max: NaN, last: NaN, low: Infinity, high: -Infinity });
      this.series.set(label, series);
    }
    series.at.push(at);
    series.values.push(value);
    series.last = value;
    if (!(value >= series.min)) series.min = Number.isNaN(value) ? series.min : value;
    if (!(value <= series.max)) series.max = Number.isNaN(value) ? series.max : value;
    if (Number.isFinite(value)) {
      series.low = Math.min(series.low, value);
      series.high = Math.max(series.high, value);
    }
  }

  /** Draws anew before the next frame; where drawing takes long, a little later, so that there is
   * time for anything else. */
  redraw() {
    if (this.planned) return;
    this.planned = true;
    const plan = () => requestAnimationFrame((now) => {
      this.planned = false;
      this.#draw();
      this.took = performance.now() - now;
    });
    if (this.took > 30) setTimeout(plan, Math.min(500, this.took * 2));
    else plan();
  }

  /** Sets one series apart; null for none. */
  highlight(label) {
    if (this.bright === label) return;
    this.bright = label;
    this.redraw();
  }

  #bounds() {
    let [low, high] = [Infinity, -Infinity];
    for (const series of this.series.values()) {
      if (series.hidden) continue;
      low = Math.min(low, series.low);
      high = Math.max(high, series.high);
    }
    if (low > high) return [0, 1];
    if (low === high) {
      const room = Math.abs(low) || 1;
      return [Math.min(0, low), low > 0 ? low + room * 0.25 : low + room];
    }
    // A chart that shows how large a thing is begins at zero, unless all of it is far from there.
    if (low > 0 && low < high * 0.6) low = 0;
    if (high < 0 && high > low * 0.6) high = 0;
    const room = (high - low) * 0.06;
    return [low === 0 ? 0 : low - room, high === 0 ? 0 : high + room];
  }

  #draw() {
    const { canvas } = this;
    const scale = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = `11px ${style.fontFamily}`;
    const [low, high] = this.#bounds();
    const marks = ticks(low, high, height / 48);
    const widest = Math.max(...marks.map((mark) => pen.measureText(short(mark)).width));
    const box = {
      left: Math.ceil(widest) + 14, top: MARGIN.top,
      right: width - MARGIN.right, bottom: height - MARGIN.bottom,
    };
    const x = (at) => box.left + ((at - this.from) / (this.to - this.from)) * (box.right - box.left);
    const y = (value) => box.bottom - ((value - low) / (high - low)) * (box.bottom - box.top);
    this.view = { box, x, y };

    pen.lineWidth = 1;
    pen.strokeStyle = colour("--grid");
    pen.fillStyle = colour("--muted");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const mark of marks) {
      const line = Math.round(y(mark)) + 0.5;
      pen.beginPath();
      pen.moveTo(box.left, line);
      pen.lineTo(box.right, line);
      pen.stroke();
      if (this.series.size) pen.fillText(short(mark), box.left - 8, line);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    if (this.series.size || this.to - this.from > 1) {
      for (const { at, text } of timeTicks(this.from, this.to, width / 96)) {
        const line = Math.round(x(at)) + 0.5;
        pen.globalAlpha = 0.5;
        pen.beginPath();
        pen.moveTo(line, box.top);
        pen.lineTo(line, box.bottom + 4);
        pen.stroke();
        pen.globalAlpha = 1;
        pen.fillText(text, Math.min(Math.max(line, box.left), box.right - 12), box.bottom + 8);
      }
    }

    pen.save();
    pen.beginPath();
    pen.rect(box.left - 2, box.top - 6, box.right - box.left + 4, box.bottom - box.top + 12);
    pen.clip();
    const shown = [...this.series.values()].filter((series) => !series.hidden);
    // An area says how large a thing is, so it stands on zero or is not there.
    if (shown.length === 1 && low <= 0 && high >= 0) this.#area(pen, shown[0], x, y, 0);
    for (const series of shown) {
      const faded = this.bright !== null && this.bright !== series.label;
      pen.globalAlpha = faded ? 0.18 : 1;
      pen.lineWidth = this.bright === series.label ? 2.6 : shown.length > 40 ? 1.1 : 1.6;
      this.#line(pen, series, x, y);
    }
    pen.globalAlpha = 1;
    pen.restore();
    if (this.drag) {
      const [from, to] = [this.drag.from, this.drag.to].sort((a, b) => a - b);
      pen.fillStyle = colour("--accent");
      pen.globalAlpha = 0.16;
      pen.fillRect(from, box.top, to - from, box.bottom - box.top);
      pen.globalAlpha = 1;
    } else if (this.hover) {
      this.#cross(pen, shown, colour);
    }
  }

  /** Runs over the points of a series that are worth drawing. `null` is told where the line breaks. */
  #points(series, x, tell) {
    const { at, values } = series;
    const gap = this.step * 1.5;
    const columns = Math.abs(x(this.to) - x(this.from));
    if (values.length <= columns * 2) {
      let before = null;
      for (let index = 0; index < values.length; index += 1) {
        const value = values[index];
        if (!Number.isFinite(value) || (before !== null && at[index] - before > gap)) tell(null);
        if (Number.isFinite(value)) tell(at[index], value);
        before = at[index];
      }
      return;
    }
    let [column, low, high] = [null, null, null];
    const flush = () => {
      if (low === null) return;
      for (const index of low < high ? [low, high] : [high, low]) tell(at[index], values[index]);
      [low, high] = [null, null];
    };
    for (let index = 0; index < values.length; index += 1) {
      const value = values[index];
      const here = Math.round(x(at[index]));
      if (here !== column) { flush(); column = here; }
      if (!Number.isFinite(value)) { flush(); tell(null); continue; }
      if (index && at[index] - at[index - 1] > gap) { flush(); tell(null); }
      if (low === null || value < values[low]) low = index;
      if (high === null || value > values[high]) high = index;
    }
    flush();
  }

  #line(pen, series, x, y) {
    pen.strokeStyle = series.colour;
    pen.fillStyle = series.colour;
    pen.lineJoin = "round";
    pen.beginPath();
    let [isOpen, alone] = [false, null];
    const dots = [];
    this.#points(series, x, (at, value) => {
      if (at === null) {
        if (alone) dots.push(alone);
        [isOpen, alone] = [false, null];
        return;
      }
      const place = [x(at), y(value)];
      if (isOpen) { pen.lineTo(...place); alone = null; }
      else { pen.moveTo(...place); alone = place; }
      isOpen = true;
    });
    if (alone) dots.push(alone);
    pen.stroke();
    // A point without neighbours makes no line and should be seen all the same.
    for (const [left, top] of dots) {
      pen.beginPath();
      pen.arc(left, top, 2, 0, 2 * Math.PI);
      pen.fill();
    }
  }

  #area(pen, series, x, y, ground) {
    let run = [];
    const fill = () => {
      if (run.length > 1) {
        pen.beginPath();
        pen.moveTo(run[0][0], y(ground));
        for (const place of run) pen.lineTo(...place);
        pen.lineTo(run.at(-1)[0], y(ground));
        pen.fill();
      }
      run = [];
    };
    pen.fillStyle = series.colour;
    pen.globalAlpha = 0.12;
    this.#points(series, x, (at, value) => (at === null ? fill() : run.push([x(at), y(value)])));
    fill();
    pen.globalAlpha = 1;
  }

  #cross(pen, shown, colour) {
    const { box, x, y } = this.view;
    const line = Math.round(x(this.hover.at)) + 0.5;
    pen.strokeStyle = colour("--muted");
    pen.lineWidth = 1;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(line, box.top);
    pen.lineTo(line, box.bottom);
    pen.stroke();
    pen.setLineDash([]);
    for (const { series, value } of this.hover.values) {
      if (series.hidden || !Number.isFinite(value)) continue;
      pen.fillStyle = series.colour;
      pen.strokeStyle = colour("--card");
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.arc(line, y(value), this.bright === series.label ? 4.5 : 3, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }

  /** The values at an instant, those nearest to the pointer first. */
  #at(at, top) {
    const values = [];
    for (const series of this.series.values()) {
      if (series.hidden) continue;
      const index = nearest(series.at, at);
      if (index >= 0 && Math.abs(series.at[index] - at) <= this.step / 2) {
        values.push({ series, value: series.values[index] });
      }
    }
    const far = ({ value }) => (Number.isFinite(value) ? Math.abs(this.view.y(value) - top) : 1e9);
    values.sort((a, b) => far(a) - far(b));
    return { at, values };
  }

  #show(at, top) {
    this.hover = this.#at(at, top);
    const near = this.hover.values[0];
    this.highlight(this.hover.values.length > 1 && near ? near.series.label : null);
    this.pointed(near?.series ?? null);
    this.#tell();
    this.redraw();
  }

  #tell() {
    const { tip, hover, view } = this;
    const most = 10;
    const rows = hover.values.slice(0, most);
    rows.sort((a, b) => b.value - a.value);
    const list = rows.map(({ series, value }) => {
      const swatch = make("i", { class: "swatch" });
      swatch.style.background = series.colour;
      const name = make("span", { class: "name" }, series.label);
      return make("li", { class: this.bright === series.label ? "near" : null },
        swatch, name, make("b", { title: exact(value) }, short(value)));
    });
    const more = hover.values.length - rows.length;
    if (more > 0) list.push(make("li", { class: "more" }, `and ${more} more`));
    if (!rows.length) list.push(make("li", { class: "more" }, "no value here"));
    tip.replaceChildren(make("time", {}, instant(hover.at)), make("ul", {}, ...list));
    tip.hidden = false;
    const left = view.x(hover.at);
    const beside = left + tip.offsetWidth + 24 > this.canvas.clientWidth ? -tip.offsetWidth - 14 : 14;
    tip.style.transform = `translate(${Math.max(4, left + beside)}px, ${view.box.top + 4}px)`;
  }

  #place(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  #instantAt(left) {
    const { box } = this.view;
    const part = Math.min(1, Math.max(0, (left - box.left) / (box.right - box.left)));
    return this.from + part * (this.to - this.from);
  }

  /** The step next to an instant. */
  #onStep(at) {
    return this.from + Math.round((at - this.from) / this.step) * this.step;
  }

  #moved(event) {
    if (!this.view || !this.series.size) return;
    const [left, top] = this.#place(event);
    if (this.drag) {
      this.drag.to = Math.min(Math.max(left, this.view.box.left), this.view.box.right);
      this.tip.hidden = true;
      this.redraw();
    } else {
      this.#show(this.#onStep(this.#instantAt(left)), top);
    }
  }

  #left() {
    if (this.drag) return;
    this.hover = null;
    this.tip.hidden = true;
    this.highlight(null);
    this.pointed(null);
    this.redraw();
  }

  #pressed(event) {
    if (event.button !== 0 || !this.view || !this.series.size) return;
    const [left] = this.#place(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { from: left, to: left };
  }

  #released() {
    const { drag } = this;
    this.drag = null;
    if (drag && Math.abs(drag.to - drag.from) > 6) {
      const [from, to] = [drag.from, drag.to].sort((a, b) => a - b).map((at) => this.#instantAt(at));
      this.zoomed(Math.round(from), Math.round(to));
    }
    this.redraw();
  }

  /** Left and right read the chart out step by step. */
  #key(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.#left();
    if (!by || !this.series.size) return;
    event.preventDefault();
    const at = this.hover ? this.hover.at + by * this.step : by > 0 ? this.from : this.#onStep(this.to);
    this.#show(Math.min(Math.max(at, this.from), this.to), this.view.box.top);
  }
}

/** The index of the number next to `wanted` in a sorted list; −1 in an empty one. */
function nearest(sorted, wanted) {
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  if (low > 0 && wanted - sorted[low - 1] <= sorted[low] - wanted) low -= 1;
  return sorted.length ? low : -1;
}

/** What a chart shows, in words, for those who do not see it. */
export function inWords(chart) {
  const count = chart.series.size;
  if (!count) return "Chart without values";
  return `Chart of ${count} series from ${clock(chart.from)} to ${clock(chart.to)}; left and right read its values`;
}
