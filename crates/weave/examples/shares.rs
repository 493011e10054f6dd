//! Weaves programs, checks the images, and prints the shares of the tactics, why units have no
//! detour, and the time the weaving took.
//!
//! `cargo run --release -p tomo-weave --example shares -- PROGRAM…`

use std::path::Path;
use std::time::Instant;

use tomo_program::{Binary, Headers, Key, Request, load};
use tomo_weave::{Files, Options, Placement, check, weave};
use tomo_wire::plan::Level;
use tomo_wire::{FileStamp, ModuleId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let request = Request {
            path: Path::new(&path),
            cache: None,
            refresh: false,
            whole: true,
        };
        let model = load(&request, &())?.model;
        let binary = Binary::parse(&bytes)?;
        let file = std::fs::File::open(&path)?;
        let headers = Headers::read(&file, bytes.len() as u64)?.ok_or("no headers")?;
        let identity = headers.identity_of(&bytes);
        let module = match &identity.key {
            Key::BuildId(id) => ModuleId::by_build_id(id, identity.fingerprint),
            Key::Content(hash) => ModuleId::by_content(*hash, identity.fingerprint),
        };
        let module = module.ok_or("no identity")?;
        let stamp = FileStamp {
            device: 0.into(),
            inode: 0.into(),
            length: 0.into(),
            modified: 0.into(),
            changed: 0.into(),
        };
        for level in Level::ALL {
            for placement in [Placement::All, Placement::Reduced] {
                let (start, before) = (Instant::now(), processor_seconds());
                let options = Options {
                    level,
                    placement,
                    distance: None,
                    traps: true,
                    stays: false,
                };
                let woven = weave(&binary, &bytes, &model, module, stamp, &options)?;
                let (time, cpu) = (start.elapsed(), processor_seconds() - before);
                let units = f64::from(woven.counts.units());
                print!(
                    "{path} {level:?} {placement:?}: {units} units in {time:.1?} (processors: {cpu:.2} s):"
                );
                for (tactic, count) in &woven.counts.tactics {
                    print!(" {tactic:?} {:.2}%", 100.0 * f64::from(*count) / units);
                }
                let files = Files {
                    image: &woven.image,
                    plan: &woven.plan,
                    disposals: &woven.disposals,
                    is_gone: &|_| false,
                };
                let checked = check(&files, &bytes, &binary, &model)?;
                let kilobytes = woven.image.len() >> 10;
                println!(", image {kilobytes} KB, {} windows proven", checked.windows);
                for ((tactic, refusal), count) in &woven.counts.refusals {
                    let share = 100.0 * f64::from(*count) / units;
                    println!("    {tactic:?}, {}: {count} ({share:.2}%)", refusal.words());
                }
            }
        }
    }
    Ok(())
}

/// Seconds that all threads of this process have run, to a hundredth.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
