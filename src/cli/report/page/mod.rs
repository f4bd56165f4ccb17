//! `nvtune report --html FILE`: all kernels in one page that needs nothing else.
//!
//! In: rows and decisions. Out: HTML with its style sheet, script and plots inside; it loads
//! nothing, and its policy forbids to. The same records give the same bytes.

mod excerpt;
mod plots;
mod svg;

use super::reading::ReadRecord;
use super::rows::{Row, format_share, mean_speedup, provenance_counts, unique_names};
use crate::launch::shape;
use crate::record::Decision;
use excerpt::{Excerpt, excerpt};
use plots::Gain;
use std::collections::BTreeMap;
use svg::{escaped, number};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Reasons for refusals of a kernel, at most. They bound the page's size.
const MOST_REASONS: usize = 12;

/// What forbids the page to load anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// Returns the page of these kernels; `rows` belong to `kernels`, one by one.
pub fn page(rows: &[Row], kernels: &[(&ReadRecord, &Decision)]) -> String {
    let names = unique_names(rows);
    let mean = mean_speedup(rows).unwrap_or(1.0);
    let count = if rows.len() == 1 { "1 kernel".to_owned() } else { format!("{} kernels", rows.len()) };
    let summary = format!("{count}: {}; {mean:.2}x in the geometric mean.", provenance_counts(rows));
    let sections: String = kernels
        .iter()
        .zip(rows.iter().zip(&names))
        .enumerate()
        .map(|(index, ((read, decision), (row, name)))| kernel_section(index, name, row, read, decision))
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>nvtune report: {count}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<h1>nvtune report</h1>\n<p>{summary}</p>\n\
         <p class=\"soft\">Point at a mark, or focus a plot with Tab and use the arrow keys, to see what it is.</p>\n\
         {}{}{sections}</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        speedup_plot(rows, &names),
        table(rows, &names),
    )
}

/// A plot with its heading and a sentence about it.
fn figure(title: &str, plot: Option<String>, about: &str, missing: &str) -> String {
    match plot {
        Some(plot) => {
            let plot = plot.replacen("<svg ", "<svg tabindex=\"0\" ", 1);
            format!("<figure><h3>{title}</h3>{plot}<figcaption>{about}</figcaption></figure>\n")
        }
        None => format!("<p class=\"none\">No plot \u{201c}{title}\u{201d}: {missing}.</p>\n"),
    }
}

fn speedup_plot(rows: &[Row], names: &[String]) -> String {
    let gains: Vec<Gain<'_>> = rows
        .iter()
        .zip(names)
        .map(|(row, name)| {
            let tip = format!("{name}: {:.2}x, {}, {}", row.speedup, row.provenance, row.winner);
            Gain { name, speedup: row.speedup, tip }
        })
        .collect();
    if gains.len() < 2 {
        return String::new();
    }
    let about = "Time of the baseline over time of the winner.";
    // It stands above all kernels, whose own plots are below their headings.
    figure("Speed-ups", plots::speedups(&gains), about, "there is no kernel").replacen("h3>", "h2>", 2)
}

fn table(rows: &[Row], names: &[String]) -> String {
    let time = |us: Option<f64>| us.map_or("-".to_owned(), number);
    let has_share = rows.iter().any(|row| row.gpu_share.is_some());
    let share = |name: &str, text: &str| {
        if has_share { format!("<{name} class=\"figure\">{text}</{name}>") } else { String::new() }
    };
    let line = |(index, (row, name)): (usize, (&Row, &String))| {
        format!(
            "<tr><td><a href=\"#k{index}\">{}</a></td><td class=\"figure\">{:.2}x</td>{}<td>{}</td>\
             <td><code>{}</code></td>\
             <td class=\"figure\">{}</td><td class=\"figure\">{}</td><td>{}</td></tr>\n",
            escaped(name),
            row.speedup,
            share("td", &format_share(row.gpu_share)),
            row.provenance,
            escaped(&row.winner),
            time(row.winner_us),
            time(row.baseline_us),
            escaped(row.gpu.as_deref().unwrap_or("-")),
        )
    };
    let body: String = rows.iter().zip(names).enumerate().map(line).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All kernels\"><table>\n<thead><tr><th>Kernel</th>\
         <th class=\"figure\">Gain</th>{}<th>Chosen</th><th>Winner</th><th class=\"figure\">Winner, us</th>\
         <th class=\"figure\">Baseline, us</th><th>GPU</th></tr></thead>\n<tbody>\n{body}</tbody></table></div>\n",
        share("th", "GPU time"),
    )
}

fn kernel_section(index: usize, name: &str, row: &Row, read: &ReadRecord, decision: &Decision) -> String {
    let legend = keys(&["winner", "baseline", "timed"]);
    let scored = "the record has no scores: it was taken from the lock file or the cache";
    let figures = [
        figure(
            "Pareto plot",
            plots::pareto(decision),
            &format!(
                "Less of both is better (PO of Liang et al.). Grey: not timed; stronger grey: Pareto-optimal.{legend}"
            ),
            scored,
        ),
        figure(
            "Block shapes",
            plots::heat_map(decision),
            "The least time of each shape. Blue is fast, yellow is slow; faint is predicted. Solid outline: winner; dashed: baseline.",
            scored,
        ),
        figure(
            "Register caps",
            plots::cap_curve(decision),
            &format!("With the winner's block and macros. Hollow and dashed: predicted.{legend}"),
            "the record has fewer than two caps with a time for the winner's block",
        ),
        figure(
            "Search",
            plots::progress(decision),
            &format!("Each timing in its order; the line is the least so far.{legend}"),
            "the record has no order of timings: nothing was timed, or an earlier nvtune wrote it",
        ),
        figure(
            "Parts of the predicted time",
            plots::bottlenecks(decision),
            &format!("What each part would take alone.{}", keys(&["winner", "baseline"])),
            "the record has no parts of the predicted time",
        ),
    ];
    let (missing, plots): (Vec<&String>, Vec<&String>) = figures.iter().partition(|figure| figure.starts_with("<p"));
    let join = |parts: Vec<&String>| parts.into_iter().map(String::as_str).collect::<String>();
    format!(
        "<section>\n<h2 id=\"k{index}\">{}</h2>\n<p>{:.2}x, {}: <code>{}</code></p>\n<p class=\"soft\">{}</p>\n\
         <div class=\"plots\">\n{}</div>\n{}{}{}</section>\n",
        escaped(name),
        row.speedup,
        row.provenance,
        escaped(&row_title(row, decision)),
        escaped(&fact_table(row, decision)),
        join(plots),
        join(missing),
        refusal_list(decision),
        source(read, decision),
    )
}

/// The marks of a plot and what they stand for, each also the class of its colour.
fn keys(names: &[&str]) -> String {
    let key = |name: &&str| format!("<span><span class=\"key {name}\"></span>{name}</span> ");
    format!(" <span class=\"keys\">{}</span>", names.iter().map(key).collect::<String>())
}

/// The winner, its grid, and both times if it is not the baseline.
fn row_title(row: &Row, decision: &Decision) -> String {
    let grid = shape(decision.configurations[decision.winner].launch.grid);
    let times = row.winner_us.zip(row.baseline_us).filter(|_| decision.winner != decision.baseline);
    let times = times.map(|(own, its)| format!(": {} us instead of {} us", number(own), number(its)));
    format!("{}, grid {grid}{}", row.winner, times.unwrap_or_default())
}

/// The line of facts below the heading of a kernel.
fn fact_table(row: &Row, decision: &Decision) -> String {
    let bottleneck = row.bottleneck.map(|bottleneck| format!("; predicted to be bound by {bottleneck}"));
    let share = row.gpu_share.map(|_| format!("; {} of the recorded GPU time", format_share(row.gpu_share)));
    format!(
        "{}, {}, {}; {} of {} points timed by {}, {:.1} s{}{}. Baseline: {}",
        row.source,
        row.architecture,
        row.gpu.as_deref().unwrap_or("no GPU"),
        row.timed,
        row.points,
        decision.strategy,
        decision.seconds.total(),
        bottleneck.unwrap_or_default(),
        share.unwrap_or_default(),
        row.baseline,
    )
}

/// What was refused and why, and the notes.
fn refusal_list(decision: &Decision) -> String {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for found in &decision.configurations {
        if let Some(reason) = &found.refused {
            reasons.entry(reason).or_default().push(found.configuration.to_string());
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.len()));
    let refused = reasons.iter().take(MOST_REASONS).map(|(reason, refused)| {
        let rest = if refused.len() > 1 { format!(" and {} more", refused.len() - 1) } else { String::new() };
        format!("<li><code>{}</code>{rest}: {}</li>\n", escaped(&refused[0]), escaped(reason))
    });
    let notes = decision.all_held().chain(decision.notes.iter().cloned());
    let notes = notes.map(|note| format!("<li>{}</li>\n", escaped(&note)));
    let items: String = refused.chain(notes).collect();
    if items.is_empty() { String::new() } else { format!("<h3>Refused, and notes</h3>\n<ul>\n{items}</ul>\n") }
}

fn source(read: &ReadRecord, decision: &Decision) -> String {
    let name = escaped(&read.record.source);
    match excerpt(&read.record, &decision.name) {
        Ok(Excerpt { first, lines, comment }) => {
            let lines: String = lines
                .iter()
                .enumerate()
                .map(|(index, line)| {
                    let line = escaped(line);
                    if index < comment { format!("<mark>{line}</mark>\n") } else { format!("{line}\n") }
                })
                .collect();
            format!(
                "<details><summary>Source: {name}, from line {first}</summary><pre tabindex=\"0\">{lines}</pre></details>\n"
            )
        }
        Err(why) => format!("<p class=\"none\">No source: {name} {why}.</p>\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::report::gpu_time::GpuTimes;
    use crate::launch::{Configuration, Launch};
    use crate::model::Terms;
    use crate::record::{Record, RecordedConfiguration, RecordedTiming};

    /// A decision of 1,024 configurations, all timed.
    fn decision(name: &str) -> Decision {
        let configurations = (0..1024u32).map(|index| {
            let (block, cap) = ([32 * (1 + index % 32), 1 + index / 256, 1], 8 * (index / 32 % 8));
            let macros = [("TILE_OF_A_LONG_NAME".to_owned(), i64::from(index))].into();
            let configuration = Configuration { cap, macros, ..Configuration::of_block(block) };
            RecordedConfiguration {
                configuration,
                launch: Launch { grid: [1024, 1, 1], block, shared: 0, carveout: None, coarsening: None },
                variant: Some(index as usize),
                score: None,
                pareto: false,
                candidate: true,
                promised: None,
                timing: Some(RecordedTiming {
                    median_us: 100.0 + f64::from(index * 7919 % 1009),
                    spread: 0.01,
                    samples: 7,
                    paired_us: None,
                    warm_us: None,
                    tolerance_used: None,
                    earlier: false,
                    order: Some(1 + index as usize),
                }),
                parts: (index < 2).then(|| Terms { latency: 50.0, issue: 20.0, ..Terms::default() }),
                refused: (index % 100 == 9).then(|| format!("<b>{index}</b>")),
            }
        });
        Decision {
            name: name.to_owned(),
            winner: 1,
            speedup: 1.5,
            configurations: configurations.collect(),
            ..Decision::default()
        }
    }

    fn made(kernels: Vec<Decision>) -> String {
        let record = Record {
            format: 1,
            nvtune: String::new(),
            source: "<a>.cu".to_owned(),
            folder: "/none".to_owned(),
            arguments: Vec::new(),
            kernels,
        };
        let read = ReadRecord { path: "a.tune.json".into(), record };
        let kernels: Vec<_> = read.record.kernels.iter().map(|decision| (&read, decision)).collect();
        let rows: Vec<Row> =
            kernels.iter().map(|(read, decision)| Row::new(read, decision, &GpuTimes::default())).collect();
        page(&rows, &kernels)
    }

    #[test]
    fn page_of_40_large_kernels_is_below_2_megabytes() {
        let page = made((0..40).map(|index| decision(&format!("kernel_{index}"))).collect());
        assert!(page.len() < 2_000_000, "{}", page.len());
        assert_eq!(page.matches("<section>").count(), 40);
    }

    #[test]
    fn page_loads_nothing_and_escapes_what_it_shows() {
        let page = made(vec![decision("k<script>")]);
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains(" src="), "{page}");
        assert!(page.contains(POLICY) && !page.contains("k<script>") && page.contains("k&lt;script&gt;"));
        assert!(page.contains("<code>block=320 TILE_OF_A_LONG_NAME=9</code>: &lt;b&gt;9&lt;/b&gt;"), "{page}");
        assert!(page.contains("<p class=\"none\">No source: &lt;a&gt;.cu is not there any more.</p>"), "{page}");
    }

    #[test]
    fn plot_without_data_is_left_out_with_a_sentence() {
        let mut locked = decision("k");
        locked.configurations.truncate(2);
        for found in &mut locked.configurations {
            (found.timing, found.parts) = (None, None);
        }
        let page = made(vec![locked]);
        assert!(!page.contains("<svg"), "{page}");
        assert_eq!(page.matches("<p class=\"none\">No plot ").count(), 5, "{page}");
    }

    #[test]
    fn heading_is_at_most_one_level_below_the_one_before() {
        let page = made(vec![decision("k"), decision("l")]);
        let levels: Vec<u32> = page.split("<h").filter_map(|rest| rest.chars().next()?.to_digit(10)).collect();
        assert!(levels.len() > 8 && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    }

    #[test]
    fn every_step_of_the_heat_map_has_a_colour() {
        let page = made(vec![decision("k")]);
        for step in 0..7 {
            assert!(page.contains(&format!("class=\"heat{step}")), "{step}");
            assert!(STYLE.contains(&format!(".heat{step} {{")), "{step}");
        }
        assert!(!page.contains("class=\"heat7"));
    }
}
