//! The corpus builds, and its programs run to their end.

use tomo_testkit::corpus::{Compiler, Level, Recipe, Source, build};

#[test]
fn lua_is_built_once_and_has_a_workload() {
    let recipe = Recipe::new(Source::Lua, Compiler::Gcc, Level::O0);
    let built = build(&recipe).expect("built");
    assert_eq!(built.name, "lua-gcc-O0");
    assert_eq!(built.program, build(&recipe).expect("cached").program);
    let output = std::process::Command::new(&built.program)
        .args(&built.workloads[0].args)
        .output()
        .expect("run");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("finalised"));
}

#[test]
fn gcc_has_no_block_map() {
    let mut recipe = Recipe::new(Source::CFeatures, Compiler::Gcc, Level::O0);
    recipe.block_address_map = true;
    assert!(build(&recipe).is_err());
}

#[test]
fn a_name_tells_the_recipe() {
    let mut recipe = Recipe::new(Source::CFeatures, Compiler::Clang, Level::O3);
    recipe.pie = false;
    recipe.strip = true;
    recipe.extra.push("-fno-plt".to_owned());
    assert_eq!(recipe.name(), "cfeatures-clang-O3-stripped-fixed-fno-plt");
}
