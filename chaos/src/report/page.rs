//! The page for a person who has to decide whether to trust us: the verdict first, then what was done,
//! what came of it, and how to do it again. One file, nothing to load.

use std::fmt::Write as _;

use super::figures::messages;
use super::{Report, Times, chart};
use crate::verdict::Promise;

const STYLE: &str = "\
:root{--ink:#1c1e21;--dim:#667;--paper:#fff;--line:#dde;--good:#1a7f37;--bad:#c1121f;--one:#1f5fa8;\
--two:#8ab4e8;--fault:#d9822b}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--dim:#99a;--paper:#15171a;--line:#333842;\
--good:#4ac26b;--bad:#ff6b6b;--one:#7fb2f0;--two:#3b5f8a;--fault:#e0a458}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:2rem auto;\
max-width:1060px;padding:0 1rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\
.verdict{font-size:1.15rem;padding:.8rem 1rem;border-left:6px solid;margin:1rem 0}\
.good{border-color:var(--good)}.bad{border-color:var(--bad)}.good b{color:var(--good)}\
.bad b{color:var(--bad)}table{border-collapse:collapse;width:100%;font-size:14px}\
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line)}\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.dim{color:var(--dim)}\
code,pre{font:13px/1.4 ui-monospace,monospace}pre{overflow-x:auto;padding:.6rem;\
border:1px solid var(--line)}svg{width:100%;height:auto}.axis{font-size:11px;fill:var(--dim)}\
.grid{stroke:var(--line)}.shade{fill:var(--fault);opacity:.10}.fault{fill:var(--fault)}\
.healing{fill:var(--fault);opacity:.35}.median,.longest{fill:none;stroke-width:1.4}\
.median{stroke:var(--one)}.longest{stroke:var(--two)}.error{fill:none;stroke:var(--fault)}\
.wrong{fill:var(--bad)}.bar{fill:var(--one)}.wide{overflow-x:auto}";

/// Classes of the histograms, in milliseconds.
const CLASSES: [u64; 9] = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/// Writes it.
pub(super) fn of(report: &Report) -> String {
    let mut out = String::from("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width\">");
    let _ = write!(
        out,
        "<title>Chaos, seed {}</title><style>{STYLE}</style></head><body>",
        report.seed
    );
    head(&mut out, report);
    promises(&mut out, report);
    violations(&mut out, report);
    out.push_str("<h2>Queries and faults over time</h2>");
    out.push_str(
        "<p class=\"dim\">Above: how long queries took, the median of each moment dark, the longest \
         light; circles are queries that ended with an error, full red ones broke a promise. Below: \
         what was done to the cluster, and paler until everything was in its place again.</p>",
    );
    out.push_str(&chart::of(report));
    by_kind(&mut out, report);
    times(&mut out, report);
    errors(&mut out, report);
    footprints(&mut out, report);
    again(&mut out, report);
    out.push_str("</body></html>\n");
    out
}

fn head(out: &mut String, report: &Report) {
    let (class, word) = if report.is_good() {
        ("good", "Every promise was kept.")
    } else {
        ("bad", "Promises were broken.")
    };
    let [right, wrong, errors, left, hung] = report.counts();
    let (queries, faults) = (report.asked.len(), report.faults.len());
    let kinds = report.by_kind().iter().filter(|row| row.count > 0).count();
    let _ = write!(
        out,
        "<h1>Tributary under chaos</h1><p class=\"verdict {class}\"><b>{word}</b> In {} minutes {faults} \
         faults of {kinds} kinds were done to a cluster of real processes while {} clients asked {queries} \
         queries. {wrong} answers were wrong, {hung} queries hung, {right} were answered byte for \
         byte as without any fault, {errors} ended with an error, {left} were left by their clients \
         in the middle.</p>",
        (report.ran.as_secs_f64() / 6.0).round() / 10.0,
        report.clients,
    );
    let without: Vec<String> = report
        .machine
        .without
        .iter()
        .map(|(kind, why)| format!("{} ({why})", kind.name()))
        .collect();
    let without = if without.is_empty() {
        "Every kind of fault could be done here.".to_owned()
    } else {
        format!("Not done on this machine: {}.", without.join(", "))
    };
    let _ = write!(
        out,
        "<p>{} API node{}, three workers with two slots each (five at times), {} cores for everything. \
         The store is {}. Links fall ill by {}. {without}</p>",
        report.apis,
        if report.apis == 1 { "" } else { "s" },
        report.machine.cores,
        escape(&report.machine.store),
        escape(&report.machine.links)
    );
}

fn promises(out: &mut String, report: &Report) {
    out.push_str("<h2>What is promised</h2><table><tr><th>promise<th class=n>violations</tr>");
    for promise in Promise::ALL {
        let _ =
            write!(out, "<tr><td>{}<td class=n>{}</tr>", promise.words(), report.broken(promise));
    }
    out.push_str("</table>");
}

fn violations(out: &mut String, report: &Report) {
    if report.violations.is_empty() {
        return;
    }
    out.push_str("<h2>Violations</h2><table><tr><th class=n>at<th>promise<th>what</tr>");
    for violation in report.violations.iter().take(200) {
        let _ = write!(
            out,
            "<tr><td class=n>{:.1} s<td>{}<td><code>{}</code></tr>",
            violation.at_ms as f64 / 1e3,
            violation.promise.words(),
            escape(&violation.what)
        );
    }
    out.push_str("</table>");
}

fn by_kind(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>Faults by kind</h2><div class=wide><table><tr><th>fault<th class=n>done<th class=n>queries \
         meanwhile<th class=n>with an error<th class=n>latency p50, ms<th class=n>p99<th class=n>recovery \
         p50, ms<th class=n>longest<th>errors it excuses</tr>",
    );
    for row in report.by_kind() {
        let excuses = row.kind.excuses();
        let mut excused: Vec<String> =
            excuses.errors.iter().map(|text| format!("“{text}”")).collect();
        if excuses.broken {
            excused.push("broken connection".to_owned());
        }
        let excused = if excused.is_empty() { "none".to_owned() } else { excused.join(", ") };
        let _ = write!(
            out,
            "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}\
             <td class=n>{}<td class=n>{}<td class=dim>{excused}</tr>",
            row.kind.name(),
            row.count,
            row.queries,
            row.errors,
            row.latency.text(500),
            row.latency.text(990),
            row.recovery.text(500),
            row.recovery.text(1_000),
        );
    }
    out.push_str("</table></div>");
}

fn times(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>Times</h2><div class=wide><table><tr><th>ms<th class=n>count<th class=n>p50\
         <th class=n>p90<th class=n>p99<th class=n>longest",
    );
    for bound in CLASSES {
        let _ = write!(out, "<th class=n>≤ {bound}");
    }
    out.push_str("<th class=n>more</tr>");
    let (with_fault, without_fault) = report.latencies();
    let recovery = report.faults.iter().map(|fault| fault.recovered - fault.healed);
    for (name, times) in [
        ("queries while a fault lasts", with_fault),
        ("queries otherwise", without_fault),
        ("from the end of a fault to all in place", Times::of(recovery.collect())),
        ("drains, from SIGTERM to exit", report.drains()),
    ] {
        let _ = write!(out, "<tr><td>{name}<td class=n>{}", times.count());
        for rank in [500, 900, 990, 1_000] {
            let _ = write!(out, "<td class=n>{}", times.text(rank));
        }
        for count in times.histogram(&CLASSES) {
            let _ = write!(out, "<td class=n>{count}");
        }
        out.push_str("</tr>");
    }
    own_times(out, report);
    out.push_str("</table></div>");
}

/// Histograms that the API node itself has kept since its last start.
fn own_times(out: &mut String, report: &Report) {
    for (name, words) in [
        ("tributary_api_heartbeat_rtt_seconds", "heartbeats, there and back"),
        ("tributary_api_assignment_wait_seconds", "from queued to assigned"),
        ("tributary_api_reconnect_seconds", "from a lost stream to the next"),
        ("tributary_api_cancel_seconds", "from a cancellation to its confirmation"),
    ] {
        let buckets = report.api_metrics.buckets(name);
        let Some((_, total)) = buckets.last().copied().filter(|(_, total)| *total > 0.0) else {
            continue;
        };
        let _ = write!(out, "<tr><td>{words} (the API node's own)<td class=n>{total}");
        for rank in [0.5, 0.9, 0.99, 1.0] {
            let bound = buckets.iter().find(|(_, count)| *count >= rank * total);
            let bound = bound.map_or(String::new(), |(bound, _)| format!("≤ {}", bound * 1e3));
            let _ = write!(out, "<td class=n>{bound}");
        }
        let mut before = 0.0;
        for bound in CLASSES {
            let below = buckets.iter().filter(|(at, _)| *at * 1e3 <= bound as f64);
            let count = below.map(|(_, count)| *count).fold(0.0, f64::max);
            let _ = write!(out, "<td class=n>{}", count - before);
            before = count;
        }
        let _ = write!(out, "<td class=n>{}</tr>", total - before);
    }
}

fn errors(out: &mut String, report: &Report) {
    let messages = messages(&report.asked);
    if messages.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Errors that clients were told</h2><table><tr><th class=n>times<th>message</tr>",
    );
    for (text, count) in messages.iter().take(100) {
        let _ = write!(out, "<tr><td class=n>{count}<td><code>{}</code></tr>", escape(text));
    }
    out.push_str("</table>");
}

fn footprints(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>What processes hold at rest</h2><table><tr><th>process<th class=n>open files before\
         <th class=n>after<th class=n>memory before, MiB<th class=n>after<th class=n>threads before\
         <th class=n>after</tr>",
    );
    for (name, after) in &report.after {
        let before = report.before.get(name).copied().unwrap_or_default();
        let _ = write!(
            out,
            "<tr><td>{name}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}\
             <td class=n>{}</tr>",
            before.open_files,
            after.open_files,
            before.rss_bytes >> 20,
            after.rss_bytes >> 20,
            before.threads,
            after.threads
        );
    }
    out.push_str("</table>");
}

fn again(out: &mut String, report: &Report) {
    let minutes = (report.ran.as_secs_f64() / 60.0).ceil();
    let _ = write!(
        out,
        "<h2>Do it again</h2><pre>tributary chaos --minutes {minutes} --seed {}</pre><p class=dim>The \
         seed decides the data, the questions, the faults, their order and their victims. Processes \
         run for real, so the milliseconds differ from run to run.</p>",
        report.seed
    );
    out.push_str("<details><summary>All questions</summary><pre>");
    for question in &report.questions {
        let _ = writeln!(out, "{}", escape(question));
    }
    out.push_str("</pre></details>");
}

/// A text inside a page.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
