//! The settings, from the environment.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

/// The environment variable with the settings.
const VARIABLE: &str = "EMULATED_GPU";

pub struct Settings {
    pub devices: usize,
    pub memory: usize,
    pub capability: i32,
    pub multiprocessors: i32,
    pub seed: u64,
    /// The status of each call that fails: of this function, for this time.
    pub fail: HashMap<(String, usize), i32>,
    pub log: Option<PathBuf>,
}

impl Settings {
    /// The settings of the environment. Ends the process if they cannot be read.
    pub fn of_environment() -> Self {
        let text = env::var(VARIABLE).unwrap_or_default();
        Self::parse(&text).unwrap_or_else(|| {
            eprintln!("{VARIABLE} has a setting that is not known, or a value that is none: {text:?}");
            std::process::abort()
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut settings = Self {
            devices: 1,
            memory: 1 << 30,
            capability: 90,
            multiprocessors: 2,
            seed: UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64),
            fail: HashMap::new(),
            log: None,
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=')?;
            match name {
                "devices" => settings.devices = value.parse().ok()?,
                "memory" => settings.memory = value.parse().ok()?,
                "capability" => settings.capability = value.parse().ok()?,
                "multiprocessors" => settings.multiprocessors = value.parse().ok()?,
                "seed" => settings.seed = value.parse().ok()?,
                "fail" => {
                    let mut parts = value.split(':');
                    let call = (parts.next()?.to_owned(), parts.next()?.parse().ok()?);
                    settings.fail.insert(call, parts.next()?.parse().ok()?);
                }
                "log" => settings.log = Some(value.into()),
                _ => return None,
            }
        }
        Some(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let settings = Settings::parse("devices=2,fail=cuInit:1:999,fail=cuMemAlloc_v2:9:2,log=/a=b,seed=7").unwrap();
        assert_eq!((settings.devices, settings.seed, settings.capability), (2, 7, 90));
        assert_eq!(settings.fail, HashMap::from([(("cuInit".into(), 1), 999), (("cuMemAlloc_v2".into(), 9), 2)]));
        assert_eq!(settings.log, Some("/a=b".into()));
        for wrong in ["device=1", "devices", "devices=x", "fail=cuInit:3", "fail=cuInit:x:1"] {
            assert!(Settings::parse(wrong).is_none(), "{wrong}");
        }
    }
}
