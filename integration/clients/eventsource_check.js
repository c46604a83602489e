// Asks by way of a plain EventSource, which knows nothing but the standard.
//
//   node eventsource_check.js URL BEGIN
const { EventSource } = require("eventsource");

const [url, begin] = [process.argv[2], Number(process.argv[3])];
const end = begin + 3600;
const query = new URLSearchParams({
  q: "sum by (host) (irate(hits_total[5m]))",
  s: String((end - 600) * 1000),
  e: String(end * 1000),
  step: "60s",
  summary: "true",
});

function fail(why) {
  console.error(`eventsource: ${why}`);
  process.exit(1);
}

setTimeout(() => fail("no end came"), 30_000);
const source = new EventSource(`${url}/api/v1/metrics/query?${query}`);
const values = new Map();
let last = 0;
let summaries = 0;
source.onerror = () => fail("the stream broke");
source.onmessage = (message) => {
  const { type, data } = JSON.parse(message.data);
  if (type === "error") fail(`${data.code}: ${data.message}`);
  if (type === "summary") summaries += 1;
  if (type === "result") {
    if (data.timestamp < last) fail("a result is not in time order");
    last = data.timestamp;
    const host = data.tags.host;
    values.set(host, [...(values.get(host) ?? []), data.value]);
  }
  if (type === "done") {
    // Without this it would ask again, as the standard wants.
    source.close();
    const found = JSON.stringify([...values.entries()].sort());
    const wanted = JSON.stringify([["a", Array(11).fill(1)], ["b", Array(11).fill(2)]]);
    if (data.status !== "ok" || found !== wanted) fail(`${data.status} ${found} instead of ${wanted}`);
    if (summaries !== 2) fail(`${summaries} summaries instead of 2`);
    console.log("ok  EventSource: results in time order, summaries, done");
    process.exit(0);
  }
};
