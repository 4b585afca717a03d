//! Names for the variants of enums.

/// Gives an enum without fields `ALL`, `name`, `Display` and `FromStr`. The macro lists all variants with their names.
///
/// ```text
/// names! {
///     MergeKernel, "merge kernel":
///     Auto = "auto",
///     Basic = "basic",
/// }
/// ```
macro_rules! names {
    ($type:ident, $what:literal: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// All values, in the order of their definition.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            #[doc = concat!(
                "The name that `Display` writes and `FromStr` reads: ",
                $crate::names::list!("`", "`"; $($name),+),
                "."
            )]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            /// The value with the given [`name`](Self::name), which is in lower case.
            ///
            /// # Errors
            /// [`Error::UnknownName`](crate::Error::UnknownName) if no value has this name.
            fn from_str(name: &str) -> Result<Self, $crate::Error> {
                let found = Self::ALL.into_iter().find(|value| value.name() == name);
                let expected = $crate::names::list!("", ""; $($name),+);
                found.ok_or_else(|| $crate::Error::UnknownName { what: $what, name: name.to_owned(), expected })
            }
        }
    };
}
pub(crate) use names;

/// The names as one literal, separated by commas. Each name is enclosed in `$before` and `$after`.
macro_rules! list {
    ($before:literal, $after:literal; $first:literal $(, $name:literal)*) => {
        concat!($before, $first, $after $(, ", ", $before, $name, $after)*)
    };
}
pub(crate) use list;
