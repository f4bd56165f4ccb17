//! A comment and what was recorded of its kernel -> the comment with what it leaves to the
//! recording: workload, grid, shared memory and default block.

use super::file::{ArgumentKind, Holder, RecordedArgument, RecordedLaunch, RecordedPointer, integer, variable_places};
use super::folder::{CountedLaunch, RecordedKernel};
use super::launch_inference::{InferredGrid, KernelHints, KnownLaunch, infer_grid};
use crate::comment::{
    Annotation, Binary, Block, Expr, Given, GivenValue, Grid, Inferred, Node, OtherLaunch, RecordedBuffer,
    RecordedMember, RecordedMemory, Spanned, Value, inferred_text,
};
use crate::cuda::declarations::{handle_by_value, opaque_handle};
use crate::cuda::{Element, Kernel, OpaqueHandle, Scalar, StructureMember, TextureMemory, Type};
use crate::diag::Span;
use crate::launch::Dim3;
use crate::record::read_regular;
use std::sync::Arc;

/// The most dynamic shared memory for each thread that is taken for a multiple of the block.
const MOST_SHARED_OF_THREAD: u32 = 128;

/// The longest list in a structure whose numbers may give a grid: extents of tensors have up to
/// eight dimensions.
const MOST_COUNTS: usize = 8;

/// The most launches that a winner is tried on besides the one that it was tuned on.
const MOST_OTHER_LAUNCHES: usize = 3;

/// Those have at least the main launch's work over this: 5%.
const WORK_DIVISOR: u64 = 20;

/// Gives a comment without `args` what was recorded of its kernel; false where nothing was, or
/// the comment has its own workload. `members` gives the numbers in a structure by its type and its
/// size in bytes.
///
/// # Errors
/// Why the recording cannot be used, for the user.
pub fn apply(
    annotation: &mut Annotation,
    recorded: &RecordedKernel,
    members: &dyn Fn(&str, usize) -> Vec<StructureMember>,
) -> Result<bool, String> {
    let Some(main) = recorded.main_launch().filter(|_| annotation.clauses.args.is_none()) else { return Ok(false) };
    annotation.kernel.choose_parameters(|list| list.names.len() == main.launch.arguments.len());
    check(annotation, &main.launch)?;
    let (span, before) = (annotation.comment, annotation.clauses.clone());
    let members: Vec<Vec<StructureMember>> = main
        .launch
        .arguments
        .iter()
        .enumerate()
        .map(|(index, of)| members_of(annotation, index, of, members))
        .collect();
    if !annotation.has_grid() {
        match infer_grid(&known_launches(annotation, main, recorded, &members), &hints(annotation), span) {
            Some(InferredGrid::Threads(value)) => annotation.clauses.threads = Some(Spanned { value, span }),
            Some(InferredGrid::Blocks(value)) => {
                annotation.clauses.grid = Some(Spanned { value: Grid::Expressions(value), span });
            }
            None => {}
        }
    }
    if annotation.clauses.shared.is_none() && main.launch.shared > 0 {
        annotation.clauses.shared = Some(shared_bytes(&main.launch, span));
    }
    let is_listed = |block: &Spanned<Block>| lists_shape(&block.value, main.launch.block);
    if annotation.clauses.default.block.is_none() && annotation.clauses.block.as_ref().is_none_or(is_listed) {
        annotation.clauses.default.block = Some(Spanned { value: main.launch.block, span });
    }
    let others: Vec<&CountedLaunch> =
        other_launches(main, recorded).filter(|other| check(annotation, &other.launch).is_ok()).collect();
    let sibling = recorded.sibling(main);
    let is_sibling = |other: &CountedLaunch| sibling.is_some_and(|sibling| std::ptr::eq(sibling, other));
    // Where the other launch of its kind cannot be tried, the main one stands for both.
    let left_out = sibling.filter(|_| !others.iter().any(|other| is_sibling(other)));
    let main_count = main.count.saturating_add(left_out.map_or(0, |sibling| sibling.count)) as f64;
    let others = others.into_iter().map(|other| OtherLaunch {
        args: arguments(annotation, &other.launch, &members),
        memory: Arc::new(memory(annotation, other)),
        grid: other.launch.grid,
        shared: other.launch.shared,
        frequency: other.count as f64 / main_count,
        is_of_main_kind: is_sibling(other),
    });
    let others = others.collect();
    annotation.clauses.args = Some(arguments(annotation, &main.launch, &members));
    annotation.inferred = Some(Inferred { text: inferred_text(&before, &annotation.clauses), data: None });
    annotation.clauses.recorded = Some(Arc::new(memory(annotation, main)));
    annotation.clauses.other_launches = others;
    Ok(true)
}

/// The other one of the main launch's kind, and the launches of other kinds that have the most work,
/// if that is not next to nothing. Those with other blocks are left out: what is chosen is for
/// launches with the main one's.
fn other_launches<'a>(
    main: &'a CountedLaunch,
    recorded: &'a RecordedKernel,
) -> impl Iterator<Item = &'a CountedLaunch> {
    let is_timed = recorded.launches.iter().all(|counted| counted.nanoseconds > 0);
    let work = move |counted: &CountedLaunch| {
        let one = if is_timed { counted.nanoseconds } else { counted.launch.threads() };
        one.saturating_mul(counted.count)
    };
    let sibling = recorded.sibling(main);
    let own_work = work(main).saturating_add(sibling.map(work).unwrap_or_default());
    let is_other = |counted: &&CountedLaunch| {
        let is_of_kind = [Some(main), sibling].into_iter().flatten().any(|own| std::ptr::eq(*counted, own));
        !is_of_kind && counted.launch.block == main.launch.block
    };
    let mut others: Vec<&CountedLaunch> = recorded.launches.iter().filter(is_other).collect();
    others.retain(|other| work(other).saturating_mul(WORK_DIVISOR) >= own_work);
    others.sort_by_key(|other| std::cmp::Reverse(work(other)));
    sibling.into_iter().chain(others).take(MOST_OTHER_LAUNCHES)
}

/// What a launch passed, by parameter.
fn arguments(annotation: &Annotation, launch: &RecordedLaunch, members: &[Vec<StructureMember>]) -> Vec<Given> {
    let (span, parameters) = (annotation.comment, annotation.kernel.parameters.iter().enumerate());
    let given = parameters.zip(&launch.arguments).map(|((index, name), argument)| Given {
        name: name.clone().unwrap_or_else(|| format!("argument {}", index + 1)),
        span,
        parameter: index,
        element: None,
        value: value(launch, index, argument, &members[index], span),
    });
    given.collect()
}

/// Reads the contents that recordings have for these annotations; returns what is wrong with
/// those that cannot be used, by name of the kernel.
pub fn load(annotations: &mut [Annotation]) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for annotation in annotations {
        let Some(memory) = annotation.clauses.recorded.as_ref().filter(|memory| memory.file.is_none()) else {
            continue;
        };
        let read = read_regular(&memory.path).map_err(|error| format!("cannot be read: {error}"));
        let checked = read.and_then(|file| match RecordedLaunch::read(&mut std::io::Cursor::new(&file)) {
            Ok(launch) if launch.is_intact(&file) && launch.checksum == memory.checksum => {
                Ok(without_addresses(file, &launch))
            }
            _ => Err("is damaged: record it again".to_owned()),
        });
        match checked {
            Ok(file) => {
                annotation.clauses.recorded =
                    Some(Arc::new(RecordedMemory { file: Some(Arc::new(file)), ..(**memory).clone() }));
            }
            Err(problem) => {
                problems.push((annotation.name.clone(), format!("'{}' {problem}", memory.path.display())));
            }
        }
    }
    problems
}

/// Refuses a launch that is of another kernel than the comment's, or that cannot be replayed.
fn check(annotation: &Annotation, launch: &RecordedLaunch) -> Result<(), String> {
    let kernel = &annotation.kernel;
    if launch.arguments.len() != kernel.parameters.len() {
        return Err(format!(
            "{} arguments for {} parameters: record it again",
            launch.arguments.len(),
            kernel.parameters.len()
        ));
    }
    for (index, (argument, declaration)) in launch.arguments.iter().zip(&kernel.declarations).enumerate() {
        let name = kernel.parameters.get(index).cloned().flatten().unwrap_or_default();
        let by_value = handle_by_value(declaration);
        if let (Some(handle), None) = (opaque_handle(declaration), by_value) {
            return Err(format!("`{name}` points to {}s, which a recording cannot replay", handle.name()));
        }
        let declared = Type::parse_type(declaration.strip_suffix(name.as_str()).unwrap_or(declaration));
        let is_other = match (by_value, declared) {
            (Some(OpaqueHandle::Texture), _) => argument.kind != ArgumentKind::Texture,
            (Some(OpaqueHandle::Surface), _) => argument.kind != ArgumentKind::Surface,
            (None, Type::Scalar(scalar)) => argument.bytes.len() != scalar.size(),
            (None, Type::Pointer { .. }) => argument.kind != ArgumentKind::Pointer,
            (None, Type::Other(_)) => false,
        };
        if is_other {
            return Err(format!("`{name}` was recorded with another type: record it again"));
        }
        let is_followed = pointers(launch, Holder::Argument(index)).next().is_some();
        if argument.kind == ArgumentKind::Pointer && argument.bytes.iter().any(|byte| *byte != 0) && !is_followed {
            return Err(format!("`{name}` points at no memory that the driver knows"));
        }
    }
    Ok(())
}

/// The numbers in an argument that is a structure.
fn members_of(
    annotation: &Annotation,
    index: usize,
    argument: &RecordedArgument,
    members: &dyn Fn(&str, usize) -> Vec<StructureMember>,
) -> Vec<StructureMember> {
    let kernel = &annotation.kernel;
    let named = kernel.parameters.get(index).and_then(Option::as_ref).zip(kernel.declarations.get(index));
    let kind = named.and_then(|(name, declaration)| declaration.strip_suffix(name.as_str()));
    let of_template = |word: &str| kernel.template_parameters.iter().flatten().any(|parameter| parameter.name == word);
    let is_known = |kind: &&str| {
        let mut words = kind.split(|c: char| !c.is_alphanumeric() && c != '_');
        !kind.contains(['*', '&']) && !words.any(of_template)
    };
    match kind.filter(|_| argument.kind == ArgumentKind::Other).filter(is_known) {
        Some(kind) => members(kind.trim(), argument.bytes.len()),
        None => Vec::new(),
    }
}

/// The value of a number in the bytes of its structure.
fn member_value(bytes: &[u8], member: &StructureMember) -> Option<Value> {
    let bytes = bytes.get(member.bytes())?;
    if member.scalar.is_float() {
        return match *bytes {
            [a, b, c, d] => Some(Value::Float(f64::from(f32::from_le_bytes([a, b, c, d])))),
            _ => Some(Value::Float(f64::from_le_bytes(bytes.try_into().ok()?))),
        };
    }
    let is_signed = member.scalar.integer_bounds().is_some_and(|(least, _)| least < 0);
    integer(bytes, is_signed).map(Value::Int)
}

/// The launches with the main one's block, that one first.
fn known_launches(
    annotation: &Annotation,
    main: &CountedLaunch,
    recorded: &RecordedKernel,
    members: &[Vec<StructureMember>],
) -> Vec<KnownLaunch> {
    let parameters = &annotation.kernel.parameters;
    let known = |launch: &RecordedLaunch| {
        let named = parameters.iter().zip(&launch.arguments);
        let whole = named.clone().filter_map(|(name, argument)| Some((name.clone()?, argument.integer()?)));
        let within = named.zip(members).flat_map(|((name, argument), members)| {
            let counts = members.iter().filter(|member| may_count(member, members));
            counts.filter_map(move |member| match member_value(&argument.bytes, member)? {
                Value::Int(value) => Some((format!("{}.{}", name.as_ref()?, member.path), value)),
                Value::Float(_) => None,
            })
        });
        KnownLaunch { grid: launch.grid, block: launch.block, arguments: whole.collect(), members: within.collect() }
    };
    let is_like = |other: &&CountedLaunch| {
        other.path != main.path
            && other.launch.block == main.launch.block
            && other.launch.arguments.len() == main.launch.arguments.len()
    };
    let others = recorded.launches.iter().filter(is_like);
    std::iter::once(main).chain(others).map(|counted| known(&counted.launch)).collect()
}

/// Whether a grid may follow a number in a structure: none in a long list.
fn may_count(member: &StructureMember, members: &[StructureMember]) -> bool {
    let of_array = |array: &str| members.iter().filter(|other| other.array() == Some(array)).count();
    member.array().is_none_or(|array| of_array(array) <= MOST_COUNTS)
}

fn hints(annotation: &Annotation) -> KernelHints {
    let Kernel { may_take_any_grid, has_fixed_tile, .. } = annotation.kernel;
    // A macro of the comment may stand in the size of the tile.
    KernelHints { may_take_any_grid, has_fixed_tile: has_fixed_tile && annotation.clauses.macros.is_empty() }
}

/// Dynamic shared memory: in proportion to the block where it is a small multiple of it.
fn shared_bytes(launch: &RecordedLaunch, span: Span) -> Expr {
    let number = |value: u32| Expr { span, node: Node::Value(Value::Int(i64::from(value))) };
    let threads = launch.block.iter().product::<u32>().max(1);
    let of_thread = launch.shared / threads;
    if !launch.shared.is_multiple_of(threads) || of_thread > MOST_SHARED_OF_THREAD {
        return number(launch.shared);
    }
    let size = Expr { span, node: Node::Name("block.size".to_owned()) };
    Expr { span, node: Node::Binary(Binary::Multiply, span, Box::new(size), Box::new(number(of_thread))) }
}

/// Whether a `block` clause has a shape.
fn lists_shape(block: &Block, shape: Dim3) -> bool {
    match block {
        Block::Auto => true,
        Block::Lists(lists) => shape
            .iter()
            .enumerate()
            .all(|(at, extent)| lists.get(at).map_or(*extent == 1, |list| list.contains(extent))),
    }
}

/// The pointers in an argument, a buffer or a variable.
fn pointers(launch: &RecordedLaunch, holder: Holder) -> impl Iterator<Item = (u64, usize, u64)> {
    let own = launch.pointers.iter().filter(move |pointer| pointer.holder == holder);
    own.map(|pointer| (pointer.offset, pointer.buffer, pointer.target))
}

/// What an argument is given.
fn value(
    launch: &RecordedLaunch,
    index: usize,
    argument: &RecordedArgument,
    members: &[StructureMember],
    span: Span,
) -> GivenValue {
    let mut bytes = argument.bytes.clone();
    let mut places = Vec::new();
    for (offset, buffer, target) in pointers(launch, Holder::Argument(index)) {
        let at = offset as usize;
        if let Some(word) = bytes.get_mut(at..at + 8) {
            word.copy_from_slice(&target.to_le_bytes());
            places.push((at, buffer));
        }
    }
    let number = argument.integer().map(Value::Int).or_else(|| argument.float().map(Value::Float));
    match number.filter(|_| places.is_empty()) {
        Some(number) => GivenValue::Scalar(Expr { span, node: Node::Value(number) }),
        None => {
            let recorded = |member: &StructureMember| {
                let number = Expr { span, node: Node::Value(member_value(&bytes, member)?) };
                Some(RecordedMember { member: member.clone(), value: GivenValue::Scalar(number) })
            };
            let members = members.iter().filter_map(recorded).collect();
            GivenValue::Recorded { bytes, buffers: places, members }
        }
    }
}

/// The memory of a recorded launch, without its contents.
fn memory(annotation: &Annotation, CountedLaunch { launch, path, .. }: &CountedLaunch) -> RecordedMemory {
    let named = |index: usize| {
        let mut arguments = (0..launch.arguments.len()).flat_map(|argument| {
            pointers(launch, Holder::Argument(argument)).map(move |(_, buffer, target)| (argument, buffer, target))
        });
        let parameter = |argument: usize| annotation.kernel.parameters.get(argument).cloned().flatten();
        let Some((argument, _, target)) = arguments.find(|(_, buffer, _)| *buffer == index) else {
            let is_of = |memory: &TextureMemory| memory.buffer(&launch.arrays) == Some(index);
            let texture = launch.textures.iter().find(|texture| is_of(&texture.memory))?;
            return Some((parameter(texture.argument)?, Some(texture.memory.texel(&launch.arrays)?)));
        };
        let name = parameter(argument)?;
        let declaration = annotation.kernel.declarations.get(argument)?;
        let element = match Type::parse_type(declaration.strip_suffix(name.as_str()).unwrap_or(declaration)) {
            Type::Pointer { element, .. } if target % element.size() as u64 == 0 => Some(element),
            _ => None,
        };
        Some((name, element))
    };
    let bytes = Element { scalar: Scalar::U8, lanes: 1 };
    let buffers = launch.buffers.iter().enumerate().map(|(index, place)| {
        let (name, element) = named(index).unwrap_or_else(|| (format!("memory {}", index + 1), None));
        let fits = |element: &Element| (place.end - place.start) % element.size() as u64 == 0;
        RecordedBuffer {
            name,
            element: element.filter(fits).unwrap_or(bytes),
            place: place.clone(),
            pointers: pointers_within(launch, Holder::Buffer(index)),
        }
    });
    let variables = launch.variables.iter().map(|(number, symbol, place)| RecordedBuffer {
        name: symbol.clone(),
        element: bytes,
        place: place.clone(),
        pointers: pointers_within(launch, Holder::Variable(*number)),
    });
    RecordedMemory {
        path: path.clone(),
        checksum: launch.checksum,
        file: None,
        buffers: buffers.collect(),
        variables: variables.collect(),
        arrays: launch.arrays.clone(),
        textures: launch.textures.clone(),
    }
}

/// The pointers in a buffer or a variable: the byte and the buffer.
fn pointers_within(launch: &RecordedLaunch, holder: Holder) -> Vec<(u64, usize)> {
    let mut found: Vec<(u64, usize)> = pointers(launch, holder).map(|(offset, buffer, _)| (offset, buffer)).collect();
    found.sort_unstable();
    found
}

/// Puts the byte in its buffer in place of each address in buffers and variables.
pub(super) fn without_addresses(mut file: Vec<u8>, launch: &RecordedLaunch) -> Vec<u8> {
    let places = variable_places(&launch.variables);
    for RecordedPointer { holder, offset, target, .. } in &launch.pointers {
        let place = match holder {
            Holder::Argument(_) => None,
            Holder::Buffer(index) => launch.buffers.get(*index),
            Holder::Variable(number) => places.get(number).copied(),
        };
        let at = place.and_then(|place| usize::try_from(place.start + offset).ok());
        if let Some(word) = at.and_then(|at| file.get_mut(at..)).and_then(<[u8]>::first_chunk_mut::<8>) {
            *word = target.to_le_bytes();
        }
    }
    file
}
