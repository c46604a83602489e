// Does with the page what a reader does, in Chromium, and looks at what it shows.
//
//   node page_check.js URL LONELY KEY BEGIN CHROMIUM [FOLDER]
//
// LONELY is a node without workers that wants the key.
const assert = require("node:assert/strict");
const path = require("node:path");
const { chromium } = require("playwright-core");

const [url, lonely, key, beginText, executablePath, shots] = process.argv.slice(2);
const begin = Number(beginText) * 1000;
const end = begin + 6 * 3600 * 1000;
const PATIENCE = 30_000;

function ok(what) {
  console.log(`ok  page: ${what}`);
}

/** What goes wrong on the page, in the browser's own words. */
function complaintsOf(page) {
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // That a request was refused is seen on the page, where that is looked at.
    const isRefusal = /status of (400|401|404)/.test(message.text());
    // And that pixels are read is this check's own doing.
    const isOurs = message.text().includes("willReadFrequently");
    if (["error", "warning"].includes(message.type()) && !isRefusal && !isOurs) complaints.push(message.text());
  });
  page.on("request", (request) => {
    if (![url, lonely].some((node) => request.url().startsWith(`${node}/`))) complaints.push(`asks elsewhere: ${request.url()}`);
  });
  return complaints;
}

async function ask(page, query) {
  await page.fill("#query", query);
  await page.press("#query", "Control+Enter");
}

async function answered(page, words) {
  await page.waitForFunction((wanted) => document.getElementById("status").textContent.includes(wanted), words, { timeout: PATIENCE });
}

async function legend(page) {
  return page.$$eval("#legend tbody tr", (rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
}

async function shot(page, name) {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: true });
}

async function main() {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, timezoneId: "UTC", colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const complaints = complaintsOf(page);
  const reply = await page.goto(`${url}/`);
  assert.equal(reply.status(), 200);
  await page.fill("#from", String(begin + 3600_000));
  await page.fill("#to", String(end));

  await page.click("#query");
  await page.keyboard.type("sum by (job) (rate(requ");
  await page.waitForSelector("#proposals [role=option]");
  await page.keyboard.press("Tab");
  assert.equal(await page.inputValue("#query"), "sum by (job) (rate(requests_total");
  await page.keyboard.type('{jo');
  await page.waitForSelector("#proposals [role=option]");
  assert.equal(await page.textContent("#proposals [role=option] span"), "job");
  await page.keyboard.press("Escape");
  ok("metrics and labels are proposed");

  await ask(page, "sum by (job) (rate(requests_total[5m]))");
  await answered(page, "5 series");
  const rows = await legend(page);
  assert.deepEqual(rows.map((row) => row[0]), ["cart", "checkout", "login", "search", "web"].map((job) => `{job="${job}"}`));
  rows.forEach(([, ...values], index) => {
    for (const value of values) assert.ok(Math.abs(Number(value) - 3 * (index + 1)) < 1e-3, `${value} in ${rows[index]}`);
  });
  ok("a query is answered, and the legend has its values");

  await ask(page, "load");
  await page.waitForFunction(() => document.querySelector("#legend .series span")?.textContent.startsWith("load"));
  await answered(page, "5 series");
  const painted = () => page.$eval("#chart", (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return ["47,143,208", "232,131,58", "47,163,107", "214,73,91", "139,111,214"].filter((colour) => colours.has(colour)).length;
  });
  await page.waitForTimeout(200);
  assert.equal(await painted(), 5, "five lines in five colours");
  await page.locator("#legend tbody button").first().click();
  await page.waitForTimeout(200);
  assert.equal(await painted(), 1, "one alone");
  await page.locator("#legend tbody button").first().click();
  ok("lines are drawn, and one can be shown alone");

  const chart = await page.locator("#chart").boundingBox();
  await page.mouse.move(chart.x + chart.width * 0.6, chart.y + chart.height * 0.4);
  await page.waitForSelector("#tip li b");
  assert.match(await page.textContent("#tip time"), /^2023-11-1\d \d\d:\d\d:00$/);
  assert.equal(await page.locator("#tip li").count(), 5);
  ok("the chart reads values out");

  await page.waitForSelector("#waterfall:not([hidden])");
  await page.waitForFunction(() => /complete after/.test(document.getElementById("waterfall-about").textContent));
  assert.equal(await page.textContent("#waterfall-text"), "load");
  const items = await page.locator("#waterfall-table tbody tr").count();
  assert.ok(items > 0);
  const about = await page.textContent("#waterfall-about");
  assert.ok(about.startsWith(`${items} of ${items} work items`), about);
  assert.equal(await page.locator("#waterfall-table tbody tr").first().locator(".part.running").count(), 1);
  assert.equal(await page.locator("#waterfall-table .part.delivered").count(), items);
  ok(`the waterfall has ${items} work items`);

  await page.waitForFunction(() => document.querySelectorAll("#workers .accepting").length === 3);
  assert.equal(await page.textContent("#figure-workers"), "3");
  assert.ok((await page.textContent("#queries tbody")).includes("sum by (job) (rate(requests_total[5m]))"));
  ok("three workers and the latest queries are listed");
  await page.mouse.move(chart.x + chart.width * 0.6, chart.y + chart.height * 0.4);
  await shot(page, "light");

  // The address carries the question.
  const link = page.url();
  assert.match(link, /#q=load&/);
  const other = await context.newPage();
  const otherComplaints = complaintsOf(other);
  await other.emulateMedia({ colorScheme: "dark" });
  await other.goto(link);
  await answered(other, "5 series");
  assert.equal(await other.inputValue("#query"), "load");
  await other.waitForSelector("#waterfall:not([hidden])");
  await other.waitForTimeout(1200);
  await shot(other, "dark");
  assert.deepEqual(otherComplaints, []);
  await other.close();
  ok("a link asks the same");

  await ask(page, "sum(\n  rate(load[5m]) +)");
  await page.waitForSelector("#error:not([hidden]) pre");
  const error = await page.textContent("#error p");
  assert.match(error, /2:19: parse error/);
  assert.equal(await page.textContent("#error pre"), `  rate(load[5m]) +)\n${" ".repeat(18)}^`);
  assert.equal(await page.$eval("#query", (box) => box.selectionStart), 23);
  await shot(page, "error");
  ok("an error is shown at its place");

  // Another node has no workers: a query waits there until it is cancelled, and its work with it.
  const waiting = await context.newPage();
  waiting.setDefaultTimeout(PATIENCE);
  const waitingComplaints = complaintsOf(waiting);
  await waiting.goto(`${lonely}/#q=load&s=${begin}&e=${end}`);
  await waiting.waitForSelector("#error:not([hidden])");
  assert.equal(await waiting.textContent("#error"), "an API key is required");
  // The queue is open, the rest is not.
  await waiting.waitForFunction(() => document.getElementById("figure-workers").textContent === "0");
  await waiting.waitForFunction(() => document.querySelector("#workers tbody").textContent.includes("an API key is required"));
  await waiting.fill("#key", key);
  await waiting.press("#key", "Enter");
  await answered(waiting, "No worker is there");
  await waiting.waitForFunction(() => Number(document.getElementById("figure-queued").textContent) > 0);
  await shot(waiting, "waiting");
  await waiting.click("#cancel");
  await answered(waiting, "Cancelled");
  await waiting.waitForFunction(() => document.getElementById("figure-queued").textContent === "0");
  await waiting.waitForSelector("#queries .outcome.cancelled");
  assert.ok(await waiting.isDisabled("#cancel"));
  assert.equal(await waiting.evaluate(() => localStorage.length), 0, "the key is kept for the tab alone");
  assert.deepEqual(waitingComplaints, []);
  await waiting.close();
  ok("a key is asked for; a query waits for workers, and is cancelled");

  await ask(page, "sum(rate(requests_total[5m])) / count(load) + scalar(max(load))");
  await answered(page, "1 series");
  await page.waitForFunction(() => document.querySelectorAll("#waterfall-table tbody tr").length > 2
    && /complete after/.test(document.getElementById("waterfall-about").textContent));
  assert.ok(await page.isHidden("#error"), "the error is gone with the query that had it");
  await shot(page, "leaves");
  ok("a query of several leaves is answered");

  // A narrow window, as on a telephone.
  await page.setViewportSize({ width: 400, height: 800 });
  await page.waitForTimeout(300);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 400, `${wide} wide`);
  await shot(page, "narrow");
  ok("it fits on a telephone");

  assert.deepEqual(complaints, []);
  ok("nothing was complained about, and nobody else was asked");
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
