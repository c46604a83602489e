//! Which series the demo has: services with their requests and latencies, machines, queues. What a
//! series does is in `shape`, when its target answers in `target`.

use std::sync::Arc;

use tributary_promql::Labels;
use tributary_segment::{Family, Kind};

use super::shape::{Flow, Gauge, Shape};
use super::target::Target;
use super::tide::{Phase, dice, mix};

const REGIONS: [&str; 3] = ["eu-north", "eu-west", "us-east"];

/// Services: name, requests a second of an instance, median latency in seconds.
const SERVICES: [(&str, f64, f64); 5] = [
    ("catalogue", 34.0, 0.021),
    ("checkout", 9.0, 0.085),
    ("frontend", 52.0, 0.034),
    ("payments", 6.0, 0.140),
    ("search", 21.0, 0.062),
];

/// Instances of a service in each region.
const INSTANCES: u32 = 3;

/// A code of answers: which part of the requests has it, and which more of them have it in times of
/// trouble.
type Code = (&'static str, f64, f64);

/// Methods of requests, which part of the requests has it, and the codes of their answers.
const METHODS: [(&str, f64, &[Code]); 2] = [
    ("GET", 0.8, &[("200", 0.975, 0.0), ("404", 0.023, 0.0), ("500", 0.002, 0.12)]),
    ("POST", 0.2, &[("201", 0.965, 0.0), ("400", 0.030, 0.0), ("500", 0.005, 0.20)]),
];

/// Upper bounds of the latency's buckets, in seconds.
const BOUNDS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0];

/// In times of trouble requests take so many times longer.
const SLOWER: f64 = 12.0;

/// Spread of latencies: that of their logarithm.
const SPREAD: f64 = 0.8;

/// Machines in each region, and cores of each.
const MACHINES: u32 = 4;
const CORES: u32 = 4;

/// What a core does: mode, part of its time, how much of that follows the waves.
const MODES: [(&str, f64, f64); 6] = [
    ("idle", 0.66, -0.45),
    ("iowait", 0.02, 0.2),
    ("nice", 0.01, 0.0),
    ("softirq", 0.01, 0.5),
    ("system", 0.08, 0.9),
    ("user", 0.22, 1.0),
];

const QUEUES: [&str; 6] = ["emails", "exports", "invoices", "reindex", "thumbnails", "webhooks"];

const HOUR_S: f64 = 3_600.0;

/// All targets and their series, the series in the order of a segment.
pub(super) struct Fleet {
    /// What is scraped.
    pub(super) targets: Vec<Target>,
    /// What comes of it.
    pub(super) series: Vec<Series>,
}

/// One series.
pub(super) struct Series {
    pub(super) labels: Labels,
    pub(super) family: Arc<Family>,
    /// Place of its target.
    pub(super) target: usize,
    pub(super) shape: Shape,
}

impl Fleet {
    /// The fleet, always the same.
    pub(super) fn new() -> Self {
        let mut draft = Draft { fleet: Self { targets: Vec::new(), series: Vec::new() } };
        for (number, service) in (0_u32..).zip(SERVICES) {
            draft.service(number, service);
        }
        draft.machines();
        draft.brokers();
        let mut fleet = draft.fleet;
        fleet.series.sort_by(|one, other| one.labels.series_cmp(&other.labels));
        fleet
    }
}

struct Draft {
    fleet: Fleet,
}

/// A target whose series are being listed.
struct Place {
    target: usize,
    seed: u64,
    labels: Labels,
}

impl Draft {
    fn service(&mut self, number: u32, (job, per_s, median_s): (&str, f64, f64)) {
        let trouble_at = f64::from(number) * 2.2 * HOUR_S;
        for region in REGIONS {
            for instance in 0..INSTANCES {
                let name = format!("{job}-{instance}.{region}:8080");
                let place = self.target(job, &name, region, 13.0 * HOUR_S, trouble_at);
                self.process(&place, 180e6);
                let per_s = per_s * (0.8 + 0.4 * dice(place.seed, 21));
                for (method, part, codes) in METHODS {
                    self.requests(&place, method, per_s * part, codes);
                    self.latencies(&place, method, per_s * part, median_s);
                }
            }
        }
    }

    fn requests(&mut self, place: &Place, method: &str, per_s: f64, codes: &[Code]) {
        let family = family("http_requests", Kind::Counter, "", "Requests that were answered.");
        for (code, part, trouble) in codes {
            let labels = [("method", method), ("code", code)];
            let flow = Flow { trouble_per_s: per_s * trouble, ..place.flow(code, per_s * part) };
            let shape = Shape::Counter { flow, parts: 1.0 };
            self.add(place, "http_requests_total", &labels, &family, shape);
        }
    }

    fn latencies(&mut self, place: &Place, method: &str, per_s: f64, median_s: f64) {
        let help = "How long requests took, in seconds.";
        let family = family("http_request_duration_seconds", Kind::Histogram, "seconds", help);
        let flow = place.flow(method, per_s);
        let slow_s = median_s * SLOWER;
        let share = |draft: &mut Self, suffix: &str, le: Option<&str>, good: f64, bad: f64| {
            let metric = format!("http_request_duration_seconds_{suffix}");
            let mut labels = vec![("method", method)];
            labels.extend(le.map(|le| ("le", le)));
            let shape = Shape::Share { flow, good, bad, is_whole: suffix != "sum" };
            draft.add(place, &metric, &labels, &family, shape);
        };
        for bound in BOUNDS {
            let within = |median: f64| normal((bound / median).ln() / SPREAD);
            let le = bound.to_string();
            share(self, "bucket", Some(&le), within(median_s), within(slow_s));
        }
        share(self, "bucket", Some("+Inf"), 1.0, 1.0);
        share(self, "count", None, 1.0, 1.0);
        // The mean of a lognormal distribution with this median.
        let mean = (SPREAD * SPREAD / 2.0).exp();
        share(self, "sum", None, median_s * mean, slow_s * mean);
    }

    fn machines(&mut self) {
        for region in REGIONS {
            for machine in 0..MACHINES {
                let name = format!("node-{machine}.{region}:9100");
                let place = self.target("node", &name, region, 900.0 * HOUR_S, 0.0);
                self.process(&place, 20e6);
                self.cores(&place);
                self.memory(&place);
                let load = place.gauge("load", 1.6, 0.9);
                let load = Shape::Gauge(Gauge { noise: 0.3, step: 0.01, ..load });
                let about = family("node_load1", Kind::Gauge, "", "Load, averaged over a minute.");
                self.add(&place, "node_load1", &[], &about, load);
                for (metric, per_s) in [("receive", 2.3e6), ("transmit", 1.7e6)] {
                    let name = format!("node_network_{metric}_bytes");
                    let help = format!("Bytes, {metric}.");
                    let about = family(&name, Kind::Counter, "bytes", &help);
                    let shape = Shape::Counter { flow: place.flow(metric, per_s), parts: 1.0 };
                    self.add(
                        &place,
                        &format!("{name}_total"),
                        &[("device", "eth0")],
                        &about,
                        shape,
                    );
                }
            }
        }
    }

    fn cores(&mut self, place: &Place) {
        let help = "Seconds that each core spent in each mode.";
        let about = family("node_cpu_seconds", Kind::Counter, "seconds", help);
        for core in 0..CORES {
            let core = core.to_string();
            // All modes of a core follow the same waves, some the other way round.
            let base = place.flow(&core, 1.0);
            for (mode, part, swing) in MODES {
                let phase = if swing < 0.0 { base.phase.opposite() } else { base.phase };
                let flow = Flow { per_s: part, swing: swing.abs(), phase, ..base };
                let labels = [("cpu", core.as_str()), ("mode", mode)];
                let shape = Shape::Counter { flow, parts: 100.0 };
                self.add(place, "node_cpu_seconds_total", &labels, &about, shape);
            }
        }
    }

    fn memory(&mut self, place: &Place) {
        let about =
            family("node_memory_bytes", Kind::Gauge, "bytes", "Memory, by what it is used for.");
        for (state, level) in
            [("buffers", 0.3e9), ("cached", 5.1e9), ("free", 2.2e9), ("used", 8.4e9)]
        {
            let gauge = place.gauge(state, level, 0.2);
            let shape = Shape::Gauge(Gauge { noise: level / 100.0, step: 4_096.0, ..gauge });
            self.add(place, "node_memory_bytes", &[("state", state)], &about, shape);
        }
    }

    fn brokers(&mut self) {
        for region in REGIONS {
            let name = format!("broker-0.{region}:15692");
            let place = self.target("broker", &name, region, 60.0 * HOUR_S, 5.0 * HOUR_S);
            self.process(&place, 400e6);
            for queue in QUEUES {
                let labels = [("queue", queue)];
                let about = family("queue_depth", Kind::Gauge, "", "Jobs that wait.");
                let level = 5.0 + 60.0 * dice(place.seed, mix(queue.len() as u64));
                let gauge = place.gauge(queue, level, 1.2);
                let shape = Gauge { noise: level / 3.0, trouble: level * 8.0, ..gauge };
                self.add(&place, "queue_depth", &labels, &about, Shape::Gauge(shape));
                let about = family("queue_jobs", Kind::Counter, "", "Jobs that were done.");
                let shape = Shape::Counter { flow: place.flow(queue, level / 8.0), parts: 1.0 };
                self.add(&place, "queue_jobs_total", &labels, &about, shape);
            }
        }
    }

    /// What every process tells of itself.
    fn process(&mut self, place: &Place, memory_bytes: f64) {
        let up = family("up", Kind::Gauge, "", "1 where the target answered its last scrape.");
        self.add(place, "up", &[], &up, Shape::Up);
        let about = |name, kind, unit, help| family(name, kind, unit, help);
        let help = "When the process started, in seconds of the Unix epoch.";
        let start = about("process_start_time_seconds", Kind::Gauge, "seconds", help);
        self.add(place, "process_start_time_seconds", &[], &start, Shape::StartTime);
        let help = "Processor time that the process has used.";
        let cpu = about("process_cpu_seconds", Kind::Counter, "seconds", help);
        let shape = Shape::Counter { flow: place.flow("cpu", 0.3), parts: 100.0 };
        self.add(place, "process_cpu_seconds_total", &[], &cpu, shape);
        let help = "Memory that the process holds.";
        let memory = about("process_resident_memory_bytes", Kind::Gauge, "bytes", help);
        let gauge = place.gauge("memory", memory_bytes, 0.15);
        // It leaks a little, as they do, until the next restart.
        let per_s = memory_bytes / (20.0 * HOUR_S);
        let gauge = Gauge { noise: memory_bytes / 50.0, per_s, step: 4_096.0, ..gauge };
        self.add(place, "process_resident_memory_bytes", &[], &memory, Shape::Gauge(gauge));
        let build = about("build", Kind::Info, "", "Which build it is.");
        let version = [("version", "1.4.2")];
        self.add(place, "build_info", &version, &build, Shape::Constant(1.0));
    }

    fn target(
        &mut self,
        job: &str,
        instance: &str,
        region: &str,
        lifetime_s: f64,
        trouble_at: f64,
    ) -> Place {
        let labels = [("job", job), ("instance", instance), ("region", region)];
        let labels = Labels::new(labels).expect("these are three labels");
        let seed = labels.hash64();
        self.fleet.targets.push(Target::new(seed, lifetime_s, trouble_at));
        Place { target: self.fleet.targets.len() - 1, seed, labels }
    }

    fn add(
        &mut self,
        place: &Place,
        metric: &str,
        labels: &[(&str, &str)],
        family: &Arc<Family>,
        shape: Shape,
    ) {
        let mut all = place.labels.with("__name__", metric);
        for (name, value) in labels {
            all = all.with(name, value);
        }
        let family = Arc::clone(family);
        self.fleet.series.push(Series { labels: all, family, target: place.target, shape });
    }
}

impl Place {
    fn seed(&self, what: &str) -> u64 {
        what.bytes().fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)))
    }

    fn flow(&self, what: &str, per_s: f64) -> Flow {
        let seed = self.seed(what);
        Flow { seed, per_s, swing: 1.0, phase: Phase::of(seed), trouble_per_s: 0.0 }
    }

    fn gauge(&self, what: &str, level: f64, swing: f64) -> Gauge {
        let seed = self.seed(what);
        let phase = Phase::of(seed);
        Gauge { seed, level, swing, phase, noise: 0.0, per_s: 0.0, trouble: 0.0, step: 1.0 }
    }
}

fn family(name: &str, kind: Kind, unit: &str, help: &str) -> Arc<Family> {
    let text = str::to_owned;
    Arc::new(Family { name: text(name), kind, unit: text(unit), help: text(help) })
}

/// The part of a normal distribution that lies below `x`, to about three digits.
fn normal(x: f64) -> f64 {
    1.0 / (1.0 + (-1.702 * x).exp())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_fleet_has_some_thousand_series_in_order_and_each_once() {
        let fleet = Fleet::new();
        assert!((2_000..4_000).contains(&fleet.series.len()), "{}", fleet.series.len());
        let rises = |two: &[Series]| two[0].labels.series_cmp(&two[1].labels).is_lt();
        assert!(fleet.series.windows(2).all(rises));
        let metrics: BTreeSet<&str> =
            fleet.series.iter().map(|series| series.labels.metric()).collect();
        for metric in ["http_requests_total", "node_cpu_seconds_total", "up", "queue_depth"] {
            assert!(metrics.contains(metric), "{metric}");
        }
    }

    #[test]
    fn buckets_hold_more_the_wider_they_are() {
        let parts: Vec<f64> = BOUNDS.iter().map(|b| normal((b / 0.05).ln() / SPREAD)).collect();
        assert!(parts.windows(2).all(|two| two[0] < two[1]));
        assert!(parts[0] > 0.0 && parts[11] < 1.0);
    }
}
