//! The little world that texts are tried on: some series, some times to ask about, small limits.

use std::sync::LazyLock;

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::TestCaseError;
use tributary_promql::annotation::Level;
use tributary_promql::eval::EvalError;
use tributary_promql::{EvalLimits, EvalOptions, Expr, QuerySpec, STALE_BITS};

use super::common::{Series, answer_in_cells};

/// How an expression is evaluated.
#[derive(Clone, Debug)]
pub struct Question {
    spec: QuerySpec,
    delayed_name_removal: bool,
    type_and_unit_labels: bool,
    cuts: Vec<i64>,
}

/// Any way to evaluate an expression, ends of time included.
pub fn question() -> impl Strategy<Value = Question> {
    let far = i64::MAX / 16;
    let specs = vec![
        QuerySpec::instant(300_000),
        QuerySpec::instant(0),
        QuerySpec::instant(-1_234_567),
        QuerySpec::range(0, 600_000, 60_000),
        QuerySpec::range(60_000, 299_999, 7_001),
        QuerySpec::range(300_000, 300_019, 1),
        QuerySpec::range(0, 0, 1),
        QuerySpec::range(-far, far, far),
        QuerySpec::range(-far, -far + 100, 50),
        QuerySpec::range(far - 100, far, 50),
        QuerySpec::instant(far),
        QuerySpec::instant(-far),
        QuerySpec::instant(i64::MAX),
        QuerySpec::instant(i64::MIN),
        QuerySpec::range(i64::MIN, i64::MAX, 1),
        QuerySpec::range(0, 10, 0),
        QuerySpec::range(10, 0, 1),
    ];
    let cuts = prop_oneof![
        Just(vec![]),
        Just(vec![150_000]),
        Just(vec![0, 60_001, 240_000]),
        Just(vec![-far, 299_999, 300_000, 300_001, far]),
    ];
    (prop_oneof![3 => select(specs[..5].to_vec()), 1 => select(specs)], any::<(bool, bool)>(), cuts)
        .prop_map(|(spec, (delayed_name_removal, type_and_unit_labels), cuts)| Question {
            spec,
            delayed_name_removal,
            type_and_unit_labels,
            cuts,
        })
}

impl Question {
    /// Evaluates an expression with and without pushdown, in one cell and in several: the answers
    /// are the same. Says whether there is one.
    pub fn answer(&self, text: &str, expr: &Expr) -> Result<bool, TestCaseError> {
        let whole = self.told(text, expr, true, &[]);
        for (pushdown, cuts) in [(false, &[][..]), (true, self.cuts.as_slice())] {
            let other = self.told(text, expr, pushdown, cuts);
            match (&whole, &other) {
                (Ok(whole), Ok(other)) => {
                    prop_assert!(whole == other, "pushdown {pushdown}:\n{whole}\n{other}");
                }
                // What is held at once depends on the cells.
                (Err(EvalError::Limit { .. }), _) | (_, Err(EvalError::Limit { .. })) => {}
                // Of several reasons either may be found first.
                (Err(_), Err(_)) => {}
                (whole, other) => {
                    prop_assert!(false, "pushdown {pushdown}:\n{whole:?}\n{other:?}");
                }
            }
        }
        Ok(whole.is_ok())
    }

    fn told(
        &self,
        text: &str,
        expr: &Expr,
        pushdown: bool,
        cuts: &[i64],
    ) -> Result<String, EvalError> {
        let options = EvalOptions {
            delayed_name_removal: self.delayed_name_removal,
            type_and_unit_labels: self.type_and_unit_labels,
            pushdown,
            limits: limits(),
            ..EvalOptions::default()
        };
        let answer = answer_in_cells(expr, self.spec, &options, &DATA, cuts)?;
        let notes =
            [Level::Warning, Level::Info].map(|level| answer.annotations.texts(level, text));
        Ok(format!("{:?} {notes:?}", answer.data))
    }
}

/// Enough for honest questions about this little world.
pub fn limits() -> EvalLimits {
    EvalLimits {
        max_series: 1_000,
        max_samples: 10_000,
        max_steps: 50,
        max_subquery_steps: 2_000,
        max_values: 20_000,
        ..EvalLimits::default()
    }
}

/// Counters, gauges, gaps, marks of staleness, buckets, and values and times at their ends.
pub static DATA: LazyLock<Vec<Series>> = LazyLock::new(|| {
    let minutes = |count: i64| (0..count).map(|minute| minute * 60_000);
    let gauge = |scale: f64| minutes(12).map(move |t| (t, ((t / 7_000) % 11) as f64 * scale));
    let mut data = vec![
        Series::new(&[("__name__", "foo"), ("a", "x"), ("b", "1")], gauge(1.0)),
        Series::new(&[("__name__", "foo"), ("a", "x"), ("b", "2")], gauge(-0.1)),
        Series::new(&[("__name__", "foo"), ("a", "a"), ("b", "1")], gauge(1e300)),
        Series::new(&[("__name__", "bar:baz"), ("a", "x"), ("b", "1")], gauge(3.0)),
        Series::new(&[("__name__", "bar:baz"), ("a", "é\n")], minutes(3).map(|t| (t, f64::NAN))),
    ];
    for name in ["sum", "and", "offset", "start", "_x1", "fill", "NaNs"] {
        data.push(Series::new(&[("__name__", name), ("a", "b"), ("sum", "v\"")], gauge(2.0)));
    }
    for instance in ["0", "1"] {
        let target = [("instance", instance), ("job", "api")];
        let of = |name, more: &[(&'static str, &'static str)]| -> Vec<(&str, &str)> {
            [&[("__name__", name)], &target[..], more].concat()
        };
        let resets = minutes(12).map(|t| (t, ((t / 1_000) % 250) as f64));
        data.push(Series::new(&of("http_requests_total", &[("code", "200")]), resets));
        let stale = f64::from_bits(STALE_BITS);
        let gone = minutes(9).map(|t| (t, if t % 180_000 == 0 { stale } else { t as f64 }));
        data.push(Series::new(&of("http_requests_total", &[("code", "500")]), gone));
        for (bound, share) in [("0.1", 1.0), ("1", 3.0), ("+Inf", 2.5), ("x", 1.0)] {
            let counts = minutes(10).map(|t| (t, share * t as f64));
            data.push(Series::new(&of("h_bucket", &[("le", bound)]), counts));
        }
        let version = if instance == "0" { "v1" } else { "v2" };
        let info = of("target_info", &[("version", version)]);
        data.push(Series::new(&info, minutes(12).map(|t| (t, 1.0))));
    }
    for name in ["x", "y"] {
        // So many samples that windows cross the edges of cells as states.
        let often = (0..72).map(|index: i64| (index * 10_000, ((index * 7) % 50) as f64 * 0.1));
        data.push(Series::new(&[("__name__", "dense_total"), ("a", name)], often));
    }
    let far = i64::MAX / 16;
    let ends = [i64::MIN, -far - 1, -far, -1, 0, 1, 299_999, 300_000, far, far + 1, i64::MAX];
    let values = [f64::INFINITY, f64::MIN, f64::MAX, -0.0, f64::NAN, 5e-324, f64::NEG_INFINITY];
    for (index, name) in ["x", "y"].into_iter().enumerate() {
        let values = values.iter().cycle().skip(index).copied();
        data.push(Series::new(
            &[("__name__", "extremes"), ("a", name)],
            ends.into_iter().zip(values),
        ));
    }
    data
});
