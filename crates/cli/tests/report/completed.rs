//! Command lines that a shell completes.

use crate::bench::Bench;

#[test]
fn a_shell_completes_commands_and_flags() {
    let bench = Bench::new();
    let script = bench.tomo(&["completions", "bash"]).well();
    std::fs::write(bench.path("script"), script).expect("written");
    // As bash calls it: the command's function, with the word and the one before; files, where that has nothing to say.
    let asked = r#"
        source ./script
        [[ $(complete -p tomo) == *" -o default "*" -F _tomo"* ]] || exit 1
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _tomo tomo "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    std::fs::write(bench.path("asked"), asked).expect("written");
    let completed = |words: &[&str]| -> Vec<String> {
        let said = bench.shell(r#"exec bash asked "$@""#, words).well();
        said.lines().map(str::to_owned).collect()
    };
    assert_eq!(completed(&["tomo", "rep"]), ["report"]);
    assert_eq!(
        completed(&["tomo", "report", "--exclude"]),
        ["--exclude", "--exclude-marked"]
    );
    assert_eq!(
        completed(&["tomo", "cover", "--level", ""]),
        ["function", "block", "edge"]
    );
    let commands = completed(&["tomo", ""]);
    assert!(commands.iter().any(|word| word == "cover"), "{commands:?}");
    let is_hidden = |word: &&String| word.starts_with("pass");
    assert_eq!(commands.iter().find(is_hidden), None);
    for shell in ["zsh", "fish"] {
        let script = bench.tomo(&["completions", shell]).well();
        assert!(script.contains("show-missing-lines"), "{shell}");
    }
}
