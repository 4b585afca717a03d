//! Divides one PTX text into modules.

use crate::CudaBuilderError;
use std::collections::{BTreeMap, HashMap};

/// The names of the entry points in a PTX text, in order.
///
/// ```
/// let ptx = ".version 7.0\n.visible .entry add_one(\n)\n{\nret;\n}\n";
/// assert_eq!(cuda_builder::entry_points(ptx), ["add_one"]);
/// ```
pub fn entry_points(ptx: &str) -> Vec<&str> {
    ptx.lines().filter_map(entry_name).collect()
}

fn entry_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(".visible .entry ")?;
    Some(rest.split('(').next()?.trim())
}

/// The entry point's name and bounds in a line that `#[kernel(… within (threads, blocks))]` has left in the PTX.
fn launch_bounds(line: &str) -> Option<(&str, [&str; 2])> {
    let mut words = line.trim().strip_prefix("// launch bounds ")?.split(' ');
    Some((words.next()?, [words.next()?, words.next()?]))
}

/// Divides `ptx` into modules. An entry point goes to the module that `module_of` names; the header and shared
/// declarations go to all modules. Returns the text of each module by name.
///
/// Launch bounds, which are comment lines, become directives of their entry points. Other comment lines are omitted.
///
/// # Errors
/// [`CudaBuilderError::Ptx`] if an entry point has no module or no end.
pub fn split_modules(
    ptx: &str,
    module_of: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, CudaBuilderError> {
    let mut common = String::new();
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    let bounds: HashMap<_, _> = ptx.lines().filter_map(launch_bounds).collect();
    let mut lines = ptx.lines();
    while let Some(line) = lines.next() {
        let Some(name) = entry_name(line) else {
            // The compiler announces each entry point in a comment, which would otherwise go to all modules.
            if !line.trim_start().starts_with("// .globl") && launch_bounds(line).is_none() {
                common.push_str(line);
                common.push('\n');
            }
            continue;
        };
        let module = module_of(name)
            .ok_or_else(|| CudaBuilderError::Ptx(format!("entry point `{name}` belongs to no module")))?;
        let text = modules.entry(module).or_default();
        let number = text.lines().filter_map(entry_name).count();
        text.push_str(line);
        text.push('\n');
        // A brace in the first column ends the body.
        loop {
            let line = lines.next().ok_or_else(|| CudaBuilderError::Ptx(format!("`{name}` has no end")))?;
            if line.starts_with('{')
                && let Some([threads, blocks]) = bounds.get(name)
            {
                text.push_str(&format!(".maxntid {threads}, 1, 1\n.minnctapersm {blocks}\n"));
            }
            // The compiler frames inline assembly with two comments.
            if !line.trim_start().starts_with("//") {
                text.push_str(&renumbered(line, number));
                text.push('\n');
            }
            if line.starts_with('}') {
                break;
            }
        }
    }
    let common = common.split_inclusive('\n').fold(String::new(), |mut text, line| {
        // Entry points leave runs of empty lines behind.
        if line != "\n" || !text.ends_with("\n\n") {
            text.push_str(line);
        }
        text
    });
    for text in modules.values_mut() {
        text.insert_str(0, &common);
    }
    Ok(modules)
}

/// Prefixes of names that the compiler numbers by function over the whole text: labels, and local memory.
const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];

/// A line with its function's number replaced by `number`, so that a module does not depend on the functions of other
/// modules.
fn renumbered(line: &str, number: usize) -> String {
    NUMBERED.into_iter().fold(line.to_owned(), |line, name| {
        let mut parts = line.split(name);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |line, part| {
            line + name + &number.to_string() + part.trim_start_matches(|c: char| c.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 7.0
.target sm_80
.extern .shared .align 128 .b8 dyn_smem[];

\t// .globl\ta_u32
.visible .entry a_u32(
\t.param .u64 p
)
{
\tret;
}
\t// .globl\tb_u32
.visible .entry b_u32()
{
\t// begin inline asm
\t{ // callseq
\t}
\tret;
}
";

    #[test]
    fn each_entry_goes_to_its_module_with_the_common_part() {
        let modules = split_modules(PTX, |name| Some(name.replace("_u32", ""))).unwrap();
        assert_eq!(modules.keys().collect::<Vec<_>>(), ["a", "b"]);
        for (module, text) in &modules {
            assert!(text.starts_with(".version 7.0\n.target sm_80\n.extern .shared"), "{module}: {text}");
            assert_eq!(entry_points(text), [format!("{module}_u32")]);
            assert!(text.ends_with("}\n"), "{module}: {text}");
        }
        assert!(modules["b"].contains("callseq") && !modules["b"].contains("inline asm"));
    }

    #[test]
    fn launch_bounds_become_directives() {
        let ptx = format!("// launch bounds a_u32 256 3\n{PTX}");
        let modules = split_modules(&ptx, |entry| entry.strip_suffix("_u32").map(str::to_owned)).unwrap();
        assert!(modules["a"].contains("\n)\n.maxntid 256, 1, 1\n.minnctapersm 3\n{\n"), "{}", modules["a"]);
        assert!(modules.values().all(|text| !text.contains("launch bounds")) && !modules["b"].contains(".maxntid"));
    }

    #[test]
    fn labels_have_the_number_of_their_function_in_the_module() {
        let function = |name: &str, number: usize| {
            format!(
                ".visible .entry {name}()\n{{\n@%p1 bra $L__BB{number}_12;\nbra.uni $L__BB{number}_3;\n\
                 $L__BB{number}_12:\n}}\n"
            )
        };
        let ptx: String = [("a1", 7), ("b1", 8), ("a2", 10)].map(|(name, number)| function(name, number)).concat();
        let modules = split_modules(&ptx, |entry| Some(entry[..1].to_owned())).unwrap();
        assert_eq!(modules["a"], function("a1", 0) + &function("a2", 1));
        assert_eq!(modules["b"], function("b1", 0));
    }

    #[test]
    fn an_entry_without_a_module_is_an_error() {
        let error = split_modules(PTX, |name| (name == "a_u32").then(|| "a".to_owned())).unwrap_err();
        assert!(error.to_string().contains("`b_u32`"), "{error}");
    }

    #[test]
    fn an_entry_without_an_end_is_an_error() {
        let error = split_modules(".visible .entry a()\n{\n", |_| Some("a".to_owned())).unwrap_err();
        assert!(error.to_string().contains("`a` has no end"), "{error}");
    }
}
