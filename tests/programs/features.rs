//! What Rust adds to machine code: large matches without a default, panics that are caught, drop
//! glue on every way out, trait objects, iterators, formatting, bounds checks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::rc::Rc;

macro_rules! ops {
    ($($name:ident $value:literal),*) => {
        /// Many variants, so that a match becomes a table, and no default.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        enum Op { $($name = $value),* }
        const ALL: &[Op] = &[$(Op::$name),*];
    };
}

ops!(
    Add 0, Sub 1, Mul 2, Div 3, Rem 4, And 5, Or 6, Xor 7, Shl 8, Shr 9, Neg 10, Not 11, Dup 12,
    Swap 13, Drop 14, Push 15, Print 16, Jump 20, Call 21, Return 22
);

#[derive(Debug, Clone)]
enum Tree {
    Leaf(i64),
    Text(String),
    Pair(Box<Tree>, Box<Tree>),
    Many(Vec<Tree>),
    Labelled { label: String, tree: Rc<Tree> },
    Nothing,
}

#[inline(never)]
fn apply(op: Op, stack: &mut Vec<i64>) -> Option<i64> {
    let mut pop = || stack.pop();
    let result = match op {
        Op::Add => pop()?.wrapping_add(pop()?),
        Op::Sub => pop()?.wrapping_sub(pop()?),
        Op::Mul => pop()?.wrapping_mul(pop()?),
        Op::Div => pop()?.checked_div(pop()?)?,
        Op::Rem => pop()?.checked_rem(pop()?)?,
        Op::And => pop()? & pop()?,
        Op::Or => pop()? | pop()?,
        Op::Xor => pop()? ^ pop()?,
        Op::Shl => pop()?.checked_shl(pop()? as u32)?,
        Op::Shr => pop()?.checked_shr(pop()? as u32)?,
        Op::Neg => -pop()?,
        Op::Not => !pop()?,
        Op::Dup => *stack.last()?,
        Op::Swap => {
            let len = stack.len();
            stack.swap(len - 1, len - 2);
            return None;
        }
        Op::Drop => return stack.pop(),
        Op::Push => stack.len() as i64,
        Op::Print => {
            println!("stack {stack:?}");
            return Some(0);
        }
        Op::Jump => 20,
        Op::Call => return apply(Op::Add, stack),
        Op::Return => return Some(1),
    };
    stack.push(result);
    Some(result)
}

#[inline(never)]
fn weight(op: Op) -> &'static str {
    match op {
        Op::Add | Op::Sub => "light",
        Op::Mul => "heavy",
        Op::Div | Op::Rem => "heaviest",
        Op::And | Op::Or | Op::Xor | Op::Not => "bits",
        Op::Shl => "left",
        Op::Shr => "right",
        _ => "none",
    }
}

/// Every value of a byte has its arm.
#[inline(never)]
fn byte(b: u8, sum: &mut u64) {
    match b & 15 {
        0 => *sum += 1,
        1 => *sum *= 3,
        2 => *sum ^= 0x55,
        3 => *sum = sum.rotate_left(3),
        4 => *sum = sum.swap_bytes(),
        5 => *sum |= 9,
        6 => *sum -= *sum / 3,
        7 => *sum = !*sum,
        8 => *sum &= 0xffff_ffff,
        9 => print!(""),
        10 => *sum = u64::from(sum.count_ones()),
        11 => *sum = sum.wrapping_mul(*sum),
        12 => *sum = sum.reverse_bits(),
        13 => *sum <<= 2,
        14 => *sum >>= 1,
        15.. => *sum = sum.wrapping_sub(77),
    }
}

#[inline(never)]
fn class(b: u8) -> char {
    match b {
        0 => 'z',
        1..=8 | 14..=31 | 127 => 'c',
        b'\t' | b'\n' | b' ' => 's',
        b'0'..=b'9' => 'd',
        b'a'..=b'f' | b'A'..=b'F' => 'x',
        b'g'..=b'z' | b'G'..=b'Z' => 'l',
        128..=191 => '+',
        192..=223 => '2',
        224..=239 => '3',
        240..=247 => '4',
        248..=255 => '!',
        _ => 'p',
    }
}

fn sum(tree: &Tree) -> i64 {
    match tree {
        Tree::Leaf(n) => *n,
        Tree::Text(s) => s.len() as i64,
        Tree::Pair(a, b) => sum(a) - sum(b),
        Tree::Many(all) => all.iter().map(sum).sum(),
        Tree::Labelled { label, tree } => label.len() as i64 * sum(tree),
        Tree::Nothing => 0,
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf(n) => write!(f, "{n:+}"),
            Self::Text(s) => write!(f, "{s:?}"),
            Self::Pair(a, b) => write!(f, "({a} {b})"),
            Self::Many(all) => f
                .debug_list()
                .entries(all.iter().map(ToString::to_string))
                .finish(),
            Self::Labelled { label, tree } => write!(f, "{label:>6}: {tree}"),
            Self::Nothing => f.write_str("-"),
        }
    }
}

thread_local! {
    static DROPPED: Cell<u32> = const { Cell::new(0) };
    static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Noisy(u32);

impl Drop for Noisy {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get().wrapping_mul(3) + self.0 % 9);
        if std::thread::panicking() {
            NAMES.with_borrow_mut(|names| names.push(format!("unwound {}", self.0)));
        }
    }
}

#[inline(never)]
fn panics(kind: u32, values: &[i32]) -> i32 {
    let _one = Noisy(1);
    let boxed: Box<dyn Fn(i32) -> i32> = Box::new(move |x| x + kind as i32);
    let _two = Noisy(2);
    match kind {
        0 => panic!("with {} values", values.len()),
        1 => values[values.len() + 3],
        2 => values
            .iter()
            .position(|&v| v == 99)
            .map(|p| p as i32)
            .expect("no 99"),
        3 => values[0] / (values[0] - values[0]),
        4 => "x".parse::<i32>().unwrap(),
        5 => i32::from_str_radix(&values[5..2][0].to_string(), 10).unwrap_or(0),
        6 => panic_any(Noisy(9)),
        7 => RefCell::new(1)
            .try_borrow_mut()
            .map(|mut r| {
                *r += 1;
                *r
            })
            .unwrap_or(0),
        8 => {
            let cell = RefCell::new(1);
            let _held = cell.borrow_mut();
            *cell.borrow()
        }
        9 => unreachable!("never {kind}"),
        10 => std::str::from_utf8(black_box(&[0xff])).unwrap().len() as i32,
        11 => {
            let s = "é";
            s[1..].len() as i32
        }
        _ => boxed(values[1]),
    }
}

#[inline(never)]
fn caught(kind: u32) -> String {
    let _outer = Noisy(5);
    match catch_unwind(|| panics(kind, &[1, 2, 3])) {
        Ok(value) => format!("value {value}"),
        Err(e) if e.is::<String>() => e.downcast_ref::<String>().unwrap().clone(),
        Err(e) if e.is::<&str>() => (*e.downcast_ref::<&str>().unwrap()).to_owned(),
        Err(e) => match e.downcast::<Noisy>() {
            Ok(noisy) => format!("noisy {}", noisy.0),
            Err(_) => "unknown".to_owned(),
        },
    }
}

#[inline(never)]
fn nested() -> u32 {
    let count = Cell::new(0);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _guard = Noisy(7);
        if let Err(first) = catch_unwind(|| panics(0, &[])) {
            count.set(count.get() + 1);
            resume_unwind(first);
        }
    }));
    count.get() + u32::from(result.is_err())
}

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        "shape".to_owned()
    }
}
struct Square(f64);
struct Circle(f64);
impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        self.0.powi(2) * 3.0
    }
    fn name(&self) -> String {
        format!("circle of {:.1}", self.0)
    }
}

#[inline(never)]
fn shapes(shapes: &[Box<dyn Shape>]) -> String {
    shapes
        .iter()
        .map(|s| format!("{}={}", s.name(), s.area()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Every question mark is a way out with drops.
#[inline(never)]
fn parse(text: &str) -> Result<(u32, String), Box<dyn std::error::Error>> {
    let (number, rest) = text.split_once(':').ok_or("no colon")?;
    let number: u32 = number.trim().parse()?;
    let owned = rest.to_uppercase();
    let byte = u8::try_from(number)?;
    let letter =
        char::from_digit(u32::from(byte) % 40, 36).ok_or_else(|| format!("no digit {byte}"))?;
    Ok((number, format!("{letter}{owned}")))
}

#[inline(never)]
fn collections() -> u64 {
    let mut words: HashMap<&str, u32, BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for word in "the slice of the program that the fleet observes".split_whitespace() {
        *words.entry(word).or_default() += 1;
    }
    let tree: BTreeMap<_, _> = words.iter().map(|(w, c)| (w.len(), *c)).collect();
    let mut queue: VecDeque<u64> = (0..9).collect();
    queue.rotate_left(4);
    while let Some(front) = queue.pop_front() {
        if front % 3 == 0 && queue.len() < 12 {
            queue.push_back(front + 1);
        }
        if queue.len() > 20 {
            break;
        }
    }
    let mut numbers: Vec<u32> = (0..40).map(|n| n * 37 % 41).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.sort_by_key(|n| n % 5);
    numbers.dedup_by_key(|n| *n / 2);
    let windows: u32 = numbers
        .windows(3)
        .filter(|w| w[0] < w[2])
        .map(|w| w[1])
        .sum();
    let chars: String = "Grüße, Welt"
        .chars()
        .rev()
        .filter(|c| c.is_alphabetic())
        .collect();
    let zipped: u64 = numbers
        .iter()
        .zip(chars.bytes())
        .map(|(n, b)| u64::from(*n) * u64::from(b))
        .sum();
    u64::from(windows)
        + zipped
        + tree
            .range(3..)
            .map(|(k, v)| *k as u64 * u64::from(*v))
            .sum::<u64>()
}

fn main() {
    std::panic::set_hook(Box::new(|info| {
        NAMES.with_borrow_mut(|n| n.push(info.location().map_or(0, |l| l.line()).to_string()));
    }));
    let mut stack = (1..40).map(|n| n * 7 % 23 + 1).collect();
    let results: Vec<_> = ALL
        .iter()
        .map(|&op| apply(black_box(op), &mut stack))
        .collect();
    println!(
        "{results:?} {}",
        ALL.iter()
            .map(|&op| weight(black_box(op)))
            .collect::<String>()
    );
    let mut hash = 1;
    (0..40).for_each(|b| byte(black_box(b), &mut hash));
    println!(
        "{hash:x} {}",
        (0..=255).map(|b| class(black_box(b))).collect::<String>()
    );
    let tree = Tree::Many(vec![
        Tree::Pair(Box::new(Tree::Leaf(4)), Box::new(Tree::Text("text".into()))),
        Tree::Labelled {
            label: "label".into(),
            tree: Rc::new(Tree::Leaf(-3)),
        },
        Tree::Nothing,
    ]);
    println!("{} {} {tree:?}", sum(&tree.clone()), tree);
    println!(
        "{}",
        shapes(&[Box::new(Square(2.0)), Box::new(Circle(1.5))])
    );
    for text in ["7:seven", "x:y", "none", "300:big", "39:z"] {
        match parse(black_box(text)) {
            Ok((n, s)) => println!("{n} {s}"),
            Err(e) => println!("error: {e}"),
        }
    }
    (0..13).for_each(|kind| println!("{}", caught(black_box(kind))));
    println!("{} {} {}", nested(), DROPPED.get() != 0, collections());
    NAMES.with_borrow(|names| println!("{}", names.join(" ")));
    drop(tree);
    std::process::exit(if black_box(stack).is_empty() { 1 } else { 0 });
}
