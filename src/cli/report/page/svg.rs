//! Numbers -> SVG: scales, axes and marks. Colours are classes of the page's style sheet.
//!
//! Invariant: the text is well formed whatever the labels are, and the same input gives the
//! same bytes.

/// Text in which HTML and SVG see nothing of their own.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // No document may have them.
            character if character.is_control() && !matches!(character, '\n' | '\t') => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A number for people: three significant digits, thousands separated.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = whole.trim_start_matches('-');
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let sign = if whole.starts_with('-') { "-" } else { "" };
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

/// Formats a value that stands at an axis: short, so that it leaves room for the axis' title.
pub fn tick_label(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => number(value / 1e9) + "G",
        size if size >= 1e6 => number(value / 1e6) + "M",
        size if size >= 1e4 => number(value / 1e3) + "k",
        _ => number(value),
    }
}

/// A coordinate: a tenth of a pixel is enough.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Maps values to pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    least: f64,
    most: f64,
    /// Pixels of `least` and `most`.
    pixels: (f64, f64),
    is_logarithmic: bool,
}

/// Ratio of values from which on a scale is logarithmic.
const LOGARITHMIC_RATIO: f64 = 12.0;

impl Scale {
    /// Fits the values, with a margin; it is logarithmic if they are positive and far apart.
    /// `None` if there is no finite value.
    pub fn fitting(values: impl IntoIterator<Item = f64>, pixels: (f64, f64)) -> Option<Self> {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (least, most) = finite.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
        })?;
        let is_logarithmic = least > 0.0 && most / least > LOGARITHMIC_RATIO;
        let (least, most) = if is_logarithmic {
            (least / 1.15, most * 1.15)
        } else {
            let margin = if most > least { (most - least) * 0.06 } else { most.abs().max(1.0) * 0.1 };
            (if least >= 0.0 { (least - margin).max(0.0) } else { least - margin }, most + margin)
        };
        Some(Self { least, most, pixels, is_logarithmic })
    }

    /// A linear scale of exactly this range.
    pub fn linear(least: f64, most: f64, pixels: (f64, f64)) -> Self {
        Self { least, most, pixels, is_logarithmic: false }
    }

    /// Returns the pixel of a value.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Returns round values for marks on the axis, about five.
    pub fn ticks(&self) -> Vec<f64> {
        let steps = [1.0, 2.0, 5.0];
        if self.is_logarithmic {
            let decades = (self.most / self.least).log10();
            let steps = if decades > 3.0 { &steps[..1] } else { &steps[..] };
            let from = self.least.log10().floor() as i32;
            let all = (from..=from + decades as i32 + 1)
                .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
            return all.filter(|tick| (self.least..=self.most).contains(tick)).collect();
        }
        let range = self.most - self.least;
        let power = 10f64.powf((range / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| range / step <= 6.0);
        let Some(step) = step.filter(|step| *step > 0.0 && step.is_finite()) else { return Vec::new() };
        let first = (self.least / step).ceil() as i64;
        let ticks = (first..first + 12).map(|index| index as f64 * step);
        ticks.take_while(|tick| *tick <= self.most + step * 1e-9).collect()
    }
}

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Square,
    Diamond,
}

/// A picture under way.
pub struct Svg {
    text: String,
    width: f64,
    height: f64,
}

/// Pixels of a plot that axes and labels take: left, right, top, bottom.
pub const MARGINS: (f64, f64, f64, f64) = (64.0, 14.0, 12.0, 44.0);

impl Svg {
    /// Begins a picture. `label` says what it shows, for those who do not see it.
    pub fn new(label: &str, (width, height): (f64, f64)) -> Self {
        let (w, h) = (coordinate(width), coordinate(height));
        let text = format!(
            "<svg viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"group\" aria-label=\"{}\">",
            escaped(label)
        );
        Self { text, width, height }
    }

    /// Returns the pixels between the margins: from left to right, and from bottom to top.
    pub fn area(&self) -> ((f64, f64), (f64, f64)) {
        let (left, right, top, bottom) = MARGINS;
        ((left, self.width - right), (self.height - bottom, top))
    }

    /// Draws both axes with their ticks and titles.
    pub fn axes(&mut self, (x, x_title): (&Scale, &str), (y, y_title): (&Scale, &str)) {
        let ((left, right), (bottom, top)) = self.area();
        for tick in x.ticks() {
            let at = x.at(tick);
            self.line("grid", (at, bottom), (at, top));
            self.label("tick middle", (at, bottom + 15.0), &tick_label(tick));
        }
        for tick in y.ticks() {
            let at = y.at(tick);
            self.line("grid", (left, at), (right, at));
            self.label("tick end", (left - 6.0, at + 4.0), &tick_label(tick));
        }
        self.titles(x_title, y_title);
    }

    /// Draws the titles of both axes.
    pub fn titles(&mut self, x_title: &str, y_title: &str) {
        let ((left, right), (bottom, top)) = self.area();
        self.label("title middle", ((left + right) / 2.0, self.height - 8.0), x_title);
        let (x, y) = (13.0, (bottom + top) / 2.0);
        let at = format!("{} {}", coordinate(x), coordinate(y));
        self.text.push_str(&format!(
            "<text class=\"title middle\" transform=\"translate({at}) rotate(-90)\">{}</text>",
            escaped(y_title)
        ));
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &[from, to]);
    }

    /// Draws a line through these places.
    pub fn path(&mut self, class: &str, places: &[(f64, f64)]) {
        let places: Vec<String> =
            places.iter().map(|(x, y)| format!("{} {}", coordinate(*x), coordinate(*y))).collect();
        self.text.push_str(&format!("<path class=\"{class}\" d=\"M{}\"/>", places.join("L")));
    }

    /// Draws dots that say nothing by themselves, in one element: each pixel once.
    pub fn dots(&mut self, class: &str, places: impl IntoIterator<Item = (f64, f64)>) {
        let rounded = places.into_iter().map(|(x, y)| (x.round() as i64, y.round() as i64));
        let places: std::collections::BTreeSet<(i64, i64)> = rounded.collect();
        let path: String = places.iter().map(|(x, y)| format!("M{x} {y}h0")).collect();
        if !path.is_empty() {
            self.text.push_str(&format!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    pub fn label(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y) = (coordinate(x), coordinate(y));
        self.text.push_str(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(text)));
    }

    /// Draws a mark with a tip, which the pointer and the arrow keys show.
    pub fn mark(&mut self, (shape, class): (Mark, &str), (x, y): (f64, f64), tip: &str) {
        let at = |dx: f64, dy: f64| format!("{} {}", coordinate(x + dx), coordinate(y + dy));
        let attributes = tip_attributes(class, tip);
        self.text.push_str(&match shape {
            Mark::Circle => format!("<circle {attributes} cx=\"{}\" cy=\"{}\" r=\"4\"/>", coordinate(x), coordinate(y)),
            Mark::Square => {
                let corners = [at(-5.0, -5.0), at(5.0, -5.0), at(5.0, 5.0), at(-5.0, 5.0)];
                format!("<path {attributes} d=\"M{}z\"/>", corners.join("L"))
            }
            Mark::Diamond => {
                let corners = [at(0.0, -7.0), at(7.0, 0.0), at(0.0, 7.0), at(-7.0, 0.0)];
                format!("<path {attributes} d=\"M{}z\"/>", corners.join("L"))
            }
        });
    }

    /// Draws a rectangle with a tip.
    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(coordinate);
        self.text.push_str(&format!(
            "<rect {} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>",
            tip_attributes(class, tip)
        ));
    }

    /// Ends the picture.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }
}

/// What shows a mark's tip, and reads it out.
fn tip_attributes(class: &str, tip: &str) -> String {
    format!("class=\"{class}\" role=\"img\" aria-label=\"{}\"", escaped(tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_axes_have_at_most_six_characters() {
        for (value, expected) in [
            (5000.0, "5,000"),
            (20_000.0, "20k"),
            (500_000.0, "500k"),
            (1_250_000.0, "1.25M"),
            (2e10, "20G"),
            (0.25, "0.25"),
        ] {
            assert_eq!(tick_label(value), expected);
        }
    }

    #[test]
    fn numbers_have_three_digits_and_separators() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (1.5, "1.5"),
            (12.34, "12.3"),
            (999.0, "999"),
            (1234.5, "1,234"),
            (-1_234_567.0, "-1,234,567"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn scale_maps_its_ends_to_its_pixels() {
        let scale = Scale::linear(0.0, 10.0, (100.0, 0.0));
        assert_eq!((scale.at(0.0), scale.at(5.0), scale.at(10.0)), (100.0, 50.0, 0.0));
        assert_eq!(scale.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }

    #[test]
    fn scale_of_far_values_is_logarithmic() {
        let scale = Scale::fitting([1.0, 1000.0], (0.0, 300.0)).expect("it has values");
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0, 1000.0]);
        assert!((scale.at(10.0) - scale.at(1.0) - scale.at(100.0) + scale.at(10.0)).abs() < 1e-9);
    }

    #[test]
    fn scale_of_one_value_has_that_value_inside() {
        for value in [0.0, 7.0, 1e9] {
            let scale = Scale::fitting([value, f64::NAN, f64::INFINITY], (0.0, 100.0)).expect("it has a value");
            assert!((0.0..=100.0).contains(&scale.at(value)), "{value}");
            assert!(scale.ticks().len() < 12);
        }
        assert!(Scale::fitting([f64::NAN], (0.0, 1.0)).is_none());
    }

    #[test]
    fn labels_cannot_end_an_element() {
        let mut svg = Svg::new("a \"<b>\"", (10.0, 10.0));
        svg.label("tick", (1.0, 2.25), "</text><script>&");
        svg.mark((Mark::Circle, "timed"), (1.0, 1.0), "'\"\u{1b}");
        assert_eq!(
            svg.finish(),
            "<svg viewBox=\"0 0 10 10\" width=\"10\" height=\"10\" role=\"group\" aria-label=\"a &quot;&lt;b&gt;&quot;\">\
             <text class=\"tick\" x=\"1\" y=\"2.2\">&lt;/text&gt;&lt;script&gt;&amp;</text>\
             <circle class=\"timed\" role=\"img\" aria-label=\"&#39;&quot;\u{fffd}\" cx=\"1\" cy=\"1\" r=\"4\"/></svg>"
        );
    }

    #[test]
    fn dots_of_one_pixel_are_one_dot() {
        let mut svg = Svg::new("", (1.0, 1.0));
        svg.dots("rest", [(1.1, 2.0), (0.9, 2.2), (3.0, 4.0)]);
        assert!(svg.finish().contains("d=\"M1 2h0M3 4h0\""));
    }
}
