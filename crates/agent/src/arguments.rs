//! Arguments that outlast a call: assembly that stands before a function of the C library calls one of ours, and goes on with everything
//! that may be an argument as it was.

/// The instructions of such a call. On entry the stack is as a function finds it; during the call it is aligned, `rsp + 8` leads to the
/// six arguments, which may be changed there, and behind them the return address.
macro_rules! keeping_arguments {
    ($($instruction:literal),*) => {
        concat!(
            "push r9\npush r8\npush rcx\npush rdx\npush rsi\npush rdi\nsub rsp, 8\n",
            $($instruction, "\n",)*
            "add rsp, 8\npop rdi\npop rsi\npop rdx\npop rcx\npop r8\npop r9\n",
        )
    };
}

pub(crate) use keeping_arguments;
