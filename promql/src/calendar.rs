//! Dates of the proleptic Gregorian calendar, from Unix seconds, in UTC. Leap seconds do not exist
//! here, as they do not in Unix time.

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Days of the calendar's cycle of 400 years.
const CYCLE_DAYS: u64 = 146_097;

/// Cycles from the year in which counting begins to the year zero: the most that keeps all seconds
/// of 64 bits up to the end of the range countable. Seconds before it come out at the other end, as
/// in Prometheus.
const CYCLES_BEFORE_ZERO: u64 = 730_692_556;

/// Days from the first of March of the year zero to the first of January 1970.
const DAYS_TO_UNIX: u64 = 719_468;

/// A date and the time of its day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    /// The year; zero is the year before the first.
    pub(crate) year: i64,
    /// From one.
    pub(crate) month: u64,
    /// From one.
    pub(crate) day: u64,
    /// From one.
    pub(crate) day_of_year: u64,
    /// From zero, which is Sunday.
    pub(crate) day_of_week: u64,
    /// From zero.
    pub(crate) hour: u64,
    /// From zero.
    pub(crate) minute: u64,
    /// From zero.
    pub(crate) second: u64,
}

impl Date {
    /// The date of an instant.
    pub(crate) fn of_unix_seconds(seconds: i64) -> Self {
        const OFFSET: u64 = (CYCLES_BEFORE_ZERO * CYCLE_DAYS + DAYS_TO_UNIX) * DAY;
        let counted = seconds.cast_unsigned().wrapping_add(OFFSET);
        let (days, second_of_day) = (counted / DAY, counted % DAY);
        let (cycle, day_of_cycle) = (days / CYCLE_DAYS, days % CYCLE_DAYS);
        // Years begin in March here, so that a leap day is the last day of its year.
        let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
            - day_of_cycle / 146_096)
            / 365;
        let since_march =
            day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let months_since_march = (5 * since_march + 2) / 153;
        let day = since_march - (153 * months_since_march + 2) / 5 + 1;
        let next_year = months_since_march >= 10;
        let month = if next_year { months_since_march - 9 } else { months_since_march + 3 };
        let year = (cycle * 400 + year_of_cycle + u64::from(next_year)).cast_signed()
            - (CYCLES_BEFORE_ZERO * 400).cast_signed();
        let day_of_year = if next_year {
            since_march - 305
        } else {
            since_march + 60 + u64::from(is_leap_year(year))
        };
        Self {
            year,
            month,
            day,
            day_of_year,
            // The first of March of the year zero was a Wednesday, and a cycle has whole weeks.
            day_of_week: (days + 3) % 7,
            hour: second_of_day / 3_600,
            minute: second_of_day % 3_600 / 60,
            second: second_of_day % 60,
        }
    }

    /// How many days the month has.
    pub(crate) fn days_in_month(&self) -> u64 {
        match self.month {
            2 => 28 + u64::from(is_leap_year(self.year)),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// As RFC 3339 writes it.
    pub(crate) fn rfc3339(&self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: i64) -> String {
        Date::of_unix_seconds(seconds).rfc3339()
    }

    #[test]
    fn known_instants_have_their_dates() {
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(1_136_239_445), "2006-01-02T22:04:05Z");
        assert_eq!(text(1_456_790_399), "2016-02-29T23:59:59Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59Z");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(text(-62_135_596_800), "0001-01-01T00:00:00Z");
        assert_eq!(text(-62_167_219_200), "0000-01-01T00:00:00Z");
    }

    #[test]
    fn days_follow_each_other_through_four_centuries() {
        let mut before = Date::of_unix_seconds(-86_400 * 146_097);
        for day in -146_096..146_097 {
            let date = Date::of_unix_seconds(day * 86_400);
            assert_eq!(date.day_of_week, (before.day_of_week + 1) % 7);
            if date.day == 1 {
                assert_eq!(before.day, before.days_in_month());
                assert_eq!(date.month, before.month % 12 + 1);
            } else {
                assert_eq!((date.day, date.month), (before.day + 1, before.month));
            }
            if date.day_of_year == 1 {
                assert_eq!((date.day, date.month, date.year), (1, 1, before.year + 1));
                assert_eq!(before.day_of_year, 365 + u64::from(is_leap_year(before.year)));
            } else {
                assert_eq!(date.day_of_year, before.day_of_year + 1);
            }
            before = date;
        }
        assert_eq!(Date::of_unix_seconds(0).day_of_week, 4, "a Thursday");
    }

    #[test]
    fn seconds_before_the_first_countable_year_come_out_at_the_other_end() {
        assert_eq!(Date::of_unix_seconds(i64::MAX).year, 292_277_026_596);
        assert_eq!(Date::of_unix_seconds(i64::MIN).year, 292_277_026_596);
    }
}
