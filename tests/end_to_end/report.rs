//! `nvtune report`: the table of a project, one kernel in detail, and the table as data.

use super::project::{CAPS_WIN, Project, compile, nvcc, run, succeed};
use crate::support::full::is_full;
use crate::support::record_schema::violations;
use expect_test::expect;
use std::process::Command;
use std::sync::LazyLock;

/// Two timed kernels and one that the model decides, in records of two folders.
fn project() -> Project {
    let project = Project::new(&["two.cu", "saxpy.cu"]);
    // Without noise, so that medians are the recorded times.
    project.write("recorded.json", &CAPS_WIN.replace(", \"spread\": 0.01", ""));
    std::fs::create_dir(project.path("out")).expect("a folder");
    let mut timed = project.nvtune(&compile("two.cu", "out/two.o"));
    succeed(timed.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    succeed(&mut project.nvtune(&compile("saxpy.cu", "out/saxpy.o")));
    project
}

/// The same, for tests that change none of its records.
static PROJECT: LazyLock<Project> = LazyLock::new(project);

fn report(project: &Project, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    command.arg("report").args(arguments).current_dir(project.path("")).env("NVTUNE_NVCC", nvcc());
    command.env("COLUMNS", "80");
    command
}

#[test]
#[ignore = "long: in the full run"]
fn several_records_are_a_table_by_gain_in_80_columns() {
    let project = project();
    let table = succeed(&mut report(&project, &[])).stdout;
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    expect![[r#"
        kernel      gain  chosen     winner
        bounded    1.50x  measured   block=128 regs=32
        first      1.50x  measured   block=128 regs=24
        saxpy      1.00x  baseline   block=256
        3 kernels: 2 measured, 1 kept; 1.31x in the geometric mean
    "#]]
    .assert_eq(&table);
    // A build that takes all from the cache leaves records that say the same.
    succeed(&mut project.nvtune(&compile("saxpy.cu", "out/saxpy.o")));
    assert_eq!(succeed(&mut report(&project, &["out"])).stdout, table);
    assert_eq!(succeed(&mut report(&project, &["two.cu", "saxpy.cu"])).stdout, table);
    // What is named twice is shown once.
    assert_eq!(succeed(&mut report(&project, &["out", "two.cu", "out/saxpy.tune.json"])).stdout, table);
}

#[test]
fn kernel_is_shown_in_detail_by_its_name() {
    let project = &*PROJECT;
    let detail = succeed(&mut report(project, &["--kernel", "first"])).stdout;
    assert!(detail.starts_with("first (two.cu, sm_90, NVIDIA H200): measured, 1.50x"), "{detail}");
    assert!(!detail.contains("bounded"), "{detail}");
    let none = run(&mut report(project, &["--kernel", "third"]));
    assert_eq!((none.code, none.stdout.as_str()), (Some(1), ""));
    assert_eq!(none.stderr, "nvtune fatal   : no record has a kernel 'third' [N0231]\n");
}

#[test]
fn table_is_data_in_json_csv_and_markdown() {
    let project = &*PROJECT;
    let rows: serde_json::Value =
        serde_json::from_str(&succeed(&mut report(project, &["--json"])).stdout).expect("it is JSON");
    let names: Vec<&str> = rows.as_array().expect("a list").iter().filter_map(|row| row["kernel"].as_str()).collect();
    assert_eq!(names, ["bounded", "first", "saxpy"]);
    assert_eq!((&rows[0]["winner_us"], &rows[2]["winner_us"]), (&serde_json::json!(10.0), &serde_json::json!(null)));
    let csv = succeed(&mut report(project, &["--csv"])).stdout;
    expect![[r#"
        kernel,source,record,architecture,gpu,provenance,speedup,winner,baseline,winner_us,baseline_us,bottleneck,points,timed,gpu_us,gpu_share
        bounded,two.cu,out/two.tune.json,sm_90,NVIDIA H200,measured,1.5,block=128 regs=32,block=128,10.0,15.0,global_latency,2,2,,
        first,two.cu,out/two.tune.json,sm_90,NVIDIA H200,measured,1.5,block=128 regs=24,block=128,10.0,15.0,global_latency,2,2,,
        saxpy,saxpy.cu,out/saxpy.tune.json,sm_90,,baseline,1.0,block=256,block=256,,,global_bandwidth,192,0,,
    "#]].assert_eq(&csv.replace("\r\n", "\n"));
    expect![[r#"
        | kernel | gain | chosen | winner | baseline | GPU |
        | --- | ---: | --- | --- | --- | --- |
        | bounded | 1.50x | measured | `block=128 regs=32` | `block=128` | NVIDIA H200 |
        | first | 1.50x | measured | `block=128 regs=24` | `block=128` | NVIDIA H200 |
        | saxpy | 1.00x | baseline | `block=256` | `block=256` | - |

        3 kernels: 2 measured, 1 kept; 1.31x in the geometric mean
    "#]]
    .assert_eq(&succeed(&mut report(project, &["--markdown"])).stdout);
    assert_eq!(run(&mut report(project, &["--json", "--csv"])).code, Some(2));
}

#[test]
fn page_has_a_section_for_each_kernel_and_loads_nothing() {
    let project = &*PROJECT;
    let ran = succeed(&mut report(project, &["--html", "report.html"]));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let page = project.read("report.html");
    assert_eq!(page.matches("<section>").count(), 3, "{page}");
    assert!(!page.contains("http:") && !page.contains("https:"), "{page}");
    // The kernels of `two.cu` were timed, and their source is there.
    assert_eq!(page.matches("aria-label=\"Times in the order in which they were taken\"").count(), 2, "{page}");
    assert_eq!(page.matches("<details><summary>Source: ").count(), 3, "{page}");
    assert!(
        page.contains("<p class=\"none\">No plot \u{201c}Search\u{201d}: the record has no order of timings"),
        "{page}"
    );
    // The same records give the same page.
    succeed(&mut report(project, &["--html", "again.html"]));
    assert!(project.read("again.html") == page);
    let nowhere = run(&mut report(project, &["--html", "none/report.html"]));
    assert_eq!(nowhere.code, Some(1));
    assert!(nowhere.stderr.starts_with("nvtune fatal   : cannot write 'none/report.html': "), "{}", nowhere.stderr);
}

#[test]
fn page_opens_in_a_browser_without_an_error() {
    let Some(browser) =
        ["chromium", "google-chrome"].iter().find_map(|name| which::which(name).ok()).filter(|_| is_full())
    else {
        return;
    };
    let project = project();
    succeed(&mut report(&project, &["--html", "report.html"]));
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", project.path("profile").display()));
    let ran = succeed(command.arg(format!("file://{}", project.path("report.html").display())));
    assert!(ran.stdout.contains("<h2 id=\"k0\">"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("CONSOLE"), "{}", ran.stderr);
}

#[test]
fn schema_refuses_what_it_does_not_describe() {
    let project = &*PROJECT;
    let record = project.record("out/two.tune.json");
    assert_eq!(violations(&record), None);
    let configuration = &record["kernels"][0]["configurations"][0];
    assert_eq!(configuration["timing"]["order"], 1, "{configuration}");
    assert!(configuration["parts"]["latency"].as_f64().is_some_and(|us| us > 0.0), "{configuration}");
    let mut unknown = record.clone();
    unknown["kernels"][0]["configurations"][0]["colour"] = "green".into();
    let mut missing = record.clone();
    missing["kernels"][0].as_object_mut().expect("an object").remove("winner");
    for (changed, said) in [(unknown, "colour"), (missing, "winner")] {
        assert!(violations(&changed).is_some_and(|problem| problem.contains(said)), "{said}");
    }
}
