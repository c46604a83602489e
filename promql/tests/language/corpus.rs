//! Prometheus' own test scripts: every query in them reads, prints and reads back.

use tributary_promql::{SeriesItem, parse, parse_series};

use super::support::{all, placeless, script_queries, script_series, tree};

#[test]
fn every_query_of_the_scripts_reads_prints_and_reads_back() {
    let queries = script_queries();
    let mut refused = Vec::new();
    for case in &queries {
        match parse(&case.query, &all()) {
            Err(error) => {
                assert!(case.fails, "{}: {}\n{error}", case.place, case.query);
                refused.push(format!("{}: {}\n{error}", case.place, case.query));
            }
            Ok(expr) => {
                let expr = placeless(expr);
                assert_eq!(tree(&expr.to_string()), expr, "{}: {expr}", case.place);
                assert_eq!(tree(&expr.pretty()), expr, "{}: {}", case.place, expr.pretty());
            }
        }
    }
    // The scripts' own failures all come later than parsing.
    assert_eq!(refused, Vec::<String>::new());
    assert!(queries.is_empty() || queries.len() > 1_400, "{} queries", queries.len());
}

#[test]
fn every_series_the_scripts_load_can_be_read() {
    let series = script_series();
    let mut histograms = 0;
    for (place, text) in &series {
        let description = parse_series(text, &all());
        let description = description.unwrap_or_else(|error| panic!("{place}: {text}\n{error}"));
        histograms += description
            .items
            .iter()
            .filter(|item| matches!(item, SeriesItem::Histograms { .. }))
            .count();
        let values = description.values().take(1_000_000).count();
        assert!((1..1_000_000).contains(&values), "{place}: {values} values");
    }
    assert!(series.is_empty() || (series.len() > 1_000 && histograms > 300), "{histograms}");
}
