// The legend: every series with its lowest, highest and last value. A click shows one alone, with Ctrl
// or ⌘ it hides one; the chart is told.

import { exact, make, short } from "./format.js";

/** Rows that are made; more would only be slow. */
const MOST = 250;

export class Legend {
  constructor(table, note, chart) {
    this.body = table.tBodies[0];
    this.note = note;
    this.chart = chart;
    this.rows = new Map();
    this.key = null;
    this.down = false;
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => this.#sortBy(button));
    }
    this.body.addEventListener("pointerleave", () => chart.highlight(null));
  }

  /** Forgets all series. */
  clear() {
    this.rows.clear();
    this.body.replaceChildren();
    this.note.textContent = "";
  }

  /** Brings every row up to date. */
  update() {
    const all = [...this.chart.series.values()];
    for (const series of all) {
      let row = this.rows.get(series.label);
      if (!row) {
        if (this.rows.size >= MOST) break;
        row = this.#row(series);
        this.rows.set(series.label, row);
        this.body.append(row.element);
      }
      for (const name of ["min", "max", "last"]) {
        if (Object.is(row.told[name], series[name])) continue;
        row.told[name] = series[name];
        row.cells[name].textContent = short(series[name]);
        row.cells[name].title = exact(series[name]);
      }
      row.element.classList.toggle("hidden-series", series.hidden);
      row.button.setAttribute("aria-pressed", String(!series.hidden));
    }
    const more = all.length - this.rows.size;
    this.note.textContent = more > 0 ? `and ${more} more series, drawn and not listed` : "";
    if (this.key) this.#sort();
  }

  /** Marks the row of the series that is pointed at. */
  mark(series) {
    this.marked?.classList.remove("near");
    this.marked = series && this.rows.get(series.label)?.element;
    this.marked?.classList.add("near");
  }

  #row(series) {
    const swatch = make("i", { class: "swatch" });
    swatch.style.background = series.colour;
    const button = make("button", { type: "button", class: "series", title: "Show it alone; with Ctrl: hide it" },
      swatch, make("span", {}, series.label));
    button.addEventListener("click", (event) => this.#toggle(series, event.ctrlKey || event.metaKey));
    const cells = {};
    for (const name of ["min", "max", "last"]) cells[name] = make("td", { class: "number" });
    const element = make("tr", {}, make("td", {}, button), cells.min, cells.max, cells.last);
    element.addEventListener("pointerenter", () => this.chart.highlight(series.label));
    button.addEventListener("focus", () => this.chart.highlight(series.label));
    button.addEventListener("blur", () => this.chart.highlight(null));
    return { element, button, cells, told: {} };
  }

  #toggle(series, hide) {
    const all = [...this.chart.series.values()];
    if (hide) {
      series.hidden = !series.hidden;
    } else {
      const isAlone = !series.hidden && all.every((other) => other === series || other.hidden);
      for (const other of all) other.hidden = !isAlone && other !== series;
    }
    this.update();
    this.chart.redraw();
  }

  #sortBy(button) {
    const key = button.dataset.key;
    this.down = this.key === key ? !this.down : key !== "label";
    this.key = key;
    for (const other of button.closest("tr").querySelectorAll("th")) other.removeAttribute("aria-sort");
    button.closest("th").setAttribute("aria-sort", this.down ? "descending" : "ascending");
    this.#sort();
  }

  #sort() {
    const value = (series) => (Number.isNaN(series[this.key]) ? -Infinity : series[this.key]);
    const labels = [...this.rows.keys()];
    labels.sort((one, other) => {
      const [a, b] = [this.chart.series.get(one), this.chart.series.get(other)];
      const order = this.key === "label" ? one.localeCompare(other) : value(a) - value(b);
      return this.down ? -order : order;
    });
    this.body.append(...labels.map((label) => this.rows.get(label).element));
  }
}
