//! Structures passed by value: what to ask the compiler about them, and what it answers.
//!
//! The question is a template kernel that is instantiated once for each field that the comment
//! gives, with the field's type, offset and the structure's size as its arguments. It is
//! appended to the source; the stub file then spells the answers. So the layout is the
//! compiler's own, whatever its packing, bases and templates.

use super::entry::{Entry, entries};
use crate::comment::{Annotation, GivenField, GivenValue, RecordedMember};
use crate::cuda::Type;
use crate::cuda::template_instance;
use crate::diag::Span;
use crate::workload::structure::{Field, Layout};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The name of the template kernel that asks.
const ASKER: &str = "nvtune_layout";

/// The name of the template that gives an enumeration's underlying type, and any other type
/// itself.
const PLAIN: &str = "nvtune_enumeration";

/// What the compiler is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutQuery {
    /// Fields of the structures that the comment gives values to, and what other types are that
    /// take a value.
    All,
    Fields,
}

/// C++ text that asks for the layouts of the structures that the comment gives values to, and
/// for what enumerations are kept in and typedefs stand for; `None` where it gives none.
pub fn question(annotation: &Annotation, entry: &Entry, asked: LayoutQuery) -> Option<String> {
    let mut text = format!(
        "\ntemplate <class nvtune_kind, bool = __is_enum(nvtune_kind)> struct {PLAIN} {{ typedef nvtune_kind type; }};\n\
         template <class nvtune_kind> struct {PLAIN}<nvtune_kind, true> {{ typedef __underlying_type(nvtune_kind) type; }};\n\
         template <class nvtune_kind, unsigned long long nvtune_parameter, unsigned long long nvtune_field, \
         unsigned long long nvtune_offset, unsigned long long nvtune_bytes> __attribute__((global)) void {ASKER}(nvtune_kind *) {{}}\n"
    );
    let mut is_asked = false;
    for (number, (parameter, path)) in paths(annotation).iter().enumerate() {
        let Some(kind) =
            entry.parameters.get(*parameter).filter(|kind| matches!(Type::parse_type(kind), Type::Other(_)))
        else {
            continue;
        };
        let (field, offset) = match path.as_str() {
            "" if asked == LayoutQuery::Fields && !is_structure(annotation, *parameter) => continue,
            "" if kind.ends_with(['&', ']', ')']) || points_beyond(kind) => continue,
            "" => (kind.clone(), "0".to_owned()),
            path => (format!("decltype((({kind} *)0)->{path})"), format!("__builtin_offsetof({kind}, {path})")),
        };
        let field = format!("{PLAIN}<{field}>::type");
        is_asked = true;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "template __attribute__((global)) void {ASKER}<{field}, {parameter}, {number}, {offset}, sizeof({kind})>({field} *);"
        );
    }
    is_asked.then_some(text)
}

/// The layouts by parameter, from the stub file of the source with the question.
pub fn answer(annotation: &Annotation, stub: &str) -> BTreeMap<usize, Layout> {
    let asked = paths(annotation);
    let mut layouts: BTreeMap<usize, Layout> = BTreeMap::new();
    for entry in entries(stub).iter().filter(|entry| entry.name() == ASKER) {
        let arguments = template_instance::template_arguments(&entry.qualified).unwrap_or_default();
        let [.., parameter, field, offset, bytes] = arguments.as_slice() else { continue };
        let numbers = [parameter, field, offset, bytes].map(|text| template_instance::enumerator_value(text));
        let ([Some(parameter), Some(field), Some(offset), Some(bytes)], [kind]) =
            (numbers, entry.parameters.as_slice())
        else {
            continue;
        };
        let Some((_, path)) = usize::try_from(field).ok().and_then(|field| asked.get(field)) else { continue };
        let layout = layouts.entry(parameter as usize).or_default();
        layout.bytes = bytes;
        let kind = kind.strip_suffix('*').unwrap_or(kind).trim_end().to_owned();
        layout.fields.insert(path.clone(), Field { offset, kind });
    }
    layouts
}

/// The place in the comment that the compiler's message is about: the field that it names, else
/// the structure.
pub fn place(annotation: &Annotation, message: &str) -> Span {
    fn named(fields: &[GivenField], message: &str) -> Option<Span> {
        fields.iter().find_map(|field| match &field.value {
            GivenValue::Struct { fields, .. } => named(fields, message),
            _ => message.contains(&format!("\"{}\"", field.name)).then_some(field.span),
        })
    }
    let structures = annotation.clauses.args.iter().flatten().filter_map(|given| match &given.value {
        GivenValue::Struct { fields, .. } => Some((given.span, fields)),
        _ => None,
    });
    let found = structures.clone().find_map(|(_, fields)| named(fields, message));
    found.or_else(|| structures.clone().next().map(|(span, _)| span)).unwrap_or(annotation.comment)
}

/// Whether the comment gives a parameter fields.
fn is_structure(annotation: &Annotation, parameter: usize) -> bool {
    let mut given = annotation.clauses.args.iter().flatten().filter(|given| given.parameter == parameter);
    given.any(|given| matches!(given.value, GivenValue::Struct { .. }))
}

/// Whether a type is a pointer to what is not a name: pointers, arrays, functions.
fn points_beyond(kind: &str) -> bool {
    kind.strip_suffix('*').is_some_and(|target| target.trim_end().ends_with(['*', ']', ')', '&']))
}

/// Parameter and path of each field that has a value of its own, and of what may be an
/// enumeration or a typedef.
fn paths(annotation: &Annotation) -> Vec<(usize, String)> {
    fn descend(prefix: &str, fields: &[GivenField], visit: &mut impl FnMut(String)) {
        for field in fields {
            let path = format!("{prefix}{}", field.name);
            match &field.value {
                GivenValue::Struct { fields, .. } => descend(&format!("{path}."), fields, visit),
                _ => visit(path),
            }
        }
    }
    let launch_names = annotation.clauses.launch_names();
    let mut found = Vec::new();
    for given in annotation.clauses.args.iter().flatten() {
        match &given.value {
            // Its size is to be known all the same.
            GivenValue::Struct { fields, .. } if fields.is_empty() => found.push((given.parameter, String::new())),
            GivenValue::Struct { fields, .. } => descend("", fields, &mut |path| found.push((given.parameter, path))),
            _ if given.element.is_some() => {}
            // Its bytes are known. The offsets of the fields that launch expressions name are asked for.
            GivenValue::Recorded { members, .. } => {
                let named = members.iter().filter(|RecordedMember { member, .. }| {
                    launch_names.contains(format!("{}.{}", given.name, member.path).as_str())
                });
                let asked = named.map(|RecordedMember { member, .. }| member.array().unwrap_or(&member.path));
                let asked: BTreeSet<&str> = asked.collect();
                found.extend(asked.into_iter().map(|path| (given.parameter, path.to_owned())));
            }
            _ => found.push((given.parameter, String::new())),
        }
    }
    found
}
