//! What a user meets: handlers in every shape, what the compiler says to mistakes, and what the linker leaves out.
#![forbid(unsafe_code)]

mod linking;
mod payloads_alone;
mod shapes;

#[test]
fn what_is_a_handler_compiles_without_a_warning() {
    trybuild::TestCases::new().pass("pass/*.rs");
}

#[test]
fn mistakes_get_one_error_that_says_what_to_do() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

#[test]
fn no_mistake_gets_a_second_error() {
    for entry in std::fs::read_dir("fail").expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "stderr") {
            let text = std::fs::read_to_string(&path).expect("a text");
            let errors = text.lines().filter(|line| line.starts_with("error")).count();
            assert_eq!(errors, 1, "{}", path.display());
        }
    }
}
