//! Python literals, such as the text of an .npy header.
//!
//! Supported are strings, integers from 0 on, `True`, `False`, `None`, tuples, lists and dicts. Time and memory are
//! linear in the length of the text, and nesting is limited, so that no text overflows the stack.

use std::ops::Range;

/// The most levels of nested tuples, lists and dicts.
const MAX_DEPTH: usize = 32;
/// Characters of the text that a message quotes.
const QUOTED: usize = 20;

/// A literal and its byte range in the text.
#[derive(Debug)]
pub struct Literal {
    pub value: Value,
    pub span: Range<usize>,
}

/// The value of a literal.
#[derive(Debug)]
pub enum Value {
    String(String),
    Number(u64),
    Bool(bool),
    None,
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// The reason why a text is invalid.
#[derive(Debug)]
pub struct Problem {
    /// The offset of the invalid part in the text, in bytes.
    pub offset: usize,
    pub message: String,
}

impl Literal {
    /// Parses `text`: one literal, with white space around it.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let mut scanner = Scanner { text, position: 0, depth: 0 };
        let literal = scanner.literal()?;
        scanner.skip_spaces();
        if scanner.rest().is_empty() { Ok(literal) } else { Err(scanner.unexpected("the end of the header")) }
    }

    /// An error about this literal.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { offset: self.span.start, message: message.into() }
    }
}

struct Scanner<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn skip_spaces(&mut self) {
        self.position = self.text.len() - self.rest().trim_ascii_start().len();
    }

    /// Skips white space, and `token` if it follows. Returns whether `token` followed.
    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let is_next = self.rest().starts_with(token);
        self.position += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expect(&mut self, token: &str) -> Result<(), Problem> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}`"))) }
    }

    fn literal(&mut self) -> Result<Literal, Problem> {
        self.skip_spaces();
        let begin = self.position;
        let value = match self.rest().bytes().next() {
            Some(quote @ (b'\'' | b'"')) => Value::String(self.string(quote.into())?),
            Some(b'0'..=b'9') => Value::Number(self.number()?),
            Some(b'(' | b'[' | b'{') => return self.nested(),
            _ => self.keyword().ok_or_else(|| self.unexpected("a Python literal"))?,
        };
        Ok(Literal { value, span: begin..self.position })
    }

    fn keyword(&mut self) -> Option<Value> {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = self.rest().bytes().take_while(is_name).count();
        let value = match &self.rest()[..length] {
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            "None" => Value::None,
            _ => return None,
        };
        self.position += length;
        Some(value)
    }

    fn number(&mut self) -> Result<u64, Problem> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest()[..digits].parse().map_err(|_| self.unexpected("an integer below 2^64"))?;
        self.position += digits;
        // Python 2 writes `L` after long integers.
        self.position += usize::from(self.rest().starts_with('L'));
        Ok(number)
    }

    /// A tuple, a list or a dict.
    fn nested(&mut self) -> Result<Literal, Problem> {
        if self.depth == MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} levels of brackets");
            return Err(Problem { offset: self.position, message });
        }
        self.depth += 1;
        let begin = self.position;
        let value = if self.take("(") {
            let (mut items, has_comma) = self.items(")", Self::literal)?;
            if let [_] = items[..]
                && !has_comma
            {
                // Parentheses around one literal do not make a tuple.
                items.remove(0).value
            } else {
                Value::Tuple(items)
            }
        } else if self.take("[") {
            Value::List(self.items("]", Self::literal)?.0)
        } else {
            self.expect("{")?;
            Value::Dict(self.items("}", Self::entry)?.0)
        };
        self.depth -= 1;
        Ok(Literal { value, span: begin..self.position })
    }

    /// Items separated by commas up to `close`, and whether a comma follows the last item.
    fn items<T>(
        &mut self,
        close: &str,
        item: impl Fn(&mut Self) -> Result<T, Problem>,
    ) -> Result<(Vec<T>, bool), Problem> {
        let mut items = Vec::new();
        let mut has_comma = false;
        while !self.take(close) {
            if !items.is_empty() && !has_comma {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
            items.push(item(self)?);
            has_comma = self.take(",");
        }
        Ok((items, has_comma))
    }

    fn entry(&mut self) -> Result<(Literal, Literal), Problem> {
        let key = self.literal()?;
        self.expect(":")?;
        Ok((key, self.literal()?))
    }

    /// A string, with the escapes that Python's `repr` writes.
    fn string(&mut self, quote: char) -> Result<String, Problem> {
        let begin = self.position;
        self.position += 1;
        let mut string = String::new();
        while let Some(next) = self.rest().chars().next() {
            self.position += next.len_utf8();
            match next {
                '\\' => string.push(self.escape()?),
                _ if next == quote => return Ok(string),
                _ => string.push(next),
            }
        }
        Err(Problem { offset: begin, message: format!("expected a string that ends with {quote}") })
    }

    /// The character that an escape stands for. Its backslash has been read.
    fn escape(&mut self) -> Result<char, Problem> {
        let begin = self.position - 1;
        let kind = self.rest().chars().next();
        self.position += kind.map_or(0, char::len_utf8);
        let character = match kind {
            Some(literal @ ('\\' | '\'' | '"')) => Some(literal),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('x') => self.code(2),
            Some('u') => self.code(4),
            Some('U') => self.code(8),
            _ => None,
        };
        character.ok_or_else(|| {
            let message = "expected an escape that Python's repr writes: \\\\ \\' \\\" \\n \\r \\t \\x \\u \\U";
            Problem { offset: begin, message: message.to_owned() }
        })
    }

    /// The character of a code of `digits` hexadecimal digits.
    fn code(&mut self, digits: usize) -> Option<char> {
        let code = self.rest().get(..digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.position += digits;
        char::from_u32(u32::from_str_radix(code, 16).ok()?)
    }

    /// The error for a text that continues otherwise than `expected`.
    fn unexpected(&self, expected: &str) -> Problem {
        let found = match self.rest() {
            "" => "its end".to_owned(),
            rest => quote(rest),
        };
        Problem { offset: self.position, message: format!("expected {expected}, found {found}") }
    }
}

/// The beginning of a text in quotes, on one line, for a message.
pub fn quote(text: &str) -> String {
    format!("{:?}", text.chars().take(QUOTED).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A literal as Rust would show it, without spans.
    fn show(literal: &Literal) -> String {
        let list = |items: &[Literal]| items.iter().map(show).collect::<Vec<_>>().join(" ");
        match &literal.value {
            Value::String(string) => format!("{string:?}"),
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::None => "none".to_owned(),
            Value::Tuple(items) => format!("({})", list(items)),
            Value::List(items) => format!("[{}]", list(items)),
            Value::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{}={}", show(key), show(value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn literals_are_those_of_python() {
        for (text, expected) in [
            ("'a'", "\"a\""),
            ("  \"it's\"\n", "\"it's\""),
            (r#"'\\ \' \" \n\r\t \xe9\u20ac\U0001f600'"#, "\"\\\\ ' \\\" \\n\\r\\t \u{e9}\u{20ac}\u{1f600}\""),
            ("18446744073709551615", "18446744073709551615"),
            ("5L", "5"),
            ("(True, False, None)", "(true false none)"),
            ("()", "()"),
            ("(3)", "3"),
            ("(3,)", "(3)"),
            ("[ 3 , ]", "[3]"),
            ("{'a': [(1, 2,), {}], 'b': 'c',}", "{\"a\"=[(1 2) {}] \"b\"=\"c\"}"),
        ] {
            assert_eq!(Literal::parse(text).map(|literal| show(&literal)).map_err(|p| p.message), Ok(expected.into()));
        }
        let Value::List(items) = Literal::parse("['é',  ( 3, )]").unwrap().value else { panic!("not a list") };
        assert_eq!(items.iter().map(|item| item.span.clone()).collect::<Vec<_>>(), [1..5, 8..14]);
    }

    #[test]
    fn errors_name_their_offset() {
        for (text, offset, message) in [
            ("", 0, "expected a Python literal, found its end"),
            ("x", 0, "expected a Python literal, found \"x\""),
            ("Truer", 0, "expected a Python literal"),
            ("[-3]", 1, "expected a Python literal, found \"-3]\""),
            ("[1 2]", 3, "expected `,` or `]`, found \"2]\""),
            ("(,)", 1, "expected a Python literal"),
            ("[1,,]", 3, "expected a Python literal"),
            ("{'a' 1}", 5, "expected `:`"),
            ("{'a': 1", 7, "expected `,` or `}`, found its end"),
            ("1 1", 2, "expected the end of the header, found \"1\""),
            ("['a]", 1, "expected a string that ends with '"),
            (r"'\", 1, "expected an escape"),
            (r"'a\q'", 2, "expected an escape"),
            (r"'\x4'", 1, "expected an escape"),
            (r"'\ud800'", 1, "expected an escape"),
            (r"'\u+123'", 1, "expected an escape"),
            ("18446744073709551616", 0, "expected an integer below 2^64"),
        ] {
            let problem = Literal::parse(text).unwrap_err();
            assert_eq!(problem.offset, offset, "{text}: {}", problem.message);
            assert!(problem.message.starts_with(message), "{text}: {}", problem.message);
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Literal::parse(&nested(MAX_DEPTH)).is_ok());
        for depth in [MAX_DEPTH + 1, 60_000] {
            let problem = Literal::parse(&nested(depth)).unwrap_err();
            assert_eq!((problem.offset, &*problem.message), (MAX_DEPTH, "more than 32 levels of brackets"));
        }
    }
}
