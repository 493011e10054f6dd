//! The checker knows where control comes back from the system.

use tomo_program::{Function, Model, Range, analyse};
use tomo_testkit::corpus::compiled;
use tomo_weave::Options;
use tomo_wire::plan::Level;

use crate::woven::Program;

/// Makes one block of two of which the first ends in a system call.
fn join(function: &mut Function) {
    let [first, second] = function.blocks[..] else {
        panic!("not two blocks: {function:?}");
    };
    assert!(first.forks_or_ends, "{function:?}");
    let mut whole = first;
    whole.range = Range::new(first.range.start(), second.range.end()).expect("one behind another");
    whole.instructions += second.instructions;
    whole.forks_or_ends = false;
    function.blocks = vec![whole];
    function.edges.clear();
}

/// An image is woven for a model in which control only runs on behind a system call.
#[test]
fn a_window_over_the_place_behind_a_system_call_is_refused() {
    let path = compiled("gcc", "asking.s", &["-shared", "-nostdlib"]).expect("built");
    let program = Program::read(&path);
    let (mut functions, facts) = analyse(&program.bytes, &()).expect("a program");
    functions.iter_mut().for_each(join);
    let deceived = Program {
        model: Model::build(functions, facts),
        ..Program::read(&path)
    };
    let options = Options::of(Level::Block);
    program.check(&program.weave(&options)).expect("a proof");
    let woven = deceived.weave(&options);
    deceived.check(&woven).expect("it is right for that model");
    let flaw = program.check(&woven).expect_err("it is wrong for this one");
    let said = flaw.to_string();
    assert!(
        said.contains("something arrives in the middle of the window"),
        "{said}"
    );
}
