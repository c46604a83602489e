//! What a reader of queries lets through: the experimental parts of the language, each off until
//! asked for, and the limits that keep a hostile text from costing much.

/// How texts are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Experimental parts of the language.
    pub features: Features,
    /// Limits of ours; Prometheus has none of them.
    pub limits: Limits,
}

impl Options {
    /// Every experimental part on, the usual limits.
    pub fn with_all_features() -> Self {
        Self { features: Features::ALL, limits: Limits::default() }
    }
}

/// Experimental parts of the language, as Prometheus' feature flags name them. All off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `limitk`, `limit_ratio`, `info`, `sort_by_label` and the other functions marked experimental
    /// (`promql-experimental-functions`).
    pub experimental_functions: bool,
    /// Arithmetic where a duration is expected, as in `foo[5m * 2]` or `foo offset (step())`
    /// (`promql-duration-expr`).
    pub duration_expressions: bool,
    /// `anchored` and `smoothed` (`promql-extended-range-selectors`).
    pub extended_range_selectors: bool,
    /// `fill`, `fill_left` and `fill_right` on binary operators (`promql-binop-fill-modifiers`).
    pub fill_modifiers: bool,
}

impl Features {
    /// Every experimental part.
    pub const ALL: Self = Self {
        experimental_functions: true,
        duration_expressions: true,
        extended_range_selectors: true,
        fill_modifiers: true,
    };
}

/// Limits on one text. Each gives an error that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the text (64 KiB). More: memory and time in proportion.
    pub max_bytes: usize,
    /// Expressions open inside each other while reading (128). More: stack while reading.
    pub max_nesting: usize,
    /// Height of the tree, in which `a + b + c` has three levels (500). More: stack wherever the
    /// tree is walked.
    pub max_height: usize,
    /// Matchers of one selector (1,000).
    pub max_matchers: usize,
    /// Arguments of one function call (1,000).
    pub max_arguments: usize,
    /// Size of one regular expression, in characters and classes after its repetitions are written
    /// out (50,000). More: time and memory to compile it.
    pub max_pattern_size: usize,
    /// Size of all regular expressions of the text together, those of `label_replace` included
    /// (200,000). More: time and memory to compile them, wherever the text is evaluated.
    pub max_patterns_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 64 * 1024,
            max_nesting: 128,
            max_height: 500,
            max_matchers: 1_000,
            max_arguments: 1_000,
            max_pattern_size: 50_000,
            max_patterns_size: 200_000,
        }
    }
}
