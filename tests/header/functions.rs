//! What the header's functions return, compared with the launch of the tuner.

use super::*;

/// Returns the launch on the workload of the comment: `name: block, grid, shared`.
fn expected(kernel: &TunedKernel) -> String {
    let launch = kernel.space.launch(kernel.space.baseline()).expect("it can be launched");
    let line = |[x, y, z]: [u32; 3]| format!("{x} {y} {z}");
    format!("{}: {}, {}, {}\n", kernel.annotation.name, line(launch.block), line(launch.grid), launch.shared)
}

/// Returns the values that the workload gives to the parameters of a function.
fn values(kernel: &TunedKernel, parameters: &[nvtune::emit::HostParameter]) -> String {
    let value = |parameter: &nvtune::emit::HostParameter| {
        let name = kernel.annotation.kernel.parameters[parameter.argument].as_deref().expect("named");
        let node = Node::Name(format!("{name}{}", parameter.field));
        let expression = Expr { span: Span { start: 0, end: 0 }, node };
        kernel.space.evaluate(kernel.space.baseline(), &expression).expect("it has a value").to_string()
    };
    parameters.iter().map(value).collect::<Vec<_>>().join(", ")
}

#[test]
fn functions_return_launch_of_tuner() {
    // `large` is told below: no launch can be like that. A kernel without a workload has no launch.
    let stems = STEMS.into_iter().filter(|stem| !["large", "no_threads"].contains(stem));
    let all: Vec<TunedKernel> = stems.flat_map(tuned_kernels).collect();
    let wanted: String = all.iter().map(expected).collect();
    let (mut c, mut cxx) = (String::new(), String::new());
    let names: Vec<String> = all.iter().map(|kernel| kernel.annotation.name.clone()).collect();
    for (kernel, name) in all.iter().zip(&names) {
        let (grid, shared) =
            (values(kernel, &kernel.header.grid.parameters), values(kernel, &kernel.header.shared.parameters));
        let _ = writeln!(
            c,
            "  print(\"{name}\", nvtune_{name}_block(), nvtune_{name}_grid({grid}), nvtune_{name}_shared({shared}));"
        );
        let place = if ["grid", "class"].contains(&name.as_str()) { format!("{name}_") } else { name.clone() };
        let _ = writeln!(
            cxx,
            "  print(\"{name}\", plain(nvtune::{place}::block()), plain(nvtune::{place}::grid({grid})), nvtune::{place}::shared({shared}));"
        );
    }
    let print = "#include <stdio.h>\nstatic void print(const char *name, nvtune_dim3 block, nvtune_dim3 grid, size_t shared) {\n\
                 printf(\"%s: %u %u %u, %u %u %u, %zu\\n\", name, block.x, block.y, block.z, grid.x, grid.y, grid.z, shared);\n}\n";
    let plain = "static nvtune_dim3 plain(dim3 of) { nvtune_dim3 made = {of.x, of.y, of.z}; return made; }\n";
    let large = "  print(\"huge\", nvtune_huge_block(), nvtune_huge_grid(1024), 0);\n  print(\"none\", nvtune_huge_block(), nvtune_huge_grid(-1), 0);\n";
    let capable = "#define NVTUNE_CAPABILITY capability\nstatic int capability;\n";
    let fat = "  for (capability = 75; capability < 130; capability += 15) print(\"fat\", nvtune_mixed_block(), nvtune_mixed_grid(1000), nvtune_mixed_shared(8));\n";
    let programs = [
        ("c.c", "gcc", format!("{}{print}int main(void) {{\n{c}{large}  return 0;\n}}\n", includes("", ""))),
        ("cxx.cpp", "g++", format!("{}{print}int main() {{\n{c}{large}}}\n", includes("", ""))),
        (
            "types.cpp",
            "g++",
            format!(
                "{}{print}{plain}int main() {{\n{cxx}{large}}}\n",
                includes("", "#define NVTUNE_CAPABILITY 90\n#include <vector_types.h>\n")
            ),
        ),
        ("fat.c", "gcc", format!("{capable}{}{print}int main(void) {{\n{fat}  return 0;\n}}\n", includes("", ""))),
        (
            "fat.cpp",
            "g++",
            format!(
                "{capable}{}{print}int main() {{\n{}}}\n",
                includes("", "#include <vector_types.h>\n"),
                fat.replace("nvtune_mixed_", "nvtune::mixed::").replace(
                    "print(\"fat\", nvtune::mixed::block(), nvtune::mixed::grid(1000)",
                    "print(\"fat\", plain(nvtune::mixed::block()), plain(nvtune::mixed::grid(1000))"
                )
            ),
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (file, compiler, text) in programs {
        let text = if file == "fat.cpp" { text.replace("int main", &format!("{plain}int main")) } else { text };
        std::fs::write(folder.path().join(file), text).expect("written");
        let program = folder.path().join(format!("{file}.out"));
        let mut compile = Command::new(compiler);
        compile
            .arg("-I")
            .arg(self::folder())
            .arg("-I")
            .arg(include_folder())
            .arg(folder.path().join(file))
            .arg("-o")
            .arg(&program);
        run(&mut compile);
        let said = run(&mut Command::new(&program));
        if file.starts_with("fat") {
            let of = |block: u32, blocks: u32| format!("fat: {block} 1 1, {blocks} 1 1, {}\n", block * 8);
            assert_eq!(said, [of(256, 4), of(64, 16), of(64, 16), of(32, 32)].concat(), "{file}");
        } else {
            // More blocks than any GPU takes stay too many, and fewer than none are none: both fail at the launch.
            let large = "huge: 128 1 1, 4294967295 1 1, 0\nnone: 128 1 1, 0 1 1, 0\n";
            assert_eq!(said, format!("{wanted}{large}"), "{file}");
        }
    }
}

/// Writes two headers and sources, `a` and `b`, each with a kernel `scale`.
fn two_headers() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let same = |stem: &str, block: u32| {
        let source = format!(
            "//@tune threads(n) block({{64, 128}}) default(block = {block}) args(n = 1000, x = random[n])\n__global__ void scale(int n, float *x) {{}}\n"
        );
        let annotations = annotations(&Source::new(format!("{stem}.cu"), source.as_bytes())).expect("a good comment");
        let space = Space::new(&annotations[0], &Limits::default()).expect("a space");
        let kernels = vec![header(&annotations[0], &Types::new(), space.baseline(), Provenance::Measured, "sm_90")];
        let text = Header { source: format!("{stem}.cu"), kernels }.text();
        std::fs::write(folder.path().join(Header::file_name(stem)), text).expect("written");
        let part = format!(
            "#include <vector_types.h>\n#include \"{stem}.tune.h\"\nunsigned {stem}() {{ return nvtune::scale::block().x; }}\n"
        );
        std::fs::write(folder.path().join(format!("{stem}.cpp")), part).expect("written");
    };
    same("a", 64);
    same("b", 128);
    folder
}

/// Each translation unit keeps its own, without optimization too, where nothing is inlined.
#[test]
fn headers_with_kernels_of_one_name_differ_by_translation_unit() {
    let folder = two_headers();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("main.cpp"),
        "unsigned a();\nunsigned b();\nint main() { return a() == 64 && b() == 128 ? 0 : 1; }\n",
    )
    .expect("written");
    let mut compile = Command::new("g++");
    compile
        .arg("-O0")
        .arg("-I")
        .arg(include_folder())
        .args([at("a.cpp"), at("b.cpp"), at("main.cpp")])
        .arg("-o")
        .arg(at("main"));
    run(&mut compile);
    run(&mut Command::new(at("main")));
}

#[test]
fn headers_with_kernels_of_one_name_in_one_translation_unit_are_an_error() {
    let folder = two_headers();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("both.c"), "#include \"a.tune.h\"\n#include \"b.tune.h\"\n").expect("written");
    let output = Command::new("gcc").args(["-fsyntax-only"]).arg(at("both.c")).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "two headers of nvtune have a kernel scale: add name(...) to the tuning comment of one of them";
    assert!(!output.status.success() && said.contains(expected), "{said}");
}
