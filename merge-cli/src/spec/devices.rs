//! The argument of `--device`: GPUs.

use merge_host::Gpus;
use std::str::FromStr;

/// Some GPUs of the machine, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Devices(pub Gpus);

impl FromStr for Devices {
    type Err = String;

    /// Reads `all`, or ordinals separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Gpus::All));
        }
        let mut ordinals = Vec::new();
        for part in text.split(',') {
            let ordinal: usize =
                part.parse().map_err(|_| "expected all, or numbers of GPUs like 0 or 0,1".to_owned())?;
            if ordinals.contains(&ordinal) {
                return Err(format!("expected every GPU once, and GPU {ordinal} is there twice"));
            }
            ordinals.push(ordinal);
        }
        Ok(Self(Gpus::Of(ordinals)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_all_or_some() {
        let read = |text: &str| text.parse::<Devices>().map(|devices| devices.0);
        assert_eq!(read("all"), Ok(Gpus::All));
        assert_eq!(read("2"), Ok(Gpus::Of(vec![2])));
        assert_eq!(read("1,0"), Ok(Gpus::Of(vec![1, 0])));
        assert_eq!(read("0,0").unwrap_err(), "expected every GPU once, and GPU 0 is there twice");
        for text in ["", "0,", "-1", "one", "0 1", "ALL"] {
            assert!(read(text).unwrap_err().starts_with("expected all"), "{text}");
        }
    }
}
