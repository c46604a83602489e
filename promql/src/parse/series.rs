//! Descriptions of series as test scripts have them: `foo{a="b"} 0 1+2x5 _ stale {{sum:3}}`. The
//! values stay as they are written, so that a large repetition costs nothing until it is asked for;
//! histograms stay text.

use std::collections::BTreeMap;

use super::cursor::{Cursor, Fault, Parsed};
use crate::error::ParseError;
use crate::expr::Sign;
use crate::features::Options;
use crate::matcher::METRIC_NAME;
use crate::op::BinaryOp;
use crate::quote::quoted;
use crate::token::Kind;

/// The bits of the value that says a series has ended.
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// A series: its labels and its values at consecutive steps.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesDescription {
    /// The labels, the metric's name among them.
    pub labels: BTreeMap<String, String>,
    /// The values as they are written.
    pub items: Vec<SeriesItem>,
}

/// One item of the values of a series, which may stand for many.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesItem {
    /// `_x3`: steps without a value.
    Missing {
        /// How many.
        count: u64,
    },
    /// `1+2x3`: a value, and more of them, each with the change added.
    Floats {
        /// The first value; `stale` has the bits that say so.
        first: f64,
        /// What each further value adds to the one before.
        change: f64,
        /// How many further values.
        more: u64,
    },
    /// `{{…}}+{{…}}x3`: a histogram, and more of them.
    Histograms {
        /// The first, without its braces.
        first: String,
        /// What each further one adds to or takes from the one before, without its braces.
        change: Option<(Sign, String)>,
        /// How many further ones.
        more: u64,
    },
}

/// One value of a series.
#[derive(Clone, Debug, PartialEq)]
pub enum SeriesValue<'a> {
    /// None at this step.
    Missing,
    /// A float.
    Float(f64),
    /// A histogram that was changed so many times.
    Histogram {
        /// The first one.
        first: &'a str,
        /// The change.
        change: Option<(Sign, &'a str)>,
        /// How often it has been applied.
        times: u64,
    },
}

/// Reads the description of a series.
pub fn parse_series(text: &str, options: &Options) -> Result<SeriesDescription, ParseError> {
    let mut cursor = Cursor::of_series(text, options)?;
    let parsed = cursor.series();
    cursor.finish(parsed)
}

impl SeriesDescription {
    /// Every value, one per step.
    pub fn values(&self) -> impl Iterator<Item = SeriesValue<'_>> {
        self.items.iter().flat_map(SeriesItem::values)
    }
}

impl SeriesItem {
    /// Every value it stands for.
    pub fn values(&self) -> impl Iterator<Item = SeriesValue<'_>> {
        let count = match self {
            Self::Missing { count } => *count,
            // The first one comes on top; `u64::MAX` more would not end in any case.
            Self::Floats { more, .. } | Self::Histograms { more, .. } => more.saturating_add(1),
        };
        let mut float = match self {
            Self::Floats { first, .. } => *first,
            Self::Missing { .. } | Self::Histograms { .. } => 0.0,
        };
        (0..count).map(move |times| match self {
            Self::Missing { .. } => SeriesValue::Missing,
            Self::Floats { change, .. } => {
                // Added one by one, as Prometheus does: a product would round differently. A
                // change of nothing leaves even the bits of `stale` alone.
                if times > 0 && *change != 0.0 {
                    float += change;
                }
                SeriesValue::Float(float)
            }
            Self::Histograms { first, change, .. } => SeriesValue::Histogram {
                first,
                change: change.as_ref().map(|(sign, text)| (*sign, text.as_str())),
                times,
            },
        })
    }
}

impl Cursor<'_> {
    fn series(&mut self) -> Parsed<SeriesDescription> {
        let labels = self.series_labels()?;
        let items = self.series_items()?;
        Ok(SeriesDescription { labels, items })
    }

    fn series_labels(&mut self) -> Parsed<BTreeMap<String, String>> {
        const CONTEXT: &str = "label set";
        let mut labels = BTreeMap::new();
        let name = if self.peek()?.may_name_a_metric() { Some(self.take()?) } else { None };
        if self.peek()? == Kind::LeftBrace {
            self.take()?;
            while !self.take_if(Kind::RightBrace)? {
                let label = self.series_label();
                let (name, value) = self.within(CONTEXT, "identifier or \"}\"", label)?;
                labels.insert(name, value);
                match self.peek()? {
                    Kind::Comma => {
                        self.take()?;
                    }
                    Kind::RightBrace => {}
                    _ => return Err(self.unexpected(CONTEXT, "\",\" or \"}\"")),
                }
            }
        }
        if let Some(name) = name {
            labels.insert(METRIC_NAME.to_owned(), self.text_of(name).to_owned());
        }
        Ok(labels)
    }

    fn series_label(&mut self) -> Parsed<(String, String)> {
        const CONTEXT: &str = "label set";
        let name = match self.peek()? {
            Kind::Identifier => {
                let name = self.take()?;
                if self.peek()? != Kind::Assign {
                    return Err(self.unexpected(CONTEXT, "\"=\""));
                }
                self.text_of(name).to_owned()
            }
            Kind::String => {
                let literal = self.take()?;
                let text = self.string_text(literal)?;
                if self.peek()? != Kind::Assign {
                    return Ok((METRIC_NAME.to_owned(), text));
                }
                text
            }
            _ => return Err(Fault::Unexpected),
        };
        self.take()?;
        let literal = self.expect(Kind::String);
        let literal = self.within(CONTEXT, "string", literal)?;
        Ok((name, self.string_text(literal)?))
    }

    fn series_items(&mut self) -> Parsed<Vec<SeriesItem>> {
        const CONTEXT: &str = "series values";
        let mut items = Vec::new();
        if !matches!(self.peek()?, Kind::Space | Kind::End) {
            return Err(self.unexpected(CONTEXT, ""));
        }
        while self.take_if(Kind::Space)? {
            if self.peek()?.begins_series_item() {
                let item = self.series_item();
                items.push(self.within(CONTEXT, "", item)?);
            }
        }
        self.expect(Kind::End)?;
        Ok(items)
    }

    fn series_item(&mut self) -> Parsed<SeriesItem> {
        match self.peek()? {
            Kind::Blank => {
                self.take()?;
                let count = self.repetition()?.unwrap_or(1);
                Ok(SeriesItem::Missing { count })
            }
            Kind::Histogram => self.series_histograms(),
            _ => self.series_floats(),
        }
    }

    fn series_floats(&mut self) -> Parsed<SeriesItem> {
        let first =
            if self.peek()? == Kind::Identifier { self.stale()? } else { self.signed_number()? };
        let changes = matches!(self.peek()?, Kind::Operator(BinaryOp::Add | BinaryOp::Sub));
        let change = if changes { self.signed_number()? } else { 0.0 };
        let more = match self.repetition()? {
            Some(more) => more,
            None if changes => return Err(Fault::Unexpected),
            None => 0,
        };
        Ok(SeriesItem::Floats { first, change, more })
    }

    fn stale(&mut self) -> Parsed<f64> {
        let word = self.take()?;
        if self.text_of(word) == "stale" {
            return Ok(f64::from_bits(STALE_BITS));
        }
        // Prometheus names the token it has seen last, whether or not it is the wrong one.
        Err(self.unexpected("series values", "number or \"stale\""))
    }

    fn series_histograms(&mut self) -> Parsed<SeriesItem> {
        let first = self.histogram()?;
        let sign = match self.peek()? {
            Kind::Operator(BinaryOp::Add) => Some(Sign::Plus),
            Kind::Operator(BinaryOp::Sub) => Some(Sign::Minus),
            _ => None,
        };
        let Some(sign) = sign else {
            let more = self.repetition()?.unwrap_or(0);
            return Ok(SeriesItem::Histograms { first, change: None, more });
        };
        self.take()?;
        let change = Some((sign, self.histogram()?));
        let more = self.repetition()?.ok_or(Fault::Unexpected)?;
        Ok(SeriesItem::Histograms { first, change, more })
    }

    fn histogram(&mut self) -> Parsed<String> {
        let token = self.expect(Kind::Histogram)?;
        let text = self.text_of(token);
        Ok(text[2..text.len() - 2].trim().to_owned())
    }

    /// `x` and a count.
    fn repetition(&mut self) -> Parsed<Option<u64>> {
        if !self.take_if(Kind::Times)? {
            return Ok(None);
        }
        let token = self.expect(Kind::Number)?;
        let text = self.text_of(token);
        text.parse().map(Some).map_err(|_| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let fault = if is_number { "value out of range" } else { "invalid syntax" };
            let text = quoted(text.as_bytes());
            self.refused(
                token.span,
                format!(
                    "invalid repetition in series values: strconv.ParseUint: parsing {text}: {fault}"
                ),
            )
        })
    }
}
