//! The functions of the language: names, types of arguments and results, and which are
//! experimental. What they compute is evaluation's.

use crate::value_type::ValueType::{self, Matrix, Scalar, String, Vector};

/// A function of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments. Further arguments have the type of the last.
    pub args: &'static [ValueType],
    /// How many arguments it takes.
    pub arity: Arity,
    /// The type of its result.
    pub returns: ValueType,
    /// It is off until experimental functions are asked for.
    pub experimental: bool,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// So many.
    Exactly(usize),
    /// At least so many, at most so many.
    Between(usize, usize),
    /// So many or more.
    AtLeast(usize),
}

/// The function of that name.
pub fn function_named(name: &str) -> Option<&'static Function> {
    let at = FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok()?;
    Some(&FUNCTIONS[at])
}

/// Every function, by name.
pub fn functions() -> &'static [Function] {
    &FUNCTIONS
}

const fn function(name: &'static str, args: &'static [ValueType], returns: ValueType) -> Function {
    Function { name, args, arity: Arity::Exactly(args.len()), returns, experimental: false }
}

impl Function {
    /// The last argument may be left out, or come up to `most` times.
    const fn optional(mut self, most: usize) -> Self {
        let least = self.args.len() - 1;
        self.arity = Arity::Between(least, least + most);
        self
    }

    /// The last argument may be left out, or come any number of times.
    const fn unlimited(mut self) -> Self {
        self.arity = Arity::AtLeast(self.args.len() - 1);
        self
    }

    const fn experimental(mut self) -> Self {
        self.experimental = true;
        self
    }

    /// The type of the argument at `index`; none for one too many.
    pub fn argument_type(&self, index: usize) -> Option<ValueType> {
        match self.arity {
            Arity::Exactly(_) => self.args.get(index).copied(),
            Arity::Between(..) | Arity::AtLeast(_) => {
                self.args.get(index).or(self.args.last()).copied()
            }
        }
    }
}

/// Sorted by name, so that a name is found by halves.
static FUNCTIONS: [Function; 90] = [
    function("abs", &[Vector], Vector),
    function("absent", &[Vector], Vector),
    function("absent_over_time", &[Matrix], Vector),
    function("acos", &[Vector], Vector),
    function("acosh", &[Vector], Vector),
    function("asin", &[Vector], Vector),
    function("asinh", &[Vector], Vector),
    function("atan", &[Vector], Vector),
    function("atanh", &[Vector], Vector),
    function("avg_over_time", &[Matrix], Vector),
    function("ceil", &[Vector], Vector),
    function("changes", &[Matrix], Vector),
    function("clamp", &[Vector, Scalar, Scalar], Vector),
    function("clamp_max", &[Vector, Scalar], Vector),
    function("clamp_min", &[Vector, Scalar], Vector),
    function("cos", &[Vector], Vector),
    function("cosh", &[Vector], Vector),
    function("count_over_time", &[Matrix], Vector),
    function("day_of_month", &[Vector], Vector).optional(1),
    function("day_of_week", &[Vector], Vector).optional(1),
    function("day_of_year", &[Vector], Vector).optional(1),
    function("days_in_month", &[Vector], Vector).optional(1),
    function("deg", &[Vector], Vector),
    function("delta", &[Matrix], Vector),
    function("deriv", &[Matrix], Vector),
    function("double_exponential_smoothing", &[Matrix, Scalar, Scalar], Vector).experimental(),
    function("end", &[], Scalar).experimental(),
    function("exp", &[Vector], Vector),
    function("first_over_time", &[Matrix], Vector),
    function("floor", &[Vector], Vector),
    function("histogram_avg", &[Vector], Vector),
    function("histogram_count", &[Vector], Vector),
    function("histogram_fraction", &[Scalar, Scalar, Vector], Vector),
    function("histogram_quantile", &[Scalar, Vector], Vector),
    function("histogram_quantiles", &[Vector, String, Scalar, Scalar], Vector)
        .optional(9)
        .experimental(),
    function("histogram_stddev", &[Vector], Vector),
    function("histogram_stdvar", &[Vector], Vector),
    function("histogram_sum", &[Vector], Vector),
    function("hour", &[Vector], Vector).optional(1),
    function("idelta", &[Matrix], Vector),
    function("increase", &[Matrix], Vector),
    function("info", &[Vector, Vector], Vector).optional(1).experimental(),
    function("irate", &[Matrix], Vector),
    function("label_join", &[Vector, String, String, String], Vector).unlimited(),
    function("label_replace", &[Vector, String, String, String, String], Vector),
    function("last_over_time", &[Matrix], Vector),
    function("ln", &[Vector], Vector),
    function("log10", &[Vector], Vector),
    function("log2", &[Vector], Vector),
    function("mad_over_time", &[Matrix], Vector).experimental(),
    function("max_of", &[Scalar, Scalar], Scalar).experimental(),
    function("max_over_time", &[Matrix], Vector),
    function("min_of", &[Scalar, Scalar], Scalar).experimental(),
    function("min_over_time", &[Matrix], Vector),
    function("minute", &[Vector], Vector).optional(1),
    function("month", &[Vector], Vector).optional(1),
    function("pi", &[], Scalar),
    function("predict_linear", &[Matrix, Scalar], Vector),
    function("present_over_time", &[Matrix], Vector),
    function("quantile_over_time", &[Scalar, Matrix], Vector),
    function("rad", &[Vector], Vector),
    function("range", &[], Scalar).experimental(),
    function("rate", &[Matrix], Vector),
    function("resets", &[Matrix], Vector),
    function("round", &[Vector, Scalar], Vector).optional(1),
    function("scalar", &[Vector], Scalar),
    function("sgn", &[Vector], Vector),
    function("sin", &[Vector], Vector),
    function("sinh", &[Vector], Vector),
    function("sort", &[Vector], Vector),
    function("sort_by_label", &[Vector, String], Vector).unlimited().experimental(),
    function("sort_by_label_desc", &[Vector, String], Vector).unlimited().experimental(),
    function("sort_desc", &[Vector], Vector),
    function("sqrt", &[Vector], Vector),
    function("start", &[], Scalar).experimental(),
    function("start_timestamp", &[Vector], Vector).experimental(),
    function("stddev_over_time", &[Matrix], Vector),
    function("stdvar_over_time", &[Matrix], Vector),
    function("step", &[], Scalar).experimental(),
    function("sum_over_time", &[Matrix], Vector),
    function("tan", &[Vector], Vector),
    function("tanh", &[Vector], Vector),
    function("time", &[], Scalar),
    function("timestamp", &[Vector], Vector),
    function("ts_of_first_over_time", &[Matrix], Vector).experimental(),
    function("ts_of_last_over_time", &[Matrix], Vector).experimental(),
    function("ts_of_max_over_time", &[Matrix], Vector).experimental(),
    function("ts_of_min_over_time", &[Matrix], Vector).experimental(),
    function("vector", &[Scalar], Vector),
    function("year", &[Vector], Vector).optional(1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_is_found_by_its_name() {
        assert!(FUNCTIONS.is_sorted_by(|one, other| one.name < other.name));
        for function in functions() {
            assert_eq!(function_named(function.name), Some(function));
        }
        assert_eq!(function_named("Rate"), None);
    }

    #[test]
    fn further_arguments_have_the_type_of_the_last() {
        let types = |name: &str| {
            let function = function_named(name).unwrap();
            (0..5).map_while(|index| function.argument_type(index)).collect::<Vec<_>>()
        };
        assert_eq!(types("clamp_max"), [Vector, Scalar]);
        assert_eq!(types("label_join"), [Vector, String, String, String, String]);
        assert_eq!(types("time"), []);
        assert_eq!(function_named("round").unwrap().arity, Arity::Between(1, 2));
        assert_eq!(function_named("histogram_quantiles").unwrap().arity, Arity::Between(3, 12));
        assert_eq!(function_named("sort_by_label").unwrap().arity, Arity::AtLeast(1));
    }
}
