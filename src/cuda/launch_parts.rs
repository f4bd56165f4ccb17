//! A launch in host code -> its grid, block, shared memory and arguments in the text.

use super::host_callers::{has_pack, parameter_names};
use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::{arguments, called_name, last_name, launch_shape, without_address};
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
    pub caller: Option<&'p FilePlace>,
}

impl HostProgram {
    /// Finds the parts of a launch: `k<<<grid, block>>>(...)`, or one by address.
    pub(super) fn parts<'p>(&'p self, launch: LaunchPlace<'p>) -> Option<LaunchParts<'p>> {
        let mut parts = self.parts_at(launch.place)?;
        if let Some(caller) = launch.caller {
            let kernel = self.kernel_of_caller(launch.place, caller)?;
            parts.template = kernel.find('<').map(|at| kernel[at..].to_owned());
            parts.arguments = self.with_pack(parts.arguments, launch.place, caller);
        }
        Some(parts)
    }

    /// The kernel as a call gives it to the function that launches it.
    fn kernel_of_caller(&self, launch: &FilePlace, caller: &FilePlace) -> Option<&str> {
        let function = self.function_around(launch.file, launch.range.start)?;
        let names = parameter_names(function, &self.files[launch.file].text);
        let given = arguments(self.node(caller)?);
        let text = &self.files[caller.file].text;
        let launched = self.launches.iter().find(|(_, places)| places.contains(launch)).map(|(name, _)| name)?;
        let number = names.iter().position(|name| name == launched)?;
        Some(&text[given.get(number)?.byte_range()])
    }

    /// The arguments with those that a call has for the pack of its function: `args...` and
    /// `std::forward<A>(args)...`.
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
                template: function.find('<').map(|at| function[at..].to_owned()),
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
            template: kernel.find('<').map(|at| kernel[at..].to_owned()),
            is_cooperative: function.contains("Cooperative"),
        })
    }

    /// Finds the arguments of a launch that are given by an array of their addresses.
    fn listed_arguments(&self, array: Node<'_>, launch: &FilePlace) -> Vec<Node<'_>> {
        let Some(list) = self.initializer(array, launch) else { return Vec::new() };
        let text = &self.files[launch.file].text;
        let mut cursor = list.walk();
        let elements = list.named_children(&mut cursor).filter(|node| node.kind() != "comment");
        elements.map(|element| without_address(element, text)).collect()
    }

    /// Finds grid, block and shared memory of a launch by its configuration: what this is made of,
    /// or its fields.
    fn configured_shape(&self, configuration: Node<'_>, launch: &FilePlace) -> [Option<LaunchPart<'_>>; 3] {
        let text = &self.files[launch.file].text;
        let listed: Vec<Node<'_>> = self.initializer(configuration, launch).map_or_else(Vec::new, |list| {
            let mut cursor = list.walk();
            list.named_children(&mut cursor).filter(|node| node.kind() != "comment").collect()
        });
        // `= {0}` is no grid.
        if listed.len() > 1 && listed.iter().all(|node| node.kind() != "field_initializer") {
            return [0, 1, 2].map(|at| listed.get(at).copied().map(LaunchPart::Expression));
        }
        let name: String = text[without_address(configuration, text).byte_range()].split_whitespace().collect();
        let is_address = text[configuration.byte_range()].trim_start().starts_with('&');
        let field = |of: &str| format!("{name}{}{of}", if is_address { "." } else { "->" });
        // Without a value it is 0, as all that an initializer leaves out.
        let shared = field("dynamicSmemBytes");
        let is_given = self.definitions.get("dynamicSmemBytes").into_iter().flatten().any(|of| of.target == shared);
        let [grid, block] = ["gridDim", "blockDim"].map(|of| Some(LaunchPart::Field(field(of))));
        [grid, block, is_given.then_some(LaunchPart::Field(shared))]
    }

    /// Finds the list that a variable is initialized with.
    fn initializer(&self, variable: Node<'_>, launch: &FilePlace) -> Option<Node<'_>> {
        let name = last_name(&self.files.get(launch.file)?.text[variable.byte_range()]);
        let definitions = Evaluation::new(self).nearest(name, name, &Scope::new(launch));
        let mut values = definitions.into_iter().filter_map(|definition| self.node(&definition.value));
        values.find(|node| node.kind() == "initializer_list")
    }
}
