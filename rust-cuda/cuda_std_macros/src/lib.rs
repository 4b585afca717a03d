//! `#[kernel]`: marks the entry points of a GPU kernel crate.

use proc_macro::TokenStream;
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{
    Error, Expr, FnArg, GenericArgument, GenericParam, Ident, ItemFn, Pat, ReturnType, Token, Type, parse_macro_input,
    parse_quote,
};

/// Makes a function an entry point of the compiled module, callable by name from the host.
///
/// On `nvptx64` the function becomes an exported `extern "ptx-kernel" fn`; on other targets it stays the plain function
/// that it is, for the emulator to call. As in Rust-CUDA, an argument may be a slice: the host then passes a pointer and
/// a length, two arguments.
///
/// ```ignore
/// #[kernel]
/// pub unsafe fn add_one(x: &[f32], y: *mut f32) { /* … */ }
/// ```
///
/// A generic function names its instances, each with the suffix that tells it apart. This one exports `fill_u32` and
/// `fill_f32x2`:
///
/// ```ignore
/// #[kernel(u32 = <u32, 1>, f32x2 = <f32, 2>)]
/// pub unsafe fn fill<T: Word, const STEP: usize>(out: *mut T, n: usize) { /* … */ }
/// ```
///
/// An instance may say how its blocks are launched, with how many threads at most and how many of them a multiprocessor is
/// to hold, so that the compiler has to do with the registers that this leaves (`__launch_bounds__` in CUDA C++):
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

/// Threads of a block, and blocks of a multiprocessor.
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

/// The words that mean something in the attribute.
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
        #(#entries)*
    })
}

/// The exported function `name`, which calls `function` with the generic `arguments` in place of its `parameters`.
fn entry(
    function: &ItemFn,
    name: &str,
    parameters: &[&Ident],
    arguments: &[GenericArgument],
    bounds: Option<&Bounds>,
) -> syn::Result<proc_macro2::TokenStream> {
    // The compiler has no words for bounds: they are a comment, which cuda_builder turns into directives.
    let bounds = bounds.map(|Bounds { threads, blocks }| {
        let comment = format!("// launch bounds {name} {{}} {{}}");
        quote! {
            #[cfg(target_arch = "nvptx64")]
            ::core::arch::global_asm!(#comment, const { #threads }, const { #blocks });
            #[cfg(not(target_arch = "nvptx64"))]
            const _: (usize, usize) = (#threads, #blocks);
        }
    });
    let mut inputs = Vec::new();
    let mut passed: Vec<Expr> = Vec::new();
    for argument in &function.sig.inputs {
        let FnArg::Typed(argument) = argument else {
            return Err(Error::new_spanned(argument, "a kernel is not a method"));
        };
        let Pat::Ident(pattern) = &*argument.pat else {
            return Err(Error::new_spanned(&argument.pat, "a kernel's arguments are plain names"));
        };
        let ident = &pattern.ident;
        let mut ty = (*argument.ty).clone();
        Substitute { parameters, arguments }.visit_type_mut(&mut ty);
        if let Type::Reference(reference) = &ty
            && let Type::Slice(slice) = &*reference.elem
        {
            let (element, length) = (&slice.elem, format_ident!("{ident}_len"));
            if reference.mutability.is_some() {
                return Err(Error::new_spanned(
                    &argument.ty,
                    "threads would share a mutable slice: pass a `*mut` pointer",
                ));
            }
            inputs.push(quote!(#ident: *const #element, #length: usize));
            passed.push(parse_quote!(unsafe { ::core::slice::from_raw_parts(#ident, #length) }));
        } else {
            inputs.push(quote!(#ident: #ty));
            passed.push(parse_quote!(#ident));
        }
    }
    let (callee, entry) = (&function.sig.ident, format_ident!("entry"));
    let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
    Ok(quote! {
        #bounds
        // On the host the instance is only named, so that an error in it shows there too.
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            let _ = #callee #turbofish;
        };
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[unsafe(export_name = #name)]
            unsafe extern "ptx-kernel" fn #entry(#(#inputs),*) {
                // SAFETY: the host passes what the kernel's documentation asks for.
                unsafe { #callee #turbofish (#(#passed),*) }
            }
        };
    })
}

/// Puts generic arguments in place of generic parameters.
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
