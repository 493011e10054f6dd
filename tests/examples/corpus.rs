//! Builds the programs of the corpus at -O2 and prints for each its name, a tab and its path, for
//! benchmarks to measure.

use anyhow::Result;
use tomo_testkit::corpus::{Level, Recipe, Source, build};

const SOURCES: [Source; 7] = [
    Source::Lua,
    Source::Sqlite,
    Source::Bzip2,
    Source::Zstd,
    Source::CFeatures,
    Source::CppFeatures,
    Source::RustFeatures,
];

fn main() -> Result<()> {
    let recipes = SOURCES.into_iter().flat_map(Recipe::family);
    for recipe in recipes.filter(|recipe| recipe.level == Level::O2) {
        let built = build(&recipe)?;
        println!("{}\t{}", built.name, built.program.display());
    }
    Ok(())
}
