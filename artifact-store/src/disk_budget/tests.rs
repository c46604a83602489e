//! The budget against a plain list of files that is summed and sorted anew for every question.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    capacity_bytes: 1000,
    high_percent: 90,
    low_percent: 80,
    floor_percent: 20,
    keep_free_bytes: 0,
};

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

fn unacknowledged(since: u64) -> Standing {
    Standing::Unacknowledged { since: at(since), until: at(since + 100) }
}

fn acknowledged(since: u64) -> Standing {
    Standing::Acknowledged { since: at(since), until: at(since + 30) }
}

/// An artifact of this size, with what had to yield for it.
fn artifact(budget: &mut Budget, bytes: u64, standing: Standing) -> (FileId, Vec<FileId>) {
    let file = budget.begin(Kind::Artifact);
    let victims = budget.grow(file, bytes).expect("there is room");
    victims.iter().for_each(|victim| budget.gone(*victim));
    budget.settle(file, bytes, standing);
    (file, victims)
}

#[test]
fn files_yield_in_the_order_of_the_design() {
    let mut budget = Budget::new(LIMITS);
    let older = budget.found(100);
    let newer = budget.found(100);
    budget.pin(older);
    budget.unpin(older);
    let (expired, _) = artifact(&mut budget, 100, unacknowledged(0));
    budget.advance(at(150));
    let (acked_late, _) = artifact(&mut budget, 100, acknowledged(160));
    let (acked_early, _) = artifact(&mut budget, 100, acknowledged(155));
    let (waiting_late, _) = artifact(&mut budget, 100, unacknowledged(170));
    let (waiting_early, _) = artifact(&mut budget, 100, unacknowledged(165));
    let (_, victims) = artifact(&mut budget, 1000, unacknowledged(180));
    let order =
        [newer, older, acked_early, acked_late, expired, waiting_early, waiting_late].to_vec();
    assert_eq!(victims, order);
}

#[test]
fn work_is_not_thrown_away_for_a_watermark() {
    let mut budget = Budget::new(LIMITS);
    artifact(&mut budget, 850, unacknowledged(0));
    let (_, victims) = artifact(&mut budget, 150, unacknowledged(1));
    assert_eq!(victims, [], "1000 of 1000 bytes: above the high watermark, and nothing is lost");
    let (_, victims) = artifact(&mut budget, 1, unacknowledged(2));
    assert_eq!(victims.len(), 1);
}

#[test]
fn cached_segments_never_take_the_floor_nor_an_artifact() {
    let mut budget = Budget::new(LIMITS);
    let segment = budget.begin(Kind::Segment);
    assert_eq!(budget.grow(segment, 701), Err(Refused), "900 less the floor of 200");
    assert_eq!(budget.grow(segment, 700), Ok(vec![]));
    budget.settle(segment, 700, Standing::Cached);
    artifact(&mut budget, 200, acknowledged(0));
    let another = budget.begin(Kind::Segment);
    assert_eq!(budget.grow(another, 100), Ok(vec![segment]), "segments yield to segments");
}

#[test]
fn what_is_pinned_or_being_written_stays() {
    let mut budget = Budget::new(LIMITS);
    let segment = budget.found(300);
    budget.pin(segment);
    let writing = budget.begin(Kind::Artifact);
    budget.grow(writing, 400).unwrap();
    let more = budget.begin(Kind::Artifact);
    assert_eq!(budget.grow(more, 301), Err(Refused));
    assert_eq!(budget.grow(more, 300), Ok(vec![]));
    budget.unpin(segment);
    assert_eq!(budget.grow(more, 300), Ok(vec![segment]));
}

#[test]
fn a_removed_file_that_is_open_goes_when_it_is_closed() {
    let mut budget = Budget::new(LIMITS);
    let (file, _) = artifact(&mut budget, 10, unacknowledged(0));
    budget.pin(file);
    budget.pin(file);
    assert!(!budget.remove(file) && !budget.holds(file));
    assert!(!budget.unpin(file));
    assert_eq!(budget.usage().spool_bytes, 10, "it is still on disk");
    assert!(budget.unpin(file));
    assert_eq!((budget.usage().spool_bytes, budget.usage().leaving_bytes), (0, 10));
    budget.gone(file);
    assert_eq!(budget.usage().leaving_bytes, 0);
}

#[test]
fn work_is_refused_below_the_floor_and_welcome_again_with_some_room_above_it() {
    let mut budget = Budget::new(LIMITS);
    let (big, _) = artifact(&mut budget, 800, unacknowledged(0));
    assert!(budget.usage().accepting);
    let (small, _) = artifact(&mut budget, 1, unacknowledged(0));
    assert!(!budget.usage().accepting);
    assert!(budget.remove(small));
    budget.gone(small);
    assert!(!budget.usage().accepting, "exactly the floor is left: not yet");
    budget.stand(big, acknowledged(0));
    assert!(budget.usage().accepting, "what was fetched can yield");
}

#[test]
fn a_disk_that_others_fill_makes_the_budget_smaller_and_costs_no_work() {
    let mut budget = Budget::new(LIMITS);
    let segment = budget.found(400);
    artifact(&mut budget, 300, unacknowledged(0));
    assert_eq!(budget.disk_has_free(300), []);
    assert_eq!(budget.usage().capacity_bytes, 1000);
    assert_eq!(budget.disk_has_free(0), [segment]);
    budget.gone(segment);
    assert_eq!(budget.disk_has_free(0), []);
    let usage = budget.usage();
    assert_eq!((usage.capacity_bytes, usage.room_bytes, usage.accepting), (300, 0, false));
    budget.disk_has_free(u64::MAX / 2);
    assert_eq!(budget.usage().capacity_bytes, 1000);
    assert!(budget.usage().accepting, "it recovers by itself");
}

#[test]
fn a_disk_with_nothing_at_all_takes_no_work() {
    let mut budget = Budget::new(LIMITS);
    budget.disk_has_free(0);
    assert!(!budget.usage().accepting);
}

#[derive(Clone, Debug)]
enum Step {
    Begin(Kind),
    Found(u64),
    Grow(usize, u64),
    Wrote(usize, u64),
    Settle(usize),
    Acknowledge(usize),
    Pin(usize),
    Unpin(usize),
    Remove(usize),
    Gone,
    Advance(u64),
    Free(u64),
    Relieve(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0_usize..64;
    let bytes = prop_oneof![0_u64..50, 0_u64..400, Just(1000), Just(1001)];
    prop_oneof![
        2 => prop_oneof![Just(Kind::Artifact), Just(Kind::Segment)].prop_map(Step::Begin),
        1 => (0_u64..200).prop_map(Step::Found),
        6 => (any.clone(), bytes).prop_map(|(file, by)| Step::Grow(file, by)),
        2 => (any.clone(), 0_u64..400).prop_map(|(file, by)| Step::Wrote(file, by)),
        4 => any.clone().prop_map(Step::Settle),
        2 => any.clone().prop_map(Step::Acknowledge),
        2 => any.clone().prop_map(Step::Pin),
        2 => any.clone().prop_map(Step::Unpin),
        1 => any.prop_map(Step::Remove),
        2 => Just(Step::Gone),
        2 => (0_u64..40).prop_map(Step::Advance),
        1 => (0_u64..1500).prop_map(Step::Free),
        1 => (0_u64..500).prop_map(Step::Relieve),
    ]
}

/// What the test knows of the files, kept as plainly as can be.
#[derive(Default)]
struct Model {
    files: Vec<(FileId, Known)>,
    leaving: Vec<(FileId, u64)>,
    now: u64,
}

#[derive(Clone, Copy)]
struct Known {
    kind: Kind,
    bytes: u64,
    standing: Standing,
    pins: u32,
    doomed: bool,
}

impl Model {
    fn pick(&self, at: usize, fits: impl Fn(&Known) -> bool) -> Option<usize> {
        let fitting: Vec<_> = (0..self.files.len()).filter(|i| fits(&self.files[*i].1)).collect();
        (!fitting.is_empty()).then(|| fitting[at % fitting.len()])
    }

    fn sum(&self, of: impl Fn(&Known) -> bool) -> u64 {
        self.files.iter().filter(|(_, known)| of(known)).map(|(_, known)| known.bytes).sum()
    }

    fn rank(&self, known: &Known) -> u8 {
        let now = at(self.now);
        match known.standing {
            _ if known.pins > 0 || known.doomed => 9,
            Standing::Writing => 9,
            Standing::Cached => 0,
            Standing::Expired { .. } => 2,
            Standing::Acknowledged { until, .. } | Standing::Unacknowledged { until, .. }
                if until <= now =>
            {
                2
            }
            Standing::Acknowledged { .. } => 1,
            Standing::Unacknowledged { .. } => 3,
        }
    }

    /// Takes the victims out and checks that nothing that should have yielded before them stays.
    fn evict(&mut self, victims: &[FileId], dearest: u8) {
        let mut last = 0;
        for victim in victims {
            let i = self.files.iter().position(|(id, _)| id == victim).expect("a known file");
            let rank = self.rank(&self.files[i].1);
            assert!(rank >= last && rank <= dearest, "rank {rank} after {last}");
            last = rank;
            let (id, known) = self.files.remove(i);
            self.leaving.push((id, known.bytes));
        }
        for (_, known) in &self.files {
            assert!(known.bytes == 0 || self.rank(known) >= last, "a cheaper one was kept");
        }
    }

    fn check(&self, budget: &Budget) {
        let usage = budget.usage();
        assert_eq!(usage.spool_bytes, self.sum(|known| known.kind == Kind::Artifact));
        assert_eq!(usage.cache_bytes, self.sum(|known| known.kind == Kind::Segment));
        assert_eq!(usage.leaving_bytes, self.leaving.iter().map(|(_, bytes)| bytes).sum::<u64>());
        let fixed = self.sum(|known| self.rank(known) > 2);
        assert_eq!(usage.room_bytes, usage.capacity_bytes.saturating_sub(fixed));
        assert!(!usage.accepting || usage.room_bytes >= usage.capacity_bytes / 5);
        assert!(usage.accepting || usage.room_bytes < usage.capacity_bytes / 10 * 4 + 1);
    }
}

proptest! {
    #[test]
    fn the_books_are_exact_and_victims_come_in_order(steps in prop::collection::vec(step(), 1..200)) {
        let mut budget = Budget::new(LIMITS);
        let mut model = Model::default();
        for step in steps {
            take(&mut budget, &mut model, step);
            model.check(&budget);
        }
    }
}

fn take(budget: &mut Budget, model: &mut Model, step: Step) {
    match step {
        Step::Begin(kind) => {
            let standing = Standing::Writing;
            let known = Known { kind, bytes: 0, standing, pins: 0, doomed: false };
            model.files.push((budget.begin(kind), known));
        }
        Step::Found(bytes) => {
            let (kind, standing) = (Kind::Segment, Standing::Cached);
            let known = Known { kind, bytes, standing, pins: 0, doomed: false };
            model.files.push((budget.found(bytes), known));
        }
        Step::Grow(which, by) => grow(budget, model, which, by),
        Step::Wrote(which, by) => {
            let writing = |known: &Known| known.standing == Standing::Writing && !known.doomed;
            let Some(i) = model.pick(which, writing) else { return };
            budget.wrote(model.files[i].0, by);
        }
        Step::Settle(which) => {
            let writing = |known: &Known| known.standing == Standing::Writing && !known.doomed;
            let Some(i) = model.pick(which, writing) else { return };
            let now = model.now;
            let (file, known) = &mut model.files[i];
            known.standing = match known.kind {
                Kind::Artifact => unacknowledged(now),
                Kind::Segment => Standing::Cached,
            };
            known.bytes -= known.bytes / 3;
            budget.settle(*file, known.bytes, known.standing);
        }
        Step::Acknowledge(which) => {
            let waits = |known: &Known| matches!(known.standing, Standing::Unacknowledged { .. });
            let Some(i) = model.pick(which, waits) else { return };
            let now = model.now;
            let (file, known) = &mut model.files[i];
            known.standing = acknowledged(now);
            budget.stand(*file, known.standing);
        }
        Step::Pin(which) => {
            let Some(i) = model.pick(which, |known| !known.doomed) else { return };
            model.files[i].1.pins += 1;
            budget.pin(model.files[i].0);
        }
        Step::Unpin(which) => {
            let Some(i) = model.pick(which, |known| known.pins > 0) else { return };
            model.files[i].1.pins -= 1;
            let (file, known) = model.files[i];
            let last = known.doomed && known.pins == 0;
            assert_eq!(budget.unpin(file), last);
            if last {
                model.files.remove(i);
                model.leaving.push((file, known.bytes));
            }
        }
        Step::Remove(which) => {
            let Some(i) = model.pick(which, |known| !known.doomed) else { return };
            model.files[i].1.doomed = true;
            let (file, known) = model.files[i];
            assert_eq!(budget.remove(file), known.pins == 0);
            if known.pins == 0 {
                model.files.remove(i);
                model.leaving.push((file, known.bytes));
            }
        }
        Step::Gone => {
            if let Some((file, _)) = model.leaving.pop() {
                budget.gone(file);
            }
        }
        Step::Advance(by) => {
            model.now += by;
            budget.advance(at(model.now));
        }
        Step::Free(free) => {
            let victims = budget.disk_has_free(free);
            model.evict(&victims, 2);
        }
        Step::Relieve(bytes) => {
            let victims = budget.relieve(bytes);
            model.evict(&victims, 2);
        }
    }
}

fn grow(budget: &mut Budget, model: &mut Model, which: usize, by: u64) {
    let writing = |known: &Known| known.standing == Standing::Writing && !known.doomed;
    let Some(i) = model.pick(which, writing) else { return };
    let (file, known) = model.files[i];
    let capacity = budget.usage().capacity_bytes;
    let fixed = model.sum(|known| model.rank(known) > 3);
    let before = model.sum(|known| model.rank(known) == 3);
    match (budget.grow(file, by), known.kind) {
        (Ok(victims), Kind::Artifact) => {
            model.evict(&victims, 3);
            model.files.iter_mut().find(|(id, _)| *id == file).unwrap().1.bytes += by;
            let total = model.sum(|_| true);
            assert!(total <= capacity);
            let kept = model.sum(|known| model.rank(known) == 3);
            let cheap = model.sum(|known| model.rank(known) < 3);
            assert!(kept == before || cheap == 0, "work was lost while something else could go");
        }
        (Ok(victims), Kind::Segment) => {
            model.evict(&victims, 0);
            model.files.iter_mut().find(|(id, _)| *id == file).unwrap().1.bytes += by;
            let cached = model.sum(|known| known.kind == Kind::Segment);
            let spool = model.sum(|known| known.kind == Kind::Artifact);
            // The floor is untouched, and so is every artifact.
            let share = |percent: u64| capacity / 100 * percent + capacity % 100 * percent / 100;
            assert!(cached + spool.max(share(20)) <= share(90) || by == 0);
        }
        (Err(Refused), Kind::Artifact) => assert!(fixed + by > capacity),
        (Err(Refused), Kind::Segment) => {}
    }
}
