//! The kernels of a project in one table: for a terminal, and in Markdown.

use super::rows::{Row, format_share, mean_speedup, provenance_counts, unique_names};
use crate::cli::wrap::wrapped;

/// Columns if those of the terminal are not known.
const COLUMNS: usize = 80;

/// A longer name is in a line of its own: the winner needs the rest of the 80 columns.
const LONGEST_NAME: usize = 26;

/// Returns the table of rows, in lines of at most `columns`.
pub fn table(rows: &[Row], columns: Option<usize>) -> String {
    let columns = columns.unwrap_or(COLUMNS);
    let names = unique_names(rows);
    let lengths = names.iter().map(|name| name.chars().count()).filter(|&length| length <= LONGEST_NAME);
    let width = lengths.max().unwrap_or(0).max("kernel".len());
    let has_share = rows.iter().any(|row| row.gpu_share.is_some());
    let share = |text: &str| if has_share { format!("  {text:>6}") } else { String::new() };
    let mut text = format!("{:width$}  {:>7}{}  {:9}  {}\n", "kernel", "gain", share("share"), "chosen", "winner");
    let indent = width + 22 + share("").len();
    for (name, row) in names.iter().zip(rows) {
        let rest = format!(
            "{:>7}{}  {:9}  {}\n",
            format_gain(row),
            share(&format_share(row.gpu_share)),
            row.provenance.to_string(),
            row.winner
        );
        let first = if name.chars().count() > width { format!("{name}\n") } else { String::new() };
        let label = if first.is_empty() { name.as_str() } else { "" };
        text.push_str(&wrapped(&first, 2, Some(columns)));
        text.push_str(&wrapped(&format!("{label:width$}  {rest}"), indent, Some(columns)));
    }
    text + &wrapped(&format!("{}\n", format_summary(rows)), 2, Some(columns))
}

fn format_gain(row: &Row) -> String {
    format!("{:.2}x", row.speedup)
}

/// Returns the line below the table.
fn format_summary(rows: &[Row]) -> String {
    let mean = mean_speedup(rows).unwrap_or(1.0);
    let kernels = if rows.len() == 1 { "kernel" } else { "kernels" };
    format!("{} {kernels}: {}; {mean:.2}x in the geometric mean", rows.len(), provenance_counts(rows))
}

/// Returns the same table in GitHub's Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let has_share = rows.iter().any(|row| row.gpu_share.is_some());
    let (share, line) = if has_share { (" | share", " | ---:") } else { ("", "") };
    let mut text = format!(
        "| kernel | gain{share} | chosen | winner | baseline | GPU |\n| --- | ---:{line} | --- | --- | --- | --- |\n"
    );
    for (name, row) in unique_names(rows).iter().zip(rows) {
        let share = if has_share { format!(" | {}", format_share(row.gpu_share)) } else { String::new() };
        let gain = format!("{}{share}", format_gain(row));
        let cells = [
            escaped(name),
            gain,
            row.provenance.to_string(),
            format!("`{}`", row.winner),
            format!("`{}`", row.baseline),
            row.gpu.as_deref().map_or("-".to_owned(), escaped),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    format!("{text}\n{}\n", format_summary(rows))
}

/// Text in which Markdown sees nothing of its own.
fn escaped(text: &str) -> String {
    let special = |character: char| matches!(character, '|' | '_' | '*' | '`' | '<' | '\\');
    text.chars().flat_map(|character| special(character).then_some('\\').into_iter().chain([character])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::Provenance;
    use expect_test::expect;

    fn row(kernel: &str, speedup: f64, provenance: Provenance, winner: &str) -> Row {
        Row {
            kernel: kernel.to_owned(),
            source: "a.cu".to_owned(),
            record: "a.tune.json".to_owned(),
            architecture: "sm_90".to_owned(),
            gpu: Some("NVIDIA H200".to_owned()),
            provenance,
            speedup,
            winner: winner.to_owned(),
            baseline: "block=256".to_owned(),
            winner_us: Some(10.0),
            baseline_us: Some(10.0 * speedup),
            bottleneck: None,
            points: 8,
            timed: 4,
            gpu_us: None,
            gpu_share: None,
        }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("nbody", 1.61, Provenance::Measured, "block=256 regs=56"),
            row(
                "tiled",
                1.1,
                Provenance::Predicted,
                "block=32x8 regs=64 cache=cg carveout=50 TILE=16 UNROLL=4 VECTOR=2",
            ),
            row("reduce_of_a_very_long_name_float_256", 1.0, Provenance::Baseline, "block=256"),
        ]
    }

    #[test]
    fn long_names_and_winners_fit_80_columns() {
        let text = table(&rows(), Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            kernel     gain  chosen     winner
            nbody     1.61x  measured   block=256 regs=56
            tiled     1.10x  predicted  block=32x8 regs=64 cache=cg carveout=50 TILE=16
                                        UNROLL=4 VECTOR=2
            reduce_of_a_very_long_name_float_256
                      1.00x  baseline   block=256
            3 kernels: 1 measured, 1 predicted, 1 kept; 1.21x in the geometric mean
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn shares_of_the_gpu_time_have_a_column() {
        let mut rows = rows();
        (rows[0].gpu_share, rows[1].gpu_share) = (Some(0.725), Some(0.0004));
        let text = table(&rows, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect![[r#"
            kernel     gain   share  chosen     winner
            nbody     1.61x   72.5%  measured   block=256 regs=56
            tiled     1.10x    0.0%  predicted  block=32x8 regs=64 cache=cg carveout=50
                                                TILE=16 UNROLL=4 VECTOR=2
            reduce_of_a_very_long_name_float_256
                      1.00x       -  baseline   block=256
            3 kernels: 1 measured, 1 predicted, 1 kept; 1.21x in the geometric mean
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn markdown_escapes_names() {
        expect![[r#"
            | kernel | gain | chosen | winner | baseline | GPU |
            | --- | ---: | --- | --- | --- | --- |
            | nbody | 1.61x | measured | `block=256 regs=56` | `block=256` | NVIDIA H200 |
            | tiled | 1.10x | predicted | `block=32x8 regs=64 cache=cg carveout=50 TILE=16 UNROLL=4 VECTOR=2` | `block=256` | NVIDIA H200 |
            | reduce\_of\_a\_very\_long\_name\_float\_256 | 1.00x | baseline | `block=256` | `block=256` | NVIDIA H200 |

            3 kernels: 1 measured, 1 predicted, 1 kept; 1.21x in the geometric mean
        "#]].assert_eq(&markdown(&rows()));
    }

    #[test]
    fn equal_names_have_their_architecture_or_source() {
        let mut rows = vec![row("k", 1.0, Provenance::Baseline, "block=256"); 3];
        rows[1].architecture = "sm_80".to_owned();
        rows[2].source = "b.cu".to_owned();
        assert_eq!(unique_names(&rows), ["k (sm_90, a.tune.json)", "k (sm_80)", "k (b.cu)"]);
    }
}
