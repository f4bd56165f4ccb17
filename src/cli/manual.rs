//! Chapters of the book in `docs/` -> man pages in roff, in the macros of man(7).
//!
//! A man page is one entry of `docs/SUMMARY.md` with the entries below it, in their order.
//! Headings become sections, a chapter's the deeper the deeper its entry is. Tables become
//! tagged lists (the first column is the tag), code blocks keep their lines, links keep their
//! text. The same text gives the same bytes.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Lists the chapters of the book in their order.
const SUMMARY: &str = include_str!("../../docs/SUMMARY.md");

macro_rules! chapters {
    ($($path:literal)*) => { &[$(($path, include_str!(concat!("../../docs/", $path)))),*] };
}

/// The chapters that are in man pages, by their paths in `docs/`.
const CHAPTERS: &[(&str, &str)] = chapters![
    "comments/README.md" "comments/args.md" "comments/baseline.md" "comments/block.md" "comments/budget.md" "comments/cache.md"
    "comments/carveout.md" "comments/check.md" "comments/clauses.md" "comments/default.md" "comments/define.md"
    "comments/diagnostics.md" "comments/expressions.md" "comments/form.md" "comments/grammar.md" "comments/grid.md"
    "comments/header.md" "comments/launch.md" "comments/lists.md" "comments/math.md" "comments/name.md" "comments/regs.md" "comments/require.md"
    "comments/shared.md" "comments/space.md" "comments/spill.md" "comments/strategy.md" "comments/symbol.md" "comments/template.md"
    "comments/threads.md" "comments/trips.md" "comments/unroll.md"
    "recipes/README.md" "recipes/ccache.md" "recipes/ci.md" "recipes/cmake.md" "recipes/containers.md" "recipes/make.md"
    "recipes/meson.md" "recipes/packages.md" "recipes/pytorch.md" "recipes/runners.md"
    "results/README.md" "results/cache.md" "results/lock-file.md" "results/modes.md" "results/project.md" "results/record.md"
];

/// A man page of section 7.
struct Manual {
    name: &'static str,
    /// What stands after its name.
    purpose: &'static str,
    /// The chapter that it begins with; those below it follow.
    first: &'static str,
    see_also: &'static str,
}

const MANUALS: [Manual; 3] = [
    Manual {
        name: "nvtune-comments",
        purpose: "the tuning comments that nvtune(1) reads",
        first: "comments/README.md",
        see_also: "nvtune(1), nvtune-recipes(7), nvtune-results(7)",
    },
    Manual {
        name: "nvtune-recipes",
        purpose: "how builds call nvtune(1)",
        first: "recipes/README.md",
        see_also: "nvtune(1), nvtune-comments(7), nvtune-results(7)",
    },
    Manual {
        name: "nvtune-results",
        purpose: "what nvtune(1) keeps between builds",
        first: "results/README.md",
        see_also: "nvtune(1), nvtune-comments(7), nvtune-recipes(7)",
    },
];

/// Makes the man pages of section 7, each with its file name.
pub fn pages() -> impl Iterator<Item = (String, String)> {
    MANUALS.iter().map(|manual| (format!("{}.7", manual.name), manual.page()))
}

impl Manual {
    fn page(&self) -> String {
        let Self { name, purpose, first, see_also } = self;
        let mut page = Page::default();
        page.append(&format!("# {name}(7)\n\n## Name\n\n{name} - {purpose}\n"), 0);
        for (level, path) in summary_section(SUMMARY, first) {
            let text = chapter(path);
            match text.split_once('\n') {
                Some((_, text)) if path == *first => page.append(&format!("# Description\n{text}"), 1),
                _ => page.append(text, level),
            }
        }
        page.append(&format!("# See also\n\n{see_also}\n"), 1);
        page.text
    }
}

/// Returns the text of a chapter in [`CHAPTERS`].
pub(super) fn chapter(path: &str) -> &'static str {
    // A test makes all of them, so none is missing in a build that is shipped.
    let (_, text) = CHAPTERS.iter().find(|(chapter, _)| *chapter == path).expect("a chapter of the list");
    text
}

/// Returns the chapters of a summary from `first` to the last one below it, each with how much
/// deeper than `first` it is.
fn summary_section<'a>(summary: &'a str, first: &str) -> Vec<(usize, &'a str)> {
    let entries = summary.lines().filter_map(|line| {
        let path = line.trim_start().strip_prefix("- [")?.split_once("](")?.1.strip_suffix(')')?;
        Some(((line.len() - line.trim_start().len()) / 2, path))
    });
    let mut chapters: Vec<(usize, &str)> = Vec::new();
    for (level, path) in entries.skip_while(|(_, path)| *path != first) {
        match chapters.first() {
            Some((top, _)) if level <= *top => break,
            _ => chapters.push((level, path)),
        }
    }
    let top = chapters.first().map_or(0, |(level, _)| *level);
    chapters.into_iter().map(|(level, path)| (level - top, path)).collect()
}

/// A page under way.
#[derive(Default)]
struct Page {
    text: String,
    /// Text of the paragraph, heading or cell under way, with font changes.
    line: String,
    /// Cells of the row under way.
    cells: Vec<String>,
    in_code: bool,
    in_item: bool,
    in_table_head: bool,
    /// How much deeper the headings of the chapter under way are than in its text.
    level: usize,
}

impl Page {
    /// Appends a chapter whose headings are `level` deeper than in its text.
    fn append(&mut self, markdown: &str, level: usize) {
        self.level = level;
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            self.event(event);
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.verbatim(&text),
            Event::Text(text) => self.line.push_str(&escape_roff(&text)),
            Event::Code(text) => self.line.push_str(&format!("\\fB{}\\fR", escape_roff(&text))),
            Event::SoftBreak | Event::HardBreak => self.line.push(' '),
            // The chapters use nothing else of Markdown that has a meaning in roff.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::CodeBlock(_) => {
                self.in_code = true;
                self.request(".PP\n.RS 4\n.nf\n.ft CW");
            }
            Tag::Item => {
                self.in_item = true;
                self.request(".IP \\(bu 2");
            }
            Tag::TableHead => self.in_table_head = true,
            Tag::Strong => self.line.push_str("\\fB"),
            Tag::Emphasis => self.line.push_str("\\fI"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::Paragraph => self.paragraph(".PP"),
            TagEnd::Item => {
                self.in_item = true;
                self.paragraph("");
                self.in_item = false;
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                self.request(".ft R\n.fi\n.RE");
            }
            TagEnd::Strong | TagEnd::Emphasis => self.line.push_str("\\fR"),
            TagEnd::TableCell => {
                let cell = self.take();
                self.cells.push(cell);
            }
            TagEnd::TableHead => self.row(),
            TagEnd::TableRow => self.row(),
            TagEnd::Table => self.request(".PP"),
            _ => {}
        }
    }

    fn heading(&mut self, level: HeadingLevel) {
        let title = self.take();
        match level as usize + self.level {
            1 => {
                let version = env!("CARGO_PKG_VERSION");
                let title = title.replace(['(', ')'], " ");
                self.request(&format!(".TH {} \"\" \"nvtune {version}\" \"\"", title.trim_end()));
            }
            2 => self.request(&format!(".SH \"{}\"", title.to_uppercase())),
            _ => self.request(&format!(".SS \"{title}\"")),
        }
    }

    fn paragraph(&mut self, request: &str) {
        let text = self.take();
        if text.is_empty() {
            return;
        }
        if !self.in_item && !request.is_empty() {
            self.request(request);
        }
        self.request(&guard_line(&text));
    }

    /// A row as tag and text. Headings of two columns say nothing that the text does not; of
    /// more, they name the columns.
    fn row(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        if std::mem::take(&mut self.in_table_head) && cells.len() < 3 {
            return;
        }
        if let Some((tag, rest)) = cells.split_first() {
            let text = rest.iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(", ");
            self.request(&format!(".TP\n{}\n{}", guard_line(tag), if text.is_empty() { "\\&" } else { &text }));
        }
    }

    fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            self.request(&guard_line(&escape_roff(line)));
        }
    }

    fn take(&mut self) -> String {
        std::mem::take(&mut self.line).trim().to_owned()
    }

    fn request(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }
}

/// Text in which roff sees nothing of its own.
fn escape_roff(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            // The characters of programs, not their typographic likes.
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            '"' => escaped.push_str("\\(dq"),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A line that is no request, whatever it begins with.
fn guard_line(line: &str) -> String {
    if line.starts_with('.') || line.starts_with('\'') { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Page, pages, summary_section};
    use expect_test::expect;

    fn man_page(markdown: &str) -> String {
        let mut page = Page::default();
        page.append(markdown, 0);
        page.text
    }

    #[test]
    fn every_man_page_has_its_parts() {
        for (file, text) in pages() {
            let name = file.trim_end_matches(".7");
            let roff = name.replace('-', "\\-");
            let head = format!(".TH {roff} 7 \"\" \"nvtune 0.1.0\" \"\"\n.SH \"NAME\"\n.PP\n{roff} \\- ");
            assert!(text.starts_with(&head), "{file}: {}", &text[..100]);
            assert_eq!(text.matches(".SH \"DESCRIPTION\"\n").count(), 1, "{file}");
            assert!(text.contains(".SH \"SEE ALSO\"\n.PP\nnvtune(1), "), "{file}");
        }
    }

    #[test]
    fn section_of_a_summary_ends_at_its_own_level() {
        let summary =
            "# S\n\n[Top](README.md)\n\n- [A](a.md)\n  - [B](b.md)\n    - [C](c.md)\n  - [D](d.md)\n- [E](e.md)\n";
        assert_eq!(summary_section(summary, "a.md"), [(0, "a.md"), (1, "b.md"), (2, "c.md"), (1, "d.md")]);
        assert_eq!(summary_section(summary, "b.md"), [(0, "b.md"), (1, "c.md")]);
        assert_eq!(summary_section(summary, "e.md"), [(0, "e.md")]);
    }

    #[test]
    fn markdown_becomes_roff() {
        let page = man_page(
            "# name(7)\n\n## A part\n\nText of `code`,\n**strong**, a-b.\n\n- one\n- two\n\n```cuda\n.x = '\\n';\n\n  y\n```\n\n\
             | a | b |\n| --- | --- |\n| `x` | the x |\n\n| a | b | c |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n",
        );
        expect![[r#"
            .TH name 7 "" "nvtune 0.1.0" ""
            .SH "A PART"
            .PP
            Text of \fBcode\fR, \fBstrong\fR, a\-b.
            .IP \(bu 2
            one
            .IP \(bu 2
            two
            .PP
            .RS 4
            .nf
            .ft CW
            \&.x = \(aq\en\(aq;

              y
            .ft R
            .fi
            .RE
            .TP
            \fBx\fR
            the x
            .PP
            .TP
            a
            b, c
            .TP
            1
            2, 3
            .PP
        "#]]
        .assert_eq(&page);
    }
}
