//! What a tuning comment says, checked as far as the comment and the kernel's declaration alone
//! allow.

use super::expression::{Expr, Node};
use super::recorded_memory::RecordedMemory;
use super::value::{Fault, Value};
use crate::cuda::{Kernel, StructureMember};
use crate::diag::{Diagnostic, Source, Span};
use crate::launch::Dim3;
use crate::launch::{LoadCacheOperator, MathOption};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Span,
}

/// A tuning comment and its kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    pub source: Arc<Source>,
    /// The place of the comment's first marker.
    pub comment: Span,
    /// The clauses with blanks made even: what the lock file's digest takes of the comment.
    pub text: String,
    pub kernel: Kernel,
    /// Which instance of a template kernel this is about; `None` for a kernel that is no
    /// template.
    pub instance: Option<Instance>,
    /// The name in header and lock: the `name` clause, else the function's with the template
    /// arguments of an instance (`axpy_float_16`).
    pub name: String,
    /// The `name` clause, or the function's name.
    pub name_span: Span,
    pub clauses: Clauses,
    /// What a recording gave it besides its own clauses.
    pub inferred: Option<Inferred>,
    /// Where two decimal integers stand around a `^`.
    pub powers: Vec<Power>,
    /// The source's constants that the comment names, with the values that the text of their
    /// definitions tells.
    pub constants: Vec<NamedConstant>,
}

/// What a comment was given besides its own clauses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inferred {
    /// As a comment would have it: `threads(n) default(block = 256)`.
    pub text: String,
    /// The digest of the recording, from a lock file, where the recording is not at hand.
    pub data: Option<String>,
}

/// The clauses of a tuning comment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clauses {
    pub block: Option<Spanned<Block>>,
    pub regs: Regs,
    /// Operators of global loads, besides none.
    pub cache: Option<Vec<LoadCacheOperator>>,
    /// Percentages, besides none.
    pub carveout: Option<Vec<u8>>,
    /// Math options that the kernel may have besides the build's.
    pub math: Option<Vec<MathOption>>,
    /// Factors by which loops are unrolled, besides what nvcc chooses.
    pub unroll: Option<Spanned<Vec<u32>>>,
    /// The fastest configurations are tried with spills in shared memory, too.
    pub shared_spills: bool,
    pub macros: Vec<MacroAxis>,
    pub threads: Option<Spanned<Vec<Expr>>>,
    pub grid: Option<Spanned<Grid>>,
    /// Dynamic shared memory of a block in bytes.
    pub shared: Option<Expr>,
    pub require: Vec<Expr>,
    /// Iterations of loops where the workload does not tell, from the outermost depth inwards.
    pub trips: Vec<Expr>,
    pub default: Defaults,
    /// In the order of the clause. `None` without an `args` clause: the kernel cannot be
    /// measured.
    pub args: Option<Vec<Given>>,
    /// The memory of the recorded launch that `args` stands for.
    pub recorded: Option<Arc<RecordedMemory>>,
    /// Recorded launches besides that one, which a winner must not slow down.
    pub other_launches: Vec<OtherLaunch>,
    /// Contents of variables before a launch.
    pub symbols: Vec<GivenSymbol>,
    /// `None` without a `check` clause; empty for `check(none)`.
    pub check: Option<CheckClause>,
    pub strategy: Option<String>,
    /// Seconds for compiling and timing its variants.
    pub budget: Option<f64>,
    /// The winner's way to the launches.
    pub launch: Option<Launching>,
    /// Whether the kernel is launched cooperatively: its blocks wait for each other, so that
    /// all must be resident at once.
    pub cooperative: bool,
    /// Names of the clauses with the places of these names, also of clauses with errors.
    pub places: Vec<(String, Span)>,
}

impl Clauses {
    /// Returns the place of a clause's name.
    pub fn place(&self, clause: &str) -> Option<Span> {
        self.places.iter().find(|(name, _)| name == clause).map(|(_, span)| *span)
    }

    /// The expressions that launch stubs evaluate for each launch.
    pub fn launch_expressions(&self) -> impl Iterator<Item = &Expr> {
        let grid = self.grid.iter().flat_map(|grid| match &grid.value {
            Grid::Expressions(blocks) => blocks.as_slice(),
            Grid::Lists(_) => &[],
        });
        let threads = self.threads.iter().flat_map(|threads| &threads.value);
        threads.chain(grid).chain(&self.shared).chain(&self.require)
    }

    /// The names in these expressions.
    pub fn launch_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        for expression in self.launch_expressions() {
            expression.names(&mut |name, _| {
                names.insert(name.as_str());
            });
        }
        names
    }
}

/// A constant of the source in a tuning comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedConstant {
    /// Without its scopes.
    pub name: String,
    pub value: i64,
    /// The first place of it in the comment.
    pub span: Span,
}

/// `2^20`: an exclusive or of two literals, which nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Power {
    pub span: Span,
    pub base: i64,
    pub exponent: i64,
}

/// The `block` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Auto,
    /// One to three lists; all values are 1 or more. A dimension that follows macros has the
    /// values that they give it.
    Lists(Vec<Vec<u32>>),
}

/// The `regs` clause.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Regs {
    #[default]
    Auto,
    /// Each is 0 or 16 to 255.
    List(Vec<u32>),
}

/// A macro that a kernel is compiled with.
#[derive(Clone, Debug, PartialEq)]
pub struct MacroAxis {
    pub name: String,
    pub span: Span,
    pub values: Vec<i64>,
}

/// The `grid` clause.
#[derive(Clone, Debug, PartialEq)]
pub enum Grid {
    /// The grid follows from the configuration.
    Expressions(Vec<Expr>),
    /// The grid is an axis.
    Lists(Vec<Vec<u32>>),
}

/// The `default` clause; each part may be absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    pub span: Option<Span>,
    pub block: Option<Spanned<Dim3>>,
    pub regs: Option<Spanned<u32>>,
    pub grid: Option<Spanned<Dim3>>,
    /// The carve-out; the inner `None` is -1, what the driver chooses.
    pub carveout: Option<Spanned<Option<u8>>>,
    pub macros: Vec<(String, Spanned<i64>)>,
}

/// A parameter's value in the `args` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub name: String,
    pub span: Span,
    /// Index among the kernel's parameters.
    pub parameter: usize,
    /// What a buffer is made of, as written before the name, where the parameter's own type
    /// does not tell: `float` for a pointer to a structure of floats.
    pub element: Option<String>,
    pub value: GivenValue,
}

/// `file("x.bin")` or `file("x.npy")[n]`.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenFile {
    /// As written, relative to the source's folder.
    pub path: String,
    pub span: Span,
    /// Elements; all that the file has where it is not given.
    pub count: Option<Expr>,
    /// The file's bytes, or why there are none; absent until somebody who may read files has
    /// done so.
    pub bytes: Option<Result<Arc<Vec<u8>>, String>>,
}

/// `{34, 5, 4}` or `{1, 2}[n]`: the scalars of a buffer one by one; 0 beyond them.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenTable {
    pub span: Span,
    pub values: Vec<Expr>,
    /// Elements; as many as the values take where it is not given.
    pub count: Option<Expr>,
}

/// A field's value in a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenField {
    pub name: String,
    pub span: Span,
    /// The type before the name, as in [`Given::element`].
    pub element: Option<String>,
    pub value: GivenValue,
}

/// A variable's contents in the `symbol` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenSymbol {
    /// As written, with as many of its namespaces as tell it apart.
    pub name: String,
    pub span: Span,
    /// The type of an element as text: from the clause, else from the declaration in the same
    /// file or in one around it.
    pub element: Option<String>,
    pub value: GivenValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GivenValue {
    Scalar(Expr),
    /// `{x = 1, y = random[n]}`: a structure; fields that are not given are zero.
    Struct {
        span: Span,
        fields: Vec<GivenField>,
    },
    File(GivenFile),
    Table(GivenTable),
    /// `nullptr`: a pointer to nothing.
    Null(Span),
    /// What a recorded launch passed: bytes, and where in them the addresses of which buffers of
    /// [`RecordedMemory`] go (byte, index). The number that stands there is the byte in the
    /// buffer.
    Recorded {
        bytes: Vec<u8>,
        buffers: Vec<(usize, usize)>,
        /// The numbers in it that have a name.
        members: Vec<RecordedMember>,
    },
    Buffer {
        fill: GivenFill,
        fill_span: Span,
        count: Expr,
    },
}

/// A number in a structure that a recorded launch passed.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedMember {
    pub member: StructureMember,
    /// A scalar.
    pub value: GivenValue,
}

/// The contents of a buffer before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub enum GivenFill {
    /// `random[n]`, whose range depends on the element's type.
    Random,
    /// `random(0, rows - 1)[n]`
    Range(Expr, Expr),
    /// `fill(a)[n]`
    Constant(Expr),
    /// `each(index * 32)[n]`
    Each(Expr),
    /// `zeros[n]`
    Zeros,
    /// `iota[n]`
    Iota,
    /// `out[n]`: written by the kernel only.
    Out,
}

/// A recorded launch besides the one that a kernel is tuned on.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherLaunch {
    /// What it passed, as in [`Clauses::args`].
    pub args: Vec<Given>,
    /// What `args` stands for.
    pub memory: Arc<RecordedMemory>,
    /// Its blocks.
    pub grid: Dim3,
    /// Its dynamic shared memory in bytes.
    pub shared: u32,
    /// How often it came for each launch that the kernel is tuned on.
    pub frequency: f64,
    /// Whether it is of the same kind as the launch that the kernel is tuned on.
    pub is_of_main_kind: bool,
}

/// A `template` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub span: Span,
    pub arguments: Vec<TemplateArgument>,
    /// Whether a recording names it, or the compiler, and not the comment.
    pub is_recorded: bool,
}

/// An argument of a `template` clause; `text` is as written, with even blanks.
#[derive(Clone, Debug, PartialEq)]
pub enum TemplateArgument {
    /// A type, or a value that only the compiler can tell.
    Text(String),
    /// An integer over constants and the macros of the axes.
    Value { text: String, expression: Expr },
    /// What the source, or a file that is compiled with it, seems to define as this number:
    /// expressions take it for that. The compiler tells the instance and whether it is so.
    Constant { text: String, value: i64 },
}

impl TemplateArgument {
    /// As written.
    pub fn text(&self) -> &str {
        match self {
            TemplateArgument::Text(text)
            | TemplateArgument::Value { text, .. }
            | TemplateArgument::Constant { text, .. } => text,
        }
    }
}

/// The `check` clause.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckClause {
    pub buffers: Vec<Spanned<String>>,
    pub relative: Option<f64>,
    pub absolute: Option<f64>,
}

/// What the `launch` clause promises of the program's launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Launching {
    /// Every launch, in any form, follows the header.
    Header,
    /// The kernel works in every shape that the comment lists.
    Remap,
}

impl GivenValue {
    /// The numbers in a recorded structure.
    pub fn members(&self) -> impl Iterator<Item = &StructureMember> {
        let members = match self {
            GivenValue::Recorded { members, .. } => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|RecordedMember { member, .. }| member)
    }

    /// All scalars, buffers and fields in it, by path: `name`, `name.field`, ...
    pub fn visit<'a>(&'a self, name: String, visit: &mut impl FnMut(String, &'a GivenValue)) {
        match self {
            GivenValue::Struct { fields, .. } => {
                for field in fields {
                    field.value.visit(format!("{name}.{}", field.name), visit);
                }
            }
            GivenValue::Recorded { members, .. } => {
                for RecordedMember { member, value } in members {
                    value.visit(format!("{name}.{}", member.path), visit);
                }
            }
            _ => {}
        }
        visit(name, self);
    }

    /// Makes the whole numbers of these names in it smaller by `less`. `path` is its own name;
    /// fields are `path.field`.
    pub fn diminish(&mut self, path: &str, names: &BTreeSet<String>, less: i64) {
        match self {
            GivenValue::Struct { fields, .. } => {
                for field in fields {
                    let path = format!("{path}.{}", field.name);
                    field.value.diminish(&path, names, less);
                }
            }
            GivenValue::Scalar(given) if names.contains(path) => {
                if let Ok(Value::Int(value)) = given.evaluate(&|name: &String| Err(Fault::NoValue(name.clone()))) {
                    given.node = Node::Value(Value::Int(value.saturating_sub(less).max(1)));
                }
            }
            GivenValue::Recorded { bytes, members, .. } => {
                for RecordedMember { member, value } in members {
                    let path = format!("{path}.{}", member.path);
                    value.diminish(&path, names, less);
                    if names.contains(&path)
                        && let GivenValue::Scalar(Expr { node: Node::Value(Value::Int(value)), .. }) = value
                        && let Some(place) = bytes.get_mut(member.bytes())
                    {
                        place.copy_from_slice(&value.to_le_bytes()[..place.len()]);
                    }
                }
            }
            GivenValue::Scalar(_)
            | GivenValue::File(_)
            | GivenValue::Table(_)
            | GivenValue::Null(_)
            | GivenValue::Buffer { .. } => {}
        }
    }
}

impl Annotation {
    /// Whether a message is about clauses that a recording or the lock file gave the comment: their
    /// place is the whole comment.
    pub fn is_about_inferred(&self, diagnostic: &Diagnostic) -> bool {
        let whole = self.source.note(self.comment, "");
        let place = |of: &Diagnostic| (of.path.clone(), of.line, of.column, of.length);
        self.inferred.is_some() && place(diagnostic) == place(&whole)
    }

    /// Every value of the `args` clause by path; those of a structure's fields stand before the
    /// structure.
    pub fn values(&self) -> Vec<(String, &GivenValue)> {
        let mut values = Vec::new();
        for given in self.clauses.args.iter().flatten() {
            given.value.visit(given.name.clone(), &mut |path, value| values.push((path, value)));
        }
        values
    }

    /// Whether the block reaches the kernel as an argument (`size = block.x`).
    pub fn tells_block(&self) -> bool {
        self.values().into_iter().any(|(_, value)| {
            let GivenValue::Scalar(expression) = value else { return false };
            expression.any_name(|name| name.starts_with("block."))
        })
    }

    /// True where the comment says what to launch the kernel on: a value for each of its
    /// parameters.
    pub fn has_workload(&self) -> bool {
        let is_given = |parameter| self.clauses.args.iter().flatten().any(|given| given.parameter == parameter);
        self.clauses.args.is_some() && (0..self.kernel.parameters.len()).all(is_given)
    }

    /// Whether the comment gives the grid.
    pub fn has_grid(&self) -> bool {
        self.clauses.threads.is_some() || self.clauses.grid.is_some()
    }

    /// Whether its blocks wait for each other by its comment or, as far as they tell, by the
    /// kernel's words.
    pub fn waits_for_grid(&self) -> bool {
        self.clauses.cooperative || self.kernel.waits_for_grid
    }

    /// An expression as the comment has it, or in the same words where it was inferred.
    pub fn written(&self, expression: &Expr) -> String {
        match expression.span == self.comment {
            true => expression.unparenthesized(),
            false => self.source.slice(expression.span).to_owned(),
        }
    }

    /// The place of a clause's name; that of the comment where it has no such clause.
    pub fn place(&self, clause: &str) -> Span {
        self.clauses.place(clause).unwrap_or(self.comment)
    }

    /// The kernel with its template arguments, as in `k<float, 4>`; `None` for one that is no
    /// template.
    pub fn instance_name(&self) -> Option<String> {
        let arguments: Vec<&str> = self.instance.as_ref()?.arguments.iter().map(TemplateArgument::text).collect();
        Some(format!("{}<{}>", self.kernel.name, arguments.join(", ")))
    }

    /// The same where a recording names the instance or gives its launch: a build without the
    /// recording has it from the lock file.
    pub fn recorded_instance(&self) -> Option<String> {
        let is_recorded = self.inferred.is_some() || self.instance.as_ref().is_some_and(|of| of.is_recorded);
        self.instance_name().filter(|_| is_recorded)
    }
}

impl Instance {
    /// The arguments as the end of an identifier: `_float_16`.
    pub fn suffix(&self) -> String {
        let mut suffix = String::new();
        for argument in &self.arguments {
            let spelled = match argument {
                TemplateArgument::Text(text) => with_pointers(text),
                TemplateArgument::Value { text, .. } | TemplateArgument::Constant { text, .. } => {
                    text.replace('-', " minus ")
                }
            };
            for word in spelled.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
            {
                suffix.push('_');
                suffix.push_str(word);
            }
        }
        suffix
    }
}

/// The text with each `*` of a pointer as a word; that of a product has a factor behind it.
fn with_pointers(text: &str) -> String {
    const QUALIFIERS: [&str; 2] = ["const", "volatile"];
    let mut pieces = text.split('*');
    let mut spelled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start();
        let is_factor = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
        let is_product = is_factor && !QUALIFIERS.iter().any(|qualifier| rest.starts_with(qualifier));
        spelled.push_str(if is_product { " " } else { " ptr " });
        spelled.push_str(piece);
    }
    spelled
}

/// As it is written in the clause.
impl std::fmt::Display for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.arguments.iter().map(TemplateArgument::text).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Scalar;

    #[test]
    fn number_in_a_recorded_structure_is_made_smaller_in_its_bytes_too() {
        let span = Span { start: 0, end: 0 };
        let member = |path: &str, offset, scalar, value| RecordedMember {
            member: StructureMember { path: path.to_owned(), offset, scalar },
            value: GivenValue::Scalar(Expr { span, node: Node::Value(value) }),
        };
        let members = vec![
            member("width", 0, Scalar::I32, Value::Int(300)),
            member("sizes[1]", 4, Scalar::U16, Value::Int(700)),
            member("scale", 6, Scalar::F32, Value::Float(1.5)),
        ];
        let bytes = [&300_i32.to_le_bytes()[..], &700_u16.to_le_bytes(), &1.5_f32.to_le_bytes()].concat();
        let mut given = GivenValue::Recorded { bytes, buffers: Vec::new(), members };
        given.diminish("image", &BTreeSet::from(["image.sizes[1]".to_owned()]), 60);
        let mut values = Vec::new();
        given.visit("image".to_owned(), &mut |path, value| match value {
            GivenValue::Scalar(expression) => values.push(format!("{path} {:?}", expression.node)),
            GivenValue::Recorded { bytes, .. } => values.push(format!("{path} {bytes:?}")),
            _ => {}
        });
        let expected =
            ["image.width Value(Int(300))", "image.sizes[1] Value(Int(640))", "image.scale Value(Float(1.5))"];
        assert_eq!(values[..3], expected);
        assert_eq!(values[3], "image [44, 1, 0, 0, 128, 2, 0, 0, 192, 63]");
    }
}
