//! The picture of a run: latency of queries above, faults on the same line of time below. Plain SVG.

use std::fmt::Write as _;
use std::time::Duration;

use super::Report;
use crate::verdict::judge;
use crate::workload::Outcome;

const WIDTH: f64 = 1_000.0;
const LEFT: f64 = 130.0;
const LATENCY: f64 = 220.0;
const ROW: f64 = 15.0;

/// Columns of time that latencies are gathered in.
const COLUMNS: usize = 280;

/// Latencies on the axis, in milliseconds, and how they are written.
const MARKS: [(f64, &str); 5] =
    [(1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1e3, "1 s"), (1e4, "10 s")];

/// Draws it.
pub(super) fn of(report: &Report) -> String {
    let kinds = report.by_kind();
    let rows: Vec<_> = kinds.iter().filter(|row| row.count > 0).map(|row| row.kind).collect();
    let total = report.ran.as_secs_f64().max(1.0);
    let height = LATENCY + 30.0 + ROW * rows.len() as f64 + 24.0;
    let x = |time: Duration| LEFT + (WIDTH - LEFT) * (time.as_secs_f64() / total).min(1.0);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Latency of queries over \
         time, and the faults below\">"
    );
    for (ms, text) in MARKS {
        let y = height_of(ms);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"axis\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    // Where faults are, the picture is shaded from top to bottom.
    for fault in &report.faults {
        let (from, to) = (x(fault.from), x(fault.healed));
        let _ = write!(
            out,
            "<rect class=\"shade\" x=\"{from:.1}\" y=\"0\" width=\"{:.1}\" height=\"{LATENCY}\"/>",
            (to - from).max(0.5)
        );
    }
    latencies(&mut out, report, total);
    for (at, kind) in rows.iter().enumerate() {
        let y = LATENCY + 24.0 + ROW * at as f64;
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + ROW - 4.0,
            kind.name()
        );
        for fault in report.faults.iter().filter(|fault| fault.kind == *kind) {
            let (from, healed, to) = (x(fault.from), x(fault.healed), x(fault.recovered));
            let _ = write!(
                out,
                "<rect class=\"fault\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\">\
                 <title>{} at {:.1} s: {}</title></rect>\
                 <rect class=\"healing\" x=\"{healed:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{}\"/>",
                y + 2.0,
                (healed - from).max(1.5),
                ROW - 4.0,
                kind.name(),
                fault.from.as_secs_f64(),
                super::page::escape(&fault.what),
                y + 2.0,
                (to - healed).max(0.0),
                ROW - 4.0,
            );
        }
    }
    let bottom = height - 6.0;
    for part in 0..=5 {
        let seconds = total * f64::from(part) / 5.0;
        let at = LEFT + (WIDTH - LEFT) * f64::from(part) / 5.0;
        let anchor = if part == 5 { "end" } else { "middle" };
        let text = if total > 300.0 {
            format!("{:.0} min", seconds / 60.0)
        } else {
            format!("{seconds:.0} s")
        };
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{at:.1}\" y=\"{bottom:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }
    out.push_str("</svg>");
    out
}

/// Median and longest of each moment as lines, errors and worse as marks.
fn latencies(out: &mut String, report: &Report, total: f64) {
    let mut columns = vec![Vec::new(); COLUMNS];
    for asked in report.asked.iter().filter(|it| it.is_eager && it.outcome == Outcome::Right) {
        let place = asked.to.as_secs_f64() / total * COLUMNS as f64;
        let place = (0..COLUMNS).take_while(|at| (*at as f64) < place).count();
        columns[place.clamp(1, COLUMNS) - 1].push((asked.to - asked.from).as_secs_f64() * 1e3);
    }
    let (mut median, mut longest) = (String::new(), String::new());
    let mut is_drawing = false;
    for (at, times) in columns.iter_mut().enumerate() {
        times.sort_by(f64::total_cmp);
        let x = LEFT + (WIDTH - LEFT) * (at as f64 + 0.5) / COLUMNS as f64;
        // Where nobody asked there is no line.
        let (Some(middle), Some(last)) = (times.get(times.len() / 2), times.last()) else {
            is_drawing = false;
            continue;
        };
        let step = if is_drawing { 'L' } else { 'M' };
        let _ = write!(median, "{step}{x:.1} {:.1}", height_of(*middle));
        let _ = write!(longest, "{step}{x:.1} {:.1}", height_of(*last));
        is_drawing = true;
    }
    let _ = write!(out, "<path class=\"longest\" d=\"{longest}\"/>");
    let _ = write!(out, "<path class=\"median\" d=\"{median}\"/>");
    for asked in &report.asked {
        let class = match asked.outcome {
            Outcome::Right | Outcome::Left => continue,
            _ if judge(asked, &report.faults).is_some() => "wrong",
            _ => "error",
        };
        let x = LEFT + (WIDTH - LEFT) * (asked.to.as_secs_f64() / total).min(1.0);
        let y = height_of((asked.to - asked.from).as_secs_f64() * 1e3);
        let size = if class == "wrong" { 4.0 } else { 2.0 };
        let _ = write!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size}\"/>");
    }
}

/// Where a latency is on the logarithmic axis.
fn height_of(ms: f64) -> f64 {
    let share = ms.clamp(1.0, 60_000.0).log10() / 60_000_f64.log10();
    LATENCY - 8.0 - share * (LATENCY - 20.0)
}
