//! `#[kernel]`: marks the entry points of a GPU kernel crate.

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use std::path::PathBuf;
use std::sync::LazyLock;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{
    Error, Expr, FnArg, GenericArgument, GenericParam, Ident, ItemFn, Pat, ReturnType, Token, Type, parse_macro_input,
    parse_quote,
};

/// Makes a function an entry point of the compiled module, callable by name from the host.
///
/// On `nvptx64` the function becomes an exported `extern "ptx-kernel" fn`. On other targets it stays a plain function,
/// which the emulator calls. As in Rust-CUDA, an argument may be a slice: the host then passes two arguments, a pointer
/// and a length.
///
/// ```ignore
/// #[kernel]
/// pub unsafe fn add_one(x: &[f32], y: *mut f32) { /* … */ }
/// ```
///
/// A generic function names its instances, each with a suffix. This one exports `fill_u32` and `fill_f32x2`:
///
/// ```ignore
/// #[kernel(u32 = <u32, 1>, f32x2 = <f32, 2>)]
/// pub unsafe fn fill<T: Word, const STEP: usize>(out: *mut T, n: usize) { /* … */ }
/// ```
///
/// On the host, the kernel's arguments become a struct with its name in camel case, `Fill`, which implements
/// `cuda_std::launch::Arguments`. A constant with its name in capitals, `FILL`, lists the instances.
///
/// A crate may have a feature `without_entry_points`. If it is enabled, the kernels are functions for other crates to
/// call, and not entry points.
///
/// An instance may have launch bounds: the maximum number of threads of a block, and the number of blocks that a
/// multiprocessor must hold. The compiler then limits the registers accordingly (`__launch_bounds__` in CUDA C++):
///
/// ```ignore
/// #[kernel(u32 = <u32, 1> within (256, 3))]
/// pub unsafe fn fill<T: Word, const STEP: usize>(out: *mut T, n: usize) { /* … */ }
/// ```
#[proc_macro_attribute]
pub fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    let instances = parse_macro_input!(attr as Instances);
    let function = parse_macro_input!(item as ItemFn);
    expand(&instances, &function).unwrap_or_else(Error::into_compile_error).into()
}

/// `suffix = <arguments> within (threads, blocks), …`
struct Instances(Vec<Instance>);

struct Instance {
    suffix: Ident,
    arguments: Vec<GenericArgument>,
    bounds: Option<Bounds>,
}

/// Threads per block, and blocks per multiprocessor.
struct Bounds {
    threads: Expr,
    blocks: Expr,
}

impl Parse for Instances {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let list = Punctuated::<Instance, Token![,]>::parse_terminated(input)?;
        Ok(Self(list.into_iter().collect()))
    }
}

impl Parse for Instance {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let suffix = input.parse()?;
        input.parse::<Token![=]>()?;
        let arguments: syn::AngleBracketedGenericArguments = input.parse()?;
        let bounds = if input.peek(words::within) {
            input.parse::<words::within>()?;
            let tuple;
            syn::parenthesized!(tuple in input);
            let threads = tuple.parse()?;
            tuple.parse::<Token![,]>()?;
            Some(Bounds { threads, blocks: tuple.parse()? })
        } else {
            None
        };
        Ok(Self { suffix, arguments: arguments.args.into_iter().collect(), bounds })
    }
}

/// Keywords of the attribute.
mod words {
    syn::custom_keyword!(within);
}

fn expand(instances: &Instances, function: &ItemFn) -> syn::Result<proc_macro2::TokenStream> {
    let signature = &function.sig;
    if !matches!(signature.output, ReturnType::Default) {
        return Err(Error::new_spanned(&signature.output, "a kernel returns nothing"));
    }
    if signature.unsafety.is_none() {
        return Err(Error::new_spanned(
            signature.fn_token,
            "a kernel is an `unsafe fn`: its arguments are the host's word",
        ));
    }
    let parameters: Vec<&Ident> = signature
        .generics
        .params
        .iter()
        .filter_map(|p| match p {
            GenericParam::Type(t) => Some(&t.ident),
            GenericParam::Const(c) => Some(&c.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if parameters.is_empty() != instances.0.is_empty() {
        return Err(Error::new_spanned(
            &signature.ident,
            "a generic kernel names its instances, `#[kernel(suffix = <arguments>, …)]`, and no other kernel does",
        ));
    }
    let launcher = launcher(instances, function, &parameters)?;
    let entries: Vec<_> = if instances.0.is_empty() {
        vec![entry(function, &signature.ident.to_string(), &[], &[], None)?]
    } else {
        let mut entries = Vec::new();
        for instance in &instances.0 {
            if instance.arguments.len() != parameters.len() {
                return Err(Error::new_spanned(&instance.suffix, format!("expected {} arguments", parameters.len())));
            }
            let name = format!("{}_{}", signature.ident, instance.suffix);
            entries.push(entry(function, &name, &parameters, &instance.arguments, instance.bounds.as_ref())?);
        }
        entries
    };
    Ok(quote! {
        // Inlined into its entry points: a function called on the GPU keeps its arguments in memory.
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        #function
        #launcher
        #(#entries)*
    })
}

/// An argument as the host passes it. A slice becomes two.
struct Passed {
    ident: Ident,
    ty: Type,
}

/// The arguments of `function`, and the expressions that call it with them.
fn passed(function: &ItemFn) -> syn::Result<(Vec<Passed>, Vec<Expr>)> {
    let (mut arguments, mut call) = (Vec::new(), Vec::new());
    for argument in &function.sig.inputs {
        let FnArg::Typed(argument) = argument else {
            return Err(Error::new_spanned(argument, "a kernel is not a method"));
        };
        let Pat::Ident(pattern) = &*argument.pat else {
            return Err(Error::new_spanned(&argument.pat, "a kernel's arguments are plain names"));
        };
        let ident = pattern.ident.clone();
        if let Type::Reference(reference) = &*argument.ty
            && let Type::Slice(slice) = &*reference.elem
        {
            if reference.mutability.is_some() {
                return Err(Error::new_spanned(
                    &argument.ty,
                    "threads would share a mutable slice: pass a `*mut` pointer",
                ));
            }
            let (element, length) = (&slice.elem, format_ident!("{ident}_len"));
            call.push(parse_quote!(unsafe { ::core::slice::from_raw_parts(#ident, #length) }));
            arguments.push(Passed { ident, ty: parse_quote!(*const #element) });
            arguments.push(Passed { ident: length, ty: parse_quote!(usize) });
        } else {
            call.push(parse_quote!(#ident));
            arguments.push(Passed { ident, ty: (*argument.ty).clone() });
        }
    }
    Ok((arguments, call))
}

/// The items for the host to launch `function`: a struct of its arguments, and a constant that lists its instances.
fn launcher(instances: &Instances, function: &ItemFn, parameters: &[&Ident]) -> syn::Result<proc_macro2::TokenStream> {
    let (kernel, visibility) = (&function.sig.ident, &function.vis);
    let name = kernel.to_string();
    let (structure, constant) = (format_ident!("{}", camel_case(&name)), format_ident!("{}", name.to_uppercase()));
    let (arguments, call) = passed(function)?;
    // The parameters that occur in the types of arguments.
    let of_arguments = |parameter: &Ident| arguments.iter().any(|argument| mentions(&argument.ty, parameter));
    let generics: Vec<&GenericParam> = function
        .sig
        .generics
        .params
        .iter()
        .filter(|parameter| match parameter {
            GenericParam::Type(parameter) => of_arguments(&parameter.ident),
            GenericParam::Const(parameter) => of_arguments(&parameter.ident),
            GenericParam::Lifetime(_) => false,
        })
        .collect();
    let names: Vec<&Ident> = parameters.iter().copied().filter(|parameter| of_arguments(parameter)).collect();
    let (fields, types): (Vec<_>, Vec<_>) = arguments.iter().map(|Passed { ident, ty }| (ident, ty)).unzip();
    let count = fields.len();
    let launched = Launched { kernel, structure: &structure, parameters, names: &names, arguments: &arguments, call };
    let table = |suffix: &str, chosen: &[GenericArgument]| launched.instance(suffix, chosen);
    let tables: Vec<_> = if instances.0.is_empty() {
        vec![table("", &[])]
    } else {
        instances.0.iter().map(|instance| table(&instance.suffix.to_string(), &instance.arguments)).collect()
    };
    let generics_of_struct = (!generics.is_empty()).then(|| quote!(<#(#generics),*>));
    let names_of_struct = (!names.is_empty()).then(|| quote!(<#(#names),*>));
    let of_the_kernel = format!("The arguments of [`{name}`]({name}()), to launch it with.");
    let the_kernel = format!("The kernel [`{name}`]({name}()), with its instances.");
    Ok(quote! {
        #[doc = #of_the_kernel]
        #[cfg(not(target_arch = "nvptx64"))]
        #[derive(Clone, Copy)]
        #[allow(missing_docs)]
        #visibility struct #structure #generics_of_struct {
            #(pub #fields: #types,)*
        }
        #[cfg(not(target_arch = "nvptx64"))]
        impl #generics_of_struct ::cuda_std::launch::Arguments for #structure #names_of_struct {
            const KERNEL: ::cuda_std::launch::Kernel = #constant;
            type Pointers = [*mut ::core::ffi::c_void; #count];
            fn pointers(&self) -> Self::Pointers {
                [#((&raw const self.#fields).cast_mut().cast()),*]
            }
        }
        #[doc = #the_kernel]
        #[cfg(not(target_arch = "nvptx64"))]
        #visibility const #constant: ::cuda_std::launch::Kernel =
            ::cuda_std::launch::Kernel { name: #name, instances: &[#(#tables),*] };
        #[cfg(not(target_arch = "nvptx64"))]
        ::cuda_std::__registered!(#constant);
    })
}

/// A kernel whose instances are listed.
struct Launched<'a> {
    kernel: &'a Ident,
    /// The struct of its arguments.
    structure: &'a Ident,
    /// The generic parameters of the kernel, and the ones among them that the struct has.
    parameters: &'a [&'a Ident],
    names: &'a [&'a Ident],
    arguments: &'a [Passed],
    /// The expressions that the kernel is called with.
    call: Vec<Expr>,
}

impl Launched<'_> {
    /// The instance with this suffix, for these generic arguments.
    fn instance(&self, suffix: &str, chosen: &[GenericArgument]) -> proc_macro2::TokenStream {
        let Self { kernel, structure, parameters, names, arguments, call } = self;
        let of_struct = names.iter().map(|name| {
            let at = parameters.iter().position(|parameter| parameter == name).expect("it is one of the parameters");
            &chosen[at]
        });
        let of_struct = (!names.is_empty()).then(|| quote!(::<#(#of_struct),*>));
        let of_kernel = (!chosen.is_empty()).then(|| quote!(::<#(#chosen),*>));
        let fields = arguments.iter().map(|argument| &argument.ident);
        let concrete = arguments.iter().map(|argument| {
            let mut ty = argument.ty.clone();
            Substitute { parameters, arguments: chosen }.visit_type_mut(&mut ty);
            ty
        });
        let index = 0..arguments.len();
        quote! {
            ::cuda_std::launch::Instance::new(
                #suffix,
                || ::core::any::TypeId::of::<#structure #of_struct>(),
                ::cuda_std::__emulated!(|pointers: *const *mut ::core::ffi::c_void| {
                    // SAFETY: the caller passes pointers to all arguments, in this order and with their types.
                    #(let #fields = unsafe { (*pointers.add(#index)).cast::<#concrete>().read() };)*
                    // SAFETY: the arguments meet the kernel's `# Safety` section whenever this is called.
                    move || unsafe { #kernel #of_kernel (#(#call),*) }
                })
            )
        }
    }
}

/// Converts `merge_big` to `MergeBig`.
fn camel_case(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    name.split('_').map(capitalised).collect()
}

/// Whether `parameter` occurs in a type.
fn mentions(ty: &Type, parameter: &Ident) -> bool {
    struct Search<'a>(&'a Ident, bool);
    impl<'ast> Visit<'ast> for Search<'_> {
        fn visit_ident(&mut self, ident: &'ast Ident) {
            self.1 |= ident == self.0;
        }
    }
    let mut search = Search(parameter, false);
    search.visit_type(ty);
    search.1
}

/// The exported function `name`, which calls `function` with the generic `arguments` for its `parameters`.
fn entry(
    function: &ItemFn,
    name: &str,
    parameters: &[&Ident],
    arguments: &[GenericArgument],
    bounds: Option<&Bounds>,
) -> syn::Result<proc_macro2::TokenStream> {
    let is_compiled = is_compiled();
    // The compiler has no syntax for launch bounds: they are a comment, which cuda_builder turns into directives.
    let bounds = bounds.map(|Bounds { threads, blocks }| {
        let comment = format!("// launch bounds {name} {{}} {{}}");
        quote! {
            #[cfg(#is_compiled)]
            ::core::arch::global_asm!(#comment, const { #threads }, const { #blocks });
            #[cfg(not(target_arch = "nvptx64"))]
            const _: (usize, usize) = (#threads, #blocks);
        }
    });
    let (inputs, call) = passed(function)?;
    let inputs = inputs.into_iter().map(|Passed { ident, mut ty }| {
        Substitute { parameters, arguments }.visit_type_mut(&mut ty);
        quote!(#ident: #ty)
    });
    let (callee, entry) = (&function.sig.ident, format_ident!("entry"));
    let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
    Ok(quote! {
        #bounds
        // On the host the instance is only mentioned, so that errors in it are reported there, too.
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            let _ = #callee #turbofish;
        };
        #[cfg(#is_compiled)]
        const _: () = {
            #[unsafe(export_name = #name)]
            unsafe extern "ptx-kernel" fn #entry(#(#inputs),*) {
                // SAFETY: the host passes arguments that meet the kernel's `# Safety` section.
                unsafe { #callee #turbofish (#(#call),*) }
            }
        };
    })
}

/// The condition for compiling an entry point: on the GPU, unless the crate has the feature [`LEAVES_OUT`] and it is
/// enabled.
fn is_compiled() -> proc_macro2::TokenStream {
    static HAS_FEATURE: LazyLock<bool> = LazyLock::new(|| {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = folder.and_then(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).ok());
        manifest.is_some_and(|text| text.lines().any(|line| line.trim_start().starts_with(LEAVES_OUT)))
    });
    if *HAS_FEATURE {
        quote!(all(target_arch = "nvptx64", not(feature = #LEAVES_OUT)))
    } else {
        quote!(target_arch = "nvptx64")
    }
}

/// The feature of a crate with kernels for other crates to instantiate. It disables the crate's own entry points.
const LEAVES_OUT: &str = "without_entry_points";

/// Replaces generic parameters by generic arguments.
struct Substitute<'a> {
    parameters: &'a [&'a Ident],
    arguments: &'a [GenericArgument],
}

impl VisitMut for Substitute<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::Path(path) = ty
            && let Some(ident) = path.path.get_ident()
            && let Some(at) = self.parameters.iter().position(|p| *p == ident)
            && let GenericArgument::Type(argument) = &self.arguments[at]
        {
            *ty = argument.clone();
            return;
        }
        syn::visit_mut::visit_type_mut(self, ty);
    }
}
