// Asks the node: the stream of a query, read while it comes, and the small JSON answers beside it. The
// key and the tenant of this tab go with every request; nothing here draws.

const KEY = "tributary-key";
const TENANT = "tributary-tenant";

// In a store that ends with the tab: a key should not outlive whoever typed it.
export const identity = {
  get key() { return sessionStorage.getItem(KEY) ?? ""; },
  get tenant() { return sessionStorage.getItem(TENANT) ?? ""; },
  set(key, tenant) {
    for (const [name, value] of [[KEY, key], [TENANT, tenant]]) {
      if (value) sessionStorage.setItem(name, value);
      else sessionStorage.removeItem(name);
    }
  },
};

/** Why there is no answer; `status` is 0 where nobody was reached. */
export class Failed extends Error {
  constructor(message, status = 0, kind = "") {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

function headers() {
  const all = {};
  if (identity.key) all.Authorization = `Bearer ${identity.key}`;
  if (identity.tenant) all["X-Scope-OrgID"] = identity.tenant;
  return all;
}

async function send(path, options = {}) {
  let response;
  try {
    response = await fetch(path, { ...options, headers: { ...headers(), ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failed("this node can't be reached");
  }
  if (response.ok) return response;
  const text = await response.text();
  let told = {};
  try { told = JSON.parse(text); } catch { /* Whoever stands between may answer in other words. */ }
  throw new Failed(told.error ?? (text.trim() || response.statusText), response.status, told.errorType);
}

/** A JSON answer. */
export async function ask(path, options) {
  return (await send(path, options)).json();
}

/** Names or values of labels, as Prometheus' API tells them. */
export async function texts(path, options) {
  return (await ask(path, options)).data ?? [];
}

/** Where in a query an error is, if its message says so: line and column, both from one. */
export function placeOf(message) {
  const found = /(?:^|\s|")(\d+):(\d+): /.exec(message);
  return found ? { line: Number(found[1]), column: Number(found[2]) } : null;
}

/** The place of a character in a text, for a line and a column in bytes. */
export function offsetOf(text, { line, column }) {
  const lines = text.split("\n");
  let offset = 0;
  for (let passed = 0; passed < line - 1 && passed < lines.length; passed += 1) {
    offset += lines[passed].length + 1;
  }
  const encoder = new TextEncoder();
  let seen = 1;
  for (const char of lines[line - 1] ?? "") {
    if (seen >= column) break;
    seen += encoder.encode(char).length;
    offset += char.length;
  }
  return Math.min(offset, text.length);
}

/**
 * Runs a query and tells what happens as it does: `started(id)`, `result(data)`, `progress(data)`,
 * `waiting()`, `piece()` after each piece of the stream. Ends with the stream; throws `Failed`, or an
 * `AbortError` once the signal says so. Whoever aborts cancels the query's work on every worker.
 */
export async function run(query, signal, on) {
  const response = await send("api/v1/metrics/query", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(query),
    signal,
  });
  on.started(response.headers.get("x-query-id"));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let isDone = false;
  let failed = null;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    rest += value;
    let from = 0;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n", from)) {
      // Every frame is one line: `data: {"type": …, "data": …}`.
      const { type, data } = JSON.parse(rest.slice(from + 6, end));
      from = end + 2;
      if (type === "result") on.result(data);
      else if (type === "progress") on.progress(data);
      else if (type === "waiting_scale_up") on.waiting();
      else if (type === "heartbeat" && data.status === "waiting") on.waiting();
      else if (type === "error") failed = new Failed(data.message, response.status, data.code);
      else if (type === "done") isDone = true;
    }
    rest = rest.slice(from);
    on.piece();
  }
  if (failed) throw failed;
  if (!isDone) throw new Failed("the stream broke off before its end");
}
