//! `tomo calibrate`: what it measures differs from time to time, what it says of it does not.

use std::process::Command;

use tomo_protocol::Calibration;

use crate::site::{Site, errors, finish};

#[test]
fn a_calibration_says_what_it_measured_and_how_many_probes_keep_the_bound() {
    for site in Site::each() {
        let file = site.state("cost.json");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .env("TOMO_CACHE_DIR", site.cache())
            .args(["calibrate", "--rounds", "6", "--overhead", "1000%", "-o"])
            .arg(&file)
            .arg("--")
            .arg(site.program);
        let output = finish(command, "");
        assert!(output.status.success(), "{}", errors(&output));
        let text = std::fs::read_to_string(&file).expect("a file");
        let calibration: Calibration = serde_json::from_str(&text).expect("a calibration");
        let assignment = site.assignment(|_| true);
        assert_eq!(calibration.plans, assignment.plans);
        assert_eq!(calibration.units, assignment.modules[0].probes);
        let numbers: Vec<u32> = calibration.points.iter().map(|cost| cost.probes).collect();
        assert_eq!(numbers.first(), Some(&0));
        assert_eq!(numbers.last(), Some(&calibration.units));
        let sound = |cost: &tomo_protocol::Cost| cost.low <= cost.share && cost.share <= cost.high;
        assert!(calibration.points.iter().all(sound), "{text}");
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(said.lines().count() == numbers.len() + 3, "{said}");
        assert!(said.contains("a bound of 1000.00 %"), "{said}");
        assert!(!site.cache().join("run").exists());
        let left = std::fs::read_dir(site.cache()).expect("a cache").flatten();
        let left =
            left.filter(|entry| entry.file_name().to_string_lossy().starts_with("calibrate"));
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn shares_are_per_cents_or_fractions() {
    let site = Site::new();
    for share in ["", "x", "-1%", "1%%", "nan"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tomo"));
        command
            .env("TOMO_CACHE_DIR", site.cache())
            .args(["calibrate", &format!("--overhead={share}"), "--"])
            .arg(site.program);
        let output = finish(command, "");
        assert_eq!(output.status.code(), Some(2), "{share}");
        assert!(
            errors(&output).contains("say 1% or 0.01"),
            "{}",
            errors(&output)
        );
    }
}
