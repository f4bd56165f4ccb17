//! A decision -> its plots. A plot that the record has no data for is `None`; the page says why.

use super::svg::{Mark, Scale, Svg, number, tick_label};
use crate::launch::Configuration;
use crate::model::Terms;
use crate::record::{Decision, RecordedConfiguration};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Pixels of a plot.
const SIZE: (f64, f64) = (520.0, 320.0);

/// Marks with a tip in a plot, at most; the slower ones are plain dots. They bound the page's size.
const MOST_MARKS: usize = 48;

/// Columns and rows of a heat map, at most.
const MOST_COLUMNS: usize = 40;
const MOST_ROWS: usize = 14;

/// Steps of colour of a heat map; the style sheet has one class for each.
const HEAT_STEPS: usize = 7;

/// Returns the time of a configuration in microseconds, and whether it was measured.
fn time(found: &RecordedConfiguration) -> Option<(f64, bool)> {
    match (&found.timing, &found.score) {
        (Some(timing), _) => Some((timing.median_us, true)),
        (None, Some(score)) if score.feasible && score.predicted_us.is_finite() => Some((score.predicted_us, false)),
        (None, _) => None,
    }
}

fn time_label(us: f64, is_measured: bool) -> String {
    format!("{} us{}", number(us), if is_measured { "" } else { " predicted" })
}

/// Shape and class of a configuration's mark.
fn point_mark(decision: &Decision, index: usize) -> (Mark, &'static str) {
    match index {
        _ if index == decision.winner && index != decision.baseline => (Mark::Diamond, "winner"),
        _ if index == decision.baseline => (Mark::Square, "baseline"),
        _ if decision.configurations[index].refused.is_some() => (Mark::Circle, "refused"),
        _ => (Mark::Circle, "timed"),
    }
}

/// Lists the configurations that have marks of their own: winner, baseline, and the fastest of
/// those with a time, of the ones with equal code and launch one only. The last come on top.
fn labelled_points(decision: &Decision, has_data: impl Fn(usize) -> bool) -> Vec<usize> {
    let all = &decision.configurations;
    let mut timed: Vec<usize> =
        (0..all.len()).filter(|&index| all[index].timing.is_some() && has_data(index)).collect();
    timed.sort_by(|&a, &b| all[a].compare(&all[b]));
    let ends = [decision.winner, decision.baseline];
    let point = |index: usize| (all[index].variant, all[index].launch, all[index].configuration.exact_block);
    let mut seen: HashSet<_> = ends.iter().map(|&index| point(index)).collect();
    timed.retain(|&index| seen.insert(point(index)));
    timed.truncate(MOST_MARKS);
    timed.reverse();
    timed.extend([decision.baseline, decision.winner].into_iter().filter(|&index| has_data(index)));
    timed.dedup();
    timed
}

/// Draws T against C for all configurations that have a score.
pub fn pareto(decision: &Decision) -> Option<String> {
    let all = &decision.configurations;
    let metrics = |index: usize| {
        let score = all[index].score.filter(|score| score.feasible && score.t.is_finite() && score.c.is_finite())?;
        Some((score.t, score.c))
    };
    let places: Vec<(usize, (f64, f64))> = (0..all.len()).filter_map(|index| Some((index, metrics(index)?))).collect();
    if places.len() < 2 {
        return None;
    }
    let mut svg = Svg::new("Free threads of an SM (T) against cycles of one thread (C)", SIZE);
    let (x_pixels, y_pixels) = svg.area();
    let x = Scale::fitting(places.iter().map(|(_, (t, _))| *t), x_pixels)?;
    let y = Scale::fitting(places.iter().map(|(_, (_, c))| *c), y_pixels)?;
    svg.axes((&x, "T: threads that an SM has room for"), (&y, "C: cycles of one thread"));
    let pixel = |(t, c): (f64, f64)| (x.at(t), y.at(c));
    svg.dots("rest", places.iter().map(|(_, place)| pixel(*place)));
    svg.dots("optimal", places.iter().filter(|(index, _)| all[*index].pareto).map(|(_, place)| pixel(*place)));
    for index in labelled_points(decision, |index| metrics(index).is_some()) {
        let Some((t, c)) = metrics(index) else { continue };
        let us =
            time(&all[index]).map(|(us, is_measured)| format!("{}, ", time_label(us, is_measured))).unwrap_or_default();
        let tip = format!("{}: {us}T {}, C {}", all[index].configuration, number(t), number(c));
        svg.mark(point_mark(decision, index), pixel((t, c)), &tip);
    }
    Some(svg.finish())
}

/// One cell of a heat map: the least time, and whether it was measured.
type Cells = BTreeMap<(u64, u64), (f64, bool, usize)>;

/// Draws the least time of each block shape: x against y, or against the register cap if all
/// blocks have one dimension.
pub fn heat_map(decision: &Decision) -> Option<String> {
    let all = &decision.configurations;
    let is_flat = all.iter().all(|found| found.configuration.block[1..] == [1, 1]);
    let row = |configuration: &Configuration| {
        let [_, y, z] = configuration.block;
        if is_flat { u64::from(configuration.cap) } else { u64::from(y) << 32 | u64::from(z) }
    };
    let mut cells = Cells::new();
    for (index, found) in all.iter().enumerate() {
        let Some((us, is_measured)) = time(found) else { continue };
        let cell = cells.entry((row(&found.configuration), found.configuration.block[0].into()));
        let best = cell.or_insert((us, is_measured, index));
        // A measured time says more than a predicted one.
        if (is_measured, -us) > (best.1, -best.0) {
            *best = (us, is_measured, index);
        }
    }
    let mut rows: Vec<u64> = cells.keys().map(|(row, _)| *row).collect::<BTreeSet<_>>().into_iter().collect();
    let mut columns: Vec<u64> = cells.keys().map(|(_, column)| *column).collect::<BTreeSet<_>>().into_iter().collect();
    if rows.len() * columns.len() < 2 {
        return None;
    }
    let ends = [decision.winner, decision.baseline].map(|index| &all[index].configuration);
    thin_out(&mut rows, MOST_ROWS, &ends.map(row));
    thin_out(&mut columns, MOST_COLUMNS, &ends.map(|end| end.block[0].into()));
    let row_name = |row: u64| match (is_flat, row) {
        (true, 0) => "none".to_owned(),
        (true, cap) => cap.to_string(),
        (false, row) if row & 0xffff_ffff == 1 => (row >> 32).to_string(),
        (false, row) => format!("{}x{}", row >> 32, row & 0xffff_ffff),
    };
    let height = SIZE.1.min(86.0 + 32.0 * rows.len() as f64);
    let mut svg = Svg::new("Least time of each block shape", (SIZE.0, height));
    let ((left, right), (bottom, top)) = svg.area();
    let (width, height) = ((right - left) / columns.len() as f64, (bottom - top) / rows.len() as f64);
    let shown = || {
        rows.iter().enumerate().flat_map(|(y, row)| {
            columns
                .iter()
                .enumerate()
                .filter_map(|(x, column)| Some(((x, y), cells.get(&(*row, *column))?)))
                .collect::<Vec<_>>()
        })
    };
    let times = || shown().map(|(_, (us, ..))| *us);
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let every = columns.len().div_ceil(12);
    for (x, column) in columns.iter().enumerate().step_by(every) {
        svg.label("tick middle", (left + (x as f64 + 0.5) * width, bottom + 15.0), &column.to_string());
    }
    for (y, row) in rows.iter().enumerate() {
        svg.label("tick end", (left - 6.0, top + (y as f64 + 0.5) * height + 4.0), &row_name(*row));
    }
    svg.titles("threads of a block in x", if is_flat { "register cap" } else { "in y" });
    for ((x, y), (us, is_measured, index)) in shown() {
        let share = if most > least { (us / least).ln() / (most / least).ln() } else { 0.0 };
        let step = ((share * HEAT_STEPS as f64) as usize).min(HEAT_STEPS - 1);
        let holds = |end: usize| {
            let end = &all[end].configuration;
            (row(end), u64::from(end.block[0])) == (rows[y], columns[x])
        };
        let outline = match () {
            () if holds(decision.winner) => " is-winner",
            () if holds(decision.baseline) => " is-baseline",
            () => "",
        };
        let guess = if *is_measured { "" } else { " guess" };
        let tip = format!("{}: {}", all[*index].configuration, time_label(*us, *is_measured));
        let place = (left + x as f64 * width + 1.0, top + y as f64 * height + 1.0);
        svg.bar(&format!("heat{step}{guess}{outline}"), place, (width - 2.0, height - 2.0), &tip);
    }
    Some(svg.finish())
}

/// Leaves out values until at most `most` are left, never those of `kept`.
fn thin_out(values: &mut Vec<u64>, most: usize, kept: &[u64]) {
    let step = values.len().div_ceil(most.max(1)).max(1);
    let mut index = 0usize;
    values.retain(|value| {
        index += 1;
        (index - 1).is_multiple_of(step) || kept.contains(value)
    });
}

/// Draws time against the register cap, for the winner's block and macros.
pub fn cap_curve(decision: &Decision) -> Option<String> {
    let all = &decision.configurations;
    let curve = |of: usize| {
        let of = &all[of].configuration;
        let is_like = |other: &Configuration| Configuration { cap: of.cap, ..other.clone() } == *of;
        let mut curve: Vec<(u32, usize)> = (0..all.len())
            .filter(|&index| is_like(&all[index].configuration) && time(&all[index]).is_some())
            .map(|index| (all[index].configuration.cap, index))
            .collect();
        curve.sort_unstable();
        curve
    };
    // Code for exactly one block is tried with few caps.
    let inexact = |index: usize| {
        let plain = Configuration {
            exact_block: false,
            shared_spills: false,
            coarsening: None,
            ..all[index].configuration.clone()
        };
        all.iter().position(|found| found.configuration == plain).unwrap_or(index)
    };
    let curve = curve(inexact(decision.winner));
    if curve.len() < 2 {
        return None;
    }
    let mut svg = Svg::new("Time of each register cap", SIZE);
    let ((left, right), y_pixels) = svg.area();
    let us = |index: usize| time(&all[index]).map_or(f64::NAN, |(us, _)| us);
    let y = Scale::fitting(curve.iter().map(|(_, index)| us(*index)), y_pixels)?;
    for tick in y.ticks() {
        svg.line("grid", (left, y.at(tick)), (right, y.at(tick)));
        svg.label("tick end", (left - 6.0, y.at(tick) + 4.0), &tick_label(tick));
    }
    let step = (right - left) / curve.len() as f64;
    let x = |place: usize| left + (place as f64 + 0.5) * step;
    let every = curve.len().div_ceil(12);
    for (place, (cap, _)) in curve.iter().enumerate().step_by(every) {
        let name = if *cap == 0 { "none".to_owned() } else { cap.to_string() };
        svg.label("tick middle", (x(place), y_pixels.0 + 15.0), &name);
    }
    svg.titles("register cap", "time in us");
    for (class, is_wanted) in [("curve", true), ("curve guess", false)] {
        let is_of = |index: usize| time(&all[index]).is_some_and(|(_, is_measured)| is_measured == is_wanted);
        let places: Vec<(f64, f64)> = curve
            .iter()
            .enumerate()
            .filter(|(_, (_, index))| is_of(*index))
            .map(|(place, (_, index))| (x(place), y.at(us(*index))))
            .collect();
        if places.len() > 1 {
            svg.path(class, &places);
        }
    }
    for (place, (_, index)) in curve.iter().enumerate() {
        let Some((us, is_measured)) = time(&all[*index]) else { continue };
        let (shape, class) = point_mark(decision, *index);
        let class = if is_measured { class.to_owned() } else { format!("{class} guess") };
        let tip = format!("{}: {}", all[*index].configuration, time_label(us, is_measured));
        svg.mark((shape, &class), (x(place), y.at(us)), &tip);
    }
    Some(svg.finish())
}

/// Draws the times in the order in which they were taken, and the least so far.
pub fn progress(decision: &Decision) -> Option<String> {
    let all = &decision.configurations;
    let mut seen = BTreeMap::new();
    for (index, found) in all.iter().enumerate() {
        if let Some((order, us)) = found.timing.as_ref().and_then(|timing| Some((timing.order?, timing.median_us))) {
            // Several configurations with equal code and launch have one timing.
            let is_end = index == decision.winner || index == decision.baseline;
            let entry = seen.entry(order).or_insert((index, us));
            if is_end {
                *entry = (index, us);
            }
        }
    }
    if seen.len() < 2 {
        return None;
    }
    let mut svg = Svg::new("Times in the order in which they were taken", SIZE);
    let (x_pixels, y_pixels) = svg.area();
    let x = Scale::linear(0.0, seen.keys().copied().max()? as f64 + 1.0, x_pixels);
    let y = Scale::fitting(seen.values().map(|(_, us)| *us), y_pixels)?;
    svg.axes((&x, "timings"), (&y, "time in us"));
    let mut best = f64::INFINITY;
    let mut steps = Vec::new();
    for (order, (_, us)) in &seen {
        if *us < best {
            if best.is_finite() {
                steps.push((x.at(*order as f64), y.at(best)));
            }
            best = *us;
            steps.push((x.at(*order as f64), y.at(best)));
        }
    }
    steps.push((x_pixels.1, y.at(best)));
    svg.path("curve", &steps);
    let own: HashSet<usize> = seen
        .values()
        .map(|(index, _)| *index)
        .filter(|index| *index == decision.winner || *index == decision.baseline)
        .collect();
    let place = |order: usize, us: f64| (x.at(order as f64), y.at(us));
    let many = seen.len() > 2 * MOST_MARKS;
    if many {
        svg.dots("dot", seen.iter().map(|(order, (_, us))| place(*order, *us)));
    }
    for (order, (index, us)) in seen.iter().filter(|(_, (index, _))| !many || own.contains(index)) {
        let tip = format!("{order}: {}: {} us", all[*index].configuration, number(*us));
        svg.mark(point_mark(decision, *index), place(*order, *us), &tip);
    }
    Some(svg.finish())
}

/// The parts of a predicted time, with their names in the words of the report.
fn time_parts(terms: &Terms) -> [(&'static str, f64); 9] {
    [
        ("latency", terms.latency),
        ("instruction issue", terms.issue),
        ("execution units", terms.pipe),
        ("shared memory, L1", terms.memory_pipe),
        ("L2 cache", terms.cache),
        ("device memory", terms.device),
        ("atomics", terms.atomics),
        ("constant cache", terms.constant),
        ("starting blocks", terms.launch),
    ]
}

/// Draws what each part of the prediction would take alone, for winner and baseline.
pub fn bottlenecks(decision: &Decision) -> Option<String> {
    let rows = |index: usize| decision.configurations[index].parts.as_ref().map(time_parts);
    let is_kept = decision.winner == decision.baseline;
    let (winner, baseline) = (rows(decision.winner).filter(|_| !is_kept), rows(decision.baseline));
    let series: Vec<(&str, [(&str, f64); 9])> = [("baseline", baseline), ("winner", winner)]
        .into_iter()
        .filter_map(|(name, rows)| Some((name, rows?)))
        .collect();
    let most = series.iter().flat_map(|(_, rows)| rows.iter().map(|(_, us)| *us)).fold(0.0, f64::max);
    if !(most > 0.0 && most.is_finite()) {
        return None;
    }
    let (left, right, bar) = (128.0, SIZE.0 - 56.0, 11.0);
    let group = bar * series.len() as f64 + 8.0;
    let height = 9.0 * group + 30.0;
    let mut svg = Svg::new("What each part of the predicted time would take alone", (SIZE.0, height));
    let x = Scale::linear(0.0, most, (left, right));
    for row in 0..9 {
        let top = 4.0 + row as f64 * group;
        svg.label("tick end", (left - 6.0, top + (group - 8.0) / 2.0 + 4.0), series[0].1[row].0);
        for (place, (name, rows)) in series.iter().enumerate() {
            let (part, us) = rows[row];
            let y = top + place as f64 * bar;
            svg.bar(name, (left, y), (x.at(us) - left, bar - 2.0), &format!("{part}, {name}: {} us", number(us)));
            svg.label("value", (x.at(us) + 4.0, y + bar - 2.5), &number(us));
        }
    }
    svg.label("title middle", ((left + right) / 2.0, height - 8.0), "us");
    Some(svg.finish())
}

/// One bar of the speed-ups.
pub struct Gain<'a> {
    pub name: &'a str,
    pub speedup: f64,
    pub tip: String,
}

/// Draws the gains of all kernels, in their order.
pub fn speedups(gains: &[Gain<'_>]) -> Option<String> {
    let most = gains.iter().map(|gain| gain.speedup).filter(|gain| gain.is_finite()).fold(1.0, f64::max);
    if gains.is_empty() {
        return None;
    }
    let (left, right, row) = (180.0, 560.0, 18.0);
    let height = row * gains.len() as f64 + 44.0;
    let mut svg = Svg::new("Speed-up of each kernel", (620.0, height));
    let x = Scale::linear(1.0, most.max(1.1), (left, right));
    let bottom = height - 40.0;
    for tick in x.ticks() {
        svg.line("grid", (x.at(tick), 0.0), (x.at(tick), bottom));
        svg.label("tick middle", (x.at(tick), bottom + 15.0), &format!("{}x", number(tick)));
    }
    for (place, Gain { name, speedup, tip }) in gains.iter().enumerate() {
        let y = place as f64 * row + 2.0;
        svg.label("tick end", (left - 6.0, y + 11.0), &shorten_name(name));
        let end = x.at(speedup.clamp(1.0, most));
        svg.bar("winner", (left, y), (end - left, row - 5.0), tip);
        svg.label("value", (end + 5.0, y + 11.0), &format!("{speedup:.2}x"));
    }
    svg.label("title middle", ((left + right) / 2.0, height - 8.0), "speed-up over the baseline");
    Some(svg.finish())
}

/// A name that fits left of its bar.
fn shorten_name(name: &str) -> String {
    const MOST: usize = 27;
    if name.chars().count() <= MOST { name.to_owned() } else { name.chars().take(MOST - 1).chain(['…']).collect() }
}
