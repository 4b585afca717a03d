//! The unsigned number that keys are encoded as, chosen when the program runs.

/// Runs `$body` with the type named `$W` being the unsigned number of `$size` bytes: 1, 2, 4, 8, or else 16.
macro_rules! with_word {
    ($size:expr, $W:ident => $body:expr) => {{
        macro_rules! case {
            ($t:ty) => {{
                type $W = $t;
                $body
            }};
        }
        match $size {
            1 => case!(u8),
            2 => case!(u16),
            4 => case!(u32),
            8 => case!(u64),
            _ => case!(u128),
        }
    }};
}
pub(crate) use with_word;
