//! Finds the places of a source file where an error can be planted.

use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Expr, ExprBinary, ExprMethodCall, Lit, Stmt, UnOp};

/// A place, with the texts that can stand there instead.
pub struct Place {
    /// Its bytes in the file.
    pub range: Range<usize>,
    /// The line and column, counted from 1.
    pub line: usize,
    pub column: usize,
    pub kind: Kind,
    /// The planted errors, each with its text.
    pub errors: Vec<Planted>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An expression, which a `match` replaces.
    Expression,
    /// A statement, which is left out.
    Statement,
}

pub struct Planted {
    /// What is wrong with it, such as "`<` becomes `<=`".
    pub what: String,
    /// The wrong text. Empty for a statement that is left out.
    pub text: String,
}

/// The places of `source`, the outer ones before the inner ones.
///
/// # Errors
/// If `source` is not a file of Rust.
pub fn places(source: &str) -> syn::Result<Vec<Place>> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder { source, places: Vec::new() };
    finder.visit_file(&file);
    finder.places.sort_by_key(|place| (place.range.start, usize::MAX - place.range.end));
    Ok(finder.places)
}

struct Finder<'s> {
    source: &'s str,
    places: Vec<Place>,
}

impl Finder<'_> {
    fn text(&self, of: &impl Spanned) -> &str {
        &self.source[of.span().byte_range()]
    }

    fn add(&mut self, of: &impl Spanned, kind: Kind, errors: Vec<Planted>) {
        if !errors.is_empty() {
            let span = of.span();
            let (range, start) = (span.byte_range(), span.start());
            self.places.push(Place { range, line: start.line, column: start.column + 1, kind, errors });
        }
    }

    fn add_binary(&mut self, binary: &ExprBinary) {
        let (left, right) = (self.text(&*binary.left), self.text(&*binary.right));
        let operator = self.text(&binary.op);
        let mut errors: Vec<Planted> = others(&binary.op)
            .iter()
            .map(|other| Planted {
                what: format!("`{operator}` becomes `{other}`"),
                text: format!("{left} {other} {right}"),
            })
            .collect();
        if matches!(binary.op, BinOp::Sub(_) | BinOp::Div(_) | BinOp::Shl(_) | BinOp::Shr(_)) && left != right {
            let what = format!("the operands of `{operator}` are exchanged");
            errors.push(Planted { what, text: format!("({right}) {operator} ({left})") });
        }
        self.add(binary, Kind::Expression, errors);
    }

    fn add_call(&mut self, call: &ExprMethodCall) {
        let (receiver, method) = (self.text(&*call.receiver), call.method.to_string());
        let arguments: Vec<&str> = call.args.iter().map(|argument| self.text(argument)).collect();
        let other = match (method.as_str(), arguments.as_slice()) {
            ("min", [other]) => format!("{receiver}.max({other})"),
            ("max", [other]) => format!("{receiver}.min({other})"),
            ("saturating_sub", [other]) => format!("{receiver}.wrapping_sub({other})"),
            ("div_ceil", [other]) => format!("({receiver}) / ({other})"),
            ("is_some", []) => format!("{receiver}.is_none()"),
            ("is_none", []) => format!("{receiver}.is_some()"),
            ("is_empty", []) => format!("!{receiver}.is_empty()"),
            ("is_multiple_of", [other]) => format!("!{receiver}.is_multiple_of({other})"),
            _ => return,
        };
        let what = format!("`{method}` becomes `{}`", other.replace(receiver, "…"));
        self.add(call, Kind::Expression, vec![Planted { what, text: other }]);
    }

    /// A condition that is no comparison, which has errors of its own.
    fn add_condition(&mut self, condition: &Expr) {
        let is_plain = matches!(condition, Expr::Path(_) | Expr::Field(_) | Expr::Call(_) | Expr::MethodCall(_));
        if is_plain {
            let text = format!("!({})", self.text(condition));
            let what = "the condition is negated".to_owned();
            self.add(condition, Kind::Expression, vec![Planted { what, text }]);
        }
    }
}

/// The operators that can stand in place of `operator`.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["&"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) | BinOp::DivAssign(_) => &["+="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        _ => &[],
    }
}

/// Whether the expression has a `let`, which must stay in its condition.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string().starts_with("test"),
        meta => meta.path().is_ident("test"),
    })
}

/// Code in constants is not visited, since an error is chosen at run time.
impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if item.sig.constness.is_none() && !is_for_tests(&item.attrs) {
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if item.sig.constness.is_none() && !is_for_tests(&item.attrs) {
            self.visit_block(&item.block);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let (None, Some(block)) = (item.sig.constness, &item.default) {
            self.visit_block(block);
        }
    }

    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}

    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}

    fn visit_trait_item_const(&mut self, _: &'a syn::TraitItemConst) {}

    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}

    fn visit_type(&mut self, _: &'a syn::Type) {}

    fn visit_path_arguments(&mut self, _: &'a syn::PathArguments) {}

    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'a syn::AngleBracketedGenericArguments) {}

    fn visit_variant(&mut self, _: &'a syn::Variant) {}

    fn visit_pat(&mut self, _: &'a syn::Pat) {}

    fn visit_attribute(&mut self, _: &'a Attribute) {}

    fn visit_expr_repeat(&mut self, repeat: &'a syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement {
            let is_dropped = match expression {
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) => true,
                Expr::Unsafe(block) => matches!(&*block.block.stmts, [Stmt::Expr(Expr::Call(_), _)]),
                Expr::Binary(binary) => !others(&binary.op).is_empty() && self.text(&binary.op).ends_with('='),
                _ => false,
            };
            if is_dropped {
                let text: String = self.text(statement).split_whitespace().collect::<Vec<_>>().join(" ");
                let what = format!("`{}` is left out", text.chars().take(60).collect::<String>());
                self.add(statement, Kind::Statement, vec![Planted { what, text: String::new() }]);
            }
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Binary(binary) if !has_let(expression) => self.add_binary(binary),
            Expr::MethodCall(call) => self.add_call(call),
            Expr::If(branch) => self.add_condition(&branch.cond),
            Expr::While(branch) => self.add_condition(&branch.cond),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_) | UnOp::Neg(_)) => {
                let (operator, text) = (self.text(&unary.op), self.text(&*unary.expr).to_owned());
                let what = format!("`{operator}` is left out");
                self.add(expression, Kind::Expression, vec![Planted { what, text }]);
            }
            Expr::Lit(literal) => {
                if let Lit::Int(number) = &literal.lit
                    && let Ok(value) = number.base10_parse::<u64>()
                    && let Some(more) = value.checked_add(1)
                {
                    let what = format!("{value} becomes {more}");
                    let text = format!("{more}{}", number.suffix());
                    self.add(expression, Kind::Expression, vec![Planted { what, text }]);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expression);
    }
}
