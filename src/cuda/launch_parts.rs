//! Finds grid, block, shared memory and arguments of a launch in host code, as expressions of its text.

use super::host_callers::{has_pack, parameter_names};
use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::{arguments, called_name, elements, last_name, launch_shape, without_address};
use super::host_program::{FilePlace, HostProgram};
use tree_sitter::Node;

/// A part of a launch: an expression of the text, or a field of its configuration.
pub(super) enum LaunchPart<'t> {
    Expression(Node<'t>),
    /// `config.gridDim`
    Field(String),
}

/// The parts of a launch in the text.
pub(super) struct LaunchParts<'t> {
    pub grid: LaunchPart<'t>,
    pub block: LaunchPart<'t>,
    pub shared: Option<LaunchPart<'t>>,
    pub arguments: Vec<PassedArgument<'t>>,
    pub template: Option<String>,
    pub is_cooperative: bool,
}

/// An argument of a launch in the text.
#[derive(Clone, Copy)]
pub(super) struct PassedArgument<'t> {
    pub node: Node<'t>,
    /// Where the names in it have their meanings.
    pub place: &'t FilePlace,
}

/// A launch in the text.
#[derive(Clone, Copy)]
pub(super) struct LaunchPlace<'p> {
    pub place: &'p FilePlace,
    /// The call of the function around it that gives it the kernel.
    pub caller: Option<Caller<'p>>,
}

/// A call that gives a function the kernel to launch.
#[derive(Clone, Copy)]
pub(super) struct Caller<'p> {
    pub call: &'p FilePlace,
    /// The number of the argument that is the kernel.
    pub argument: usize,
}

impl HostProgram {
    /// Finds the parts of a launch: `k<<<grid, block>>>(...)`, or one by address.
    pub(super) fn parts<'p>(&'p self, launch: LaunchPlace<'p>) -> Option<LaunchParts<'p>> {
        let mut parts = self.parts_at(launch.place)?;
        if let Some(Caller { call, argument }) = launch.caller {
            let kernel = *arguments(self.node(call)?).get(argument)?;
            parts.template = template_of(&self.files.get(call.file)?.text[kernel.byte_range()]);
            parts.arguments = self.with_pack(parts.arguments, launch.place, call);
        }
        Some(parts)
    }

    /// Replaces `args...` and `std::forward<A>(args)...` by the arguments that a call gives the pack
    /// of its function.
    fn with_pack<'p>(
        &'p self,
        passed: Vec<PassedArgument<'p>>,
        launch: &FilePlace,
        caller: &'p FilePlace,
    ) -> Vec<PassedArgument<'p>> {
        let function = self.function_around(launch.file, launch.range.start).filter(|function| has_pack(*function));
        let (Some(function), Some(call)) = (function, self.node(caller)) else { return passed };
        let number = parameter_names(function, &self.files[launch.file].text).len() - 1;
        let of_pack = arguments(call).into_iter().skip(number).map(|node| PassedArgument { node, place: caller });
        let of_pack: Vec<PassedArgument<'_>> = of_pack.collect();
        let is_pack = |argument: &PassedArgument<'_>| argument.node.kind() == "parameter_pack_expansion";
        passed
            .into_iter()
            .flat_map(|argument| if is_pack(&argument) { of_pack.clone() } else { vec![argument] })
            .collect()
    }

    fn parts_at<'p>(&'p self, place: &'p FilePlace) -> Option<LaunchParts<'p>> {
        let passed = |nodes: Vec<Node<'p>>| nodes.into_iter().map(|node| PassedArgument { node, place }).collect();
        let text = &self.files.get(place.file)?.text;
        let node = self.node(place).filter(|node| node.kind() == "call_expression")?;
        let given = arguments(node);
        if let Some(shape) = launch_shape(node) {
            let function = &text[node.child_by_field_name("function")?.byte_range()];
            return Some(LaunchParts {
                grid: LaunchPart::Expression(shape.named_child(0)?),
                block: LaunchPart::Expression(shape.named_child(1)?),
                shared: shape.named_child(2).map(LaunchPart::Expression),
                arguments: passed(given),
                template: template_of(function),
                is_cooperative: false,
            });
        }
        let expression = |at: usize| given.get(at).copied().map(LaunchPart::Expression);
        let function = called_name(node.child_by_field_name("function")?, text);
        let (kernel, [grid, block, shared], arguments) = match function {
            "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" => {
                let shape = [expression(1), expression(2), expression(4)];
                (given.first()?, shape, self.listed_arguments(*given.get(3)?, place))
            }
            "cudaLaunchKernelExC" => {
                let shape = self.configured_shape(*given.first()?, place);
                (given.get(1)?, shape, self.listed_arguments(*given.get(2)?, place))
            }
            "cudaLaunchKernelEx" => {
                (given.get(1)?, self.configured_shape(*given.first()?, place), given.iter().skip(2).copied().collect())
            }
            _ => return None,
        };
        let kernel = &text[kernel.byte_range()];
        let kernel = kernel.rsplit(')').next().filter(|rest| !rest.is_empty()).unwrap_or(kernel);
        Some(LaunchParts {
            grid: grid?,
            block: block?,
            shared,
            arguments: passed(arguments),
            template: template_of(kernel),
            is_cooperative: function.contains("Cooperative"),
        })
    }

    /// Finds the arguments of a launch that are given by an array of their addresses.
    fn listed_arguments(&self, array: Node<'_>, launch: &FilePlace) -> Vec<Node<'_>> {
        let text = &self.files[launch.file].text;
        let listed = self.initializer(array, launch).map_or_else(Vec::new, elements);
        listed.into_iter().map(|element| without_address(element, text)).collect()
    }

    /// Finds grid, block and shared memory of a launch by its configuration: in the list that this
    /// is initialized with, or its fields.
    fn configured_shape(&self, configuration: Node<'_>, launch: &FilePlace) -> [Option<LaunchPart<'_>>; 3] {
        let text = &self.files[launch.file].text;
        let listed = self.initializer(configuration, launch).map_or_else(Vec::new, elements);
        if listed.iter().any(|node| node.kind() == "initializer_pair") {
            // `.gridDim = 4`
            let designated = |field: &str| {
                let is_field = |pair: &&Node<'_>| {
                    let designator = pair.child_by_field_name("designator");
                    designator.is_some_and(|node| text[node.byte_range()].trim_start_matches('.') == field)
                };
                let value = listed.iter().find(is_field)?.child_by_field_name("value")?;
                Some(LaunchPart::Expression(value))
            };
            return ["gridDim", "blockDim", "dynamicSmemBytes"].map(designated);
        }
        // `= {0}` is no grid.
        if listed.len() > 1 {
            return [0, 1, 2].map(|number| listed.get(number).copied().map(LaunchPart::Expression));
        }
        let name: String = text[without_address(configuration, text).byte_range()].split_whitespace().collect();
        let is_address = text[configuration.byte_range()].trim_start().starts_with('&');
        let field = |field: &str| format!("{name}{}{field}", if is_address { "." } else { "->" });
        // Without a value it is 0, as all that an initializer leaves out.
        let shared = field("dynamicSmemBytes");
        let is_given = self.definitions.get("dynamicSmemBytes").into_iter().flatten().any(|of| of.target == shared);
        let [grid, block] = ["gridDim", "blockDim"].map(|name| Some(LaunchPart::Field(field(name))));
        [grid, block, is_given.then_some(LaunchPart::Field(shared))]
    }

    /// Finds the list that a variable is initialized with in the file of a launch.
    fn initializer(&self, variable: Node<'_>, launch: &FilePlace) -> Option<Node<'_>> {
        let name = last_name(&self.files.get(launch.file)?.text[variable.byte_range()]);
        let definitions = Evaluation::new(self).nearest(name, name, &Scope::new(launch)).into_iter();
        let mut values = definitions.filter(|definition| definition.value.file == launch.file);
        values.find_map(|definition| self.node(&definition.value).filter(|node| node.kind() == "initializer_list"))
    }
}

/// Returns the template arguments of a name: `<float, 4>` of `k<float, 4>`.
fn template_of(name: &str) -> Option<String> {
    name.find('<').map(|at| name[at..].to_owned())
}
