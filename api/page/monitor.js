// Looks at the node every second while the page is seen: the queue's figures, the workers, the latest
// queries, and the waterfall of the one that is chosen.

import { bytes, clock, make, millis } from "./format.js";
import { ask } from "./stream.js";
import { inShort, show } from "./waterfall.js";

const EVERY_MS = 1000;

const STANDINGS = {
  connecting: "connecting", accepting: "ready", not_accepting: "full", draining: "leaving", lost: "lost",
};

export class Monitor {
  constructor(page) {
    this.page = page;
    this.chosen = null;
    this.follow = true;
    this.record = null;
    this.look();
    setInterval(() => { if (!document.hidden) this.look(); }, EVERY_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.look(); });
    page.inquiries.addEventListener("change", () => this.look());
  }

  /** Shows the waterfall of a query of this page. */
  watch(id) {
    if (!id) return;
    this.chosen = id;
    this.record = null;
    this.look();
  }

  /** Everything once more. Looks that would overlap are one. */
  look() {
    this.again = Boolean(this.looking);
    this.looking ??= this.#all().finally(() => {
      this.looking = null;
      if (this.again) this.look();
    });
    return this.looking;
  }

  async #all() {
    const told = await Promise.allSettled([
      ask("monitor/queue"), ask("monitor/workers"), ask("monitor/queries"),
    ]);
    const [queue, workers, queries] = told.map(({ value }) => value);
    this.page.away.hidden = Boolean(queue);
    if (queue) this.#queue(queue);
    this.#workers(workers?.workers ?? [], told[1].reason);
    this.#queries(queries?.recent ?? [], told[2].reason);
    await this.#waterfall();
  }

  #queue(queue) {
    const { figures } = this.page;
    figures.workers.textContent = queue.workers;
    figures.queued.textContent = queue.queued;
    figures.running.textContent = queue.running;
    figures.oldest.textContent = queue.queued ? millis(queue.oldest_age_s * 1000) : "–";
    figures.workers.closest("div").classList.toggle("warn", queue.workers === 0);
  }

  #workers(workers, reason) {
    const rows = workers.map((worker) => {
      const { status } = worker;
      const busy = status ? Math.min(1, status.running / Math.max(1, status.slots)) : 0;
      const meter = make("span", { class: "meter", "aria-hidden": "true" }, make("i"));
      meter.firstChild.style.width = `${busy * 100}%`;
      const slots = status ? `${status.running} / ${status.slots}` : "–";
      return make("tr", {},
        make("td", {}, make("b", {}, worker.worker_id ?? "–"), make("small", {}, worker.endpoint)),
        make("td", {}, make("span", { class: `standing ${worker.standing}` }, STANDINGS[worker.standing] ?? worker.standing)),
        make("td", { class: "number" }, meter, slots),
        make("td", { class: "number" }, status ? String(status.queued) : "–"),
        make("td", { class: "number" }, String(worker.items)),
        make("td", { class: "number" }, bytes(status?.cache_bytes)),
        make("td", { class: "number" }, bytes(status?.spool_bytes)),
        make("td", { class: "number" }, bytes(status?.free_bytes)));
    });
    if (!rows.length) rows.push(empty(8, reason?.message ?? "No worker is known. A query waits until there is one."));
    this.page.workers.tBodies[0].replaceChildren(...rows);
  }

  #queries(recent, reason) {
    const isQuery = ({ inquiry }) => !inquiry || this.page.inquiries.checked;
    const shown = recent.filter(isQuery);
    const rows = shown.map((query) => {
      const choose = make("button", { type: "button", class: "link", title: query.text }, query.text);
      choose.addEventListener("click", () => this.watch(query.query_id));
      const outcome = query.error ? make("span", { class: "outcome failed", title: query.error }, "failed")
        : make("span", { class: `outcome ${query.outcome}` }, query.outcome);
      return make("tr", { class: query.query_id === this.chosen ? "chosen" : null },
        make("td", {}, clock(query.begun_unix_ms)),
        make("td", { class: "text" }, choose),
        make("td", {}, outcome),
        make("td", { class: "number" }, `${query.done} / ${query.total}`),
        make("td", { class: "number" }, millis(query.ended_ms ?? Math.max(0, Date.now() - query.begun_unix_ms))));
    });
    if (!rows.length) rows.push(empty(5, reason?.message ?? "No query was asked here lately."));
    const focused = document.activeElement?.closest?.("#queries tr")?.rowIndex;
    this.page.queries.tBodies[0].replaceChildren(...rows);
    // Whoever goes through the list by keyboard keeps the place.
    if (focused) this.page.queries.rows[focused]?.querySelector("button")?.focus();
    this.chosen ??= shown[0]?.query_id ?? null;
  }

  async #waterfall() {
    const { waterfall } = this.page;
    const isOld = this.record?.query_id === this.chosen && this.record.ended_ms !== null;
    if (!this.chosen || isOld) return;
    const id = this.chosen;
    try {
      const record = await ask(`monitor/queries/${id}`);
      if (this.chosen !== id) return;
      this.record = record;
      waterfall.text.textContent = record.text;
      waterfall.about.textContent = inShort(record);
      waterfall.id.textContent = id;
      waterfall.error.textContent = record.error ?? "";
      waterfall.section.hidden = false;
      show(waterfall.table, record);
    } catch (error) {
      // A query that needed no work has none to show, and an old one is forgotten in time.
      if (error.status === 404) {
        this.record = null;
        waterfall.section.hidden = true;
      }
    }
  }
}

function empty(columns, text) {
  return make("tr", { class: "empty" }, make("td", { colspan: columns }, text));
}
