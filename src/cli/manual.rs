//! A Markdown page -> a man page in roff, in the macros of man(7).
//!
//! One source for both: headings become sections, tables become tagged lists (the first column is the tag), code blocks stay
//! as they are. The first heading gives title and section, `name(7)`. The same text gives the same bytes.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The reference of the comment language, `man/nvtune-comments.md`.
const COMMENTS: &str = include_str!("../../man/nvtune-comments.md");

/// The man page `nvtune-comments.7`.
pub fn comments_page() -> String {
    man_page(COMMENTS)
}

/// What is kept between builds, `man/nvtune-results.md`.
const RESULTS: &str = include_str!("../../man/nvtune-results.md");

/// The man page `nvtune-results.7`.
pub fn results_page() -> String {
    man_page(RESULTS)
}

fn man_page(markdown: &str) -> String {
    let mut page = Page::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.event(event);
    }
    page.text
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
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.in_code => self.verbatim(&text),
            Event::Text(text) => self.line.push_str(&escaped(&text)),
            Event::Code(text) => self.line.push_str(&format!("\\fB{}\\fR", escaped(&text))),
            Event::SoftBreak | Event::HardBreak => self.line.push(' '),
            // Of what else Markdown has, the page uses nothing.
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
            TagEnd::Heading(HeadingLevel::H1) => {
                let title = self.take().replace(['(', ')'], " ");
                let version = env!("CARGO_PKG_VERSION");
                self.request(&format!(".TH {} \"\" \"nvtune {version}\" \"\"", title.trim_end()));
            }
            TagEnd::Heading(HeadingLevel::H2) => {
                let title = self.take().to_uppercase();
                self.request(&format!(".SH \"{title}\""));
            }
            TagEnd::Heading(_) => {
                let title = self.take();
                self.request(&format!(".SS \"{title}\""));
            }
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

    fn paragraph(&mut self, request: &str) {
        let text = self.take();
        if text.is_empty() {
            return;
        }
        if !self.in_item && !request.is_empty() {
            self.request(request);
        }
        self.request(&guarded(&text));
    }

    /// A row as tag and text. Headings of two columns say nothing that the text does not; of more, they name the columns.
    fn row(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        if std::mem::take(&mut self.in_table_head) && cells.len() < 3 {
            return;
        }
        if let Some((tag, rest)) = cells.split_first() {
            let text = rest.iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(", ");
            self.request(&format!(".TP\n{}\n{}", guarded(tag), if text.is_empty() { "\\&" } else { &text }));
        }
    }

    fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            self.request(&guarded(&escaped(line)));
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
fn escaped(text: &str) -> String {
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
fn guarded(line: &str) -> String {
    if line.starts_with('.') || line.starts_with('\'') { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::man_page;
    use expect_test::expect;

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
