//! Local disposal: Tables 1 to 4 and 6, and redundant probe executions.

use super::{Section, Table, count, number, percent};
use crate::disposal::paper;
use crate::disposal::{Placed, Redundancy, Results, Stay, Timed, Units, Way};

pub(in crate::disposal) const TITLE: &str = "Local disposal";

const TEXT: &str = "\
*No-I* is a program as it is, clang's at -O2. *LD* is the same file under `tomo cover`: each probe goes at its \
first hit. *Armed* is LD without the launcher: the program is armed by its environment, with a fresh image for each \
process. What instrumentation without disposal pays (*Basic-I*; *Dom-I* where dominators save probes) is \
measured in three ways. **Woven**: the very probes of *armed*, told to stay (`--disposal none`), so that the two \
differ in disposal alone; Table 1 says how many of them can. **Flag**: the same sources built with clang's cheapest \
mark, a byte that is looked at and set within the code itself (`inline-bool-flag`). **Call**: built with a call of a \
collector at each block, as the paper's probes are (`trace-pc-guard`). Times are seconds of the processor, of a whole \
process with all that was started for it, in rounds in which each way has its turn; percentages are over No-I, \
medians of what each round says by itself. *Gain* is without disposal less with it (armed), in points of No-I, as in \
the paper.";

pub(in crate::disposal) fn section(results: &Results) -> Section {
    let mut tables = vec![table_1(results), paper_1()];
    for (units, paper, others) in [
        (Units::Block, &paper::TABLE_2, None),
        (Units::BlockDom, &paper::TABLE_3, None),
        (Units::Function, &paper::TABLE_4, Some(&paper::TABLE_6)),
    ] {
        tables.push(times(results, units, paper.number));
        tables.extend([Some(paper), others].into_iter().flatten().map(printed));
    }
    tables.push(redundancy(results));
    Section {
        title: TITLE,
        text: TEXT.into(),
        tables,
    }
}

/// What a table says of a program's probes.
type Cell = fn(&Placed) -> String;

fn table_1(results: &Results) -> Table {
    let note = "Blocks of `tomo` are those of the machine code and end at calls; marks are at blocks of the compiler's \
                intermediate language, after optimisation. `tomo` assumes that a run may stop at any call and in any loop, \
                so it infers less than dominators alone would.";
    let mut table = Table::new(
        "table-1",
        "Table 1, ours: probes",
        note,
        &[
            "program",
            "probes",
            "#blocks",
            "#by dominators",
            "#functions",
        ],
    );
    let mut programs: Vec<&str> = results
        .placed
        .iter()
        .map(|one| one.program.as_str())
        .collect();
    programs.dedup();
    for program in programs {
        let of = |units| {
            let mut placed = results.placed.iter();
            placed.find(|one| one.program == program && one.units == units)
        };
        let kinds: [(&str, Cell); 3] = [
            ("woven", |one| count(one.ours)),
            ("woven, that can stay", |one| count(one.staying)),
            ("flags or calls of the compiler", |one| {
                one.marks.map(count).unwrap_or_default()
            }),
        ];
        for (kind, cell) in kinds {
            let mut row = vec![program.to_owned(), kind.to_owned()];
            row.extend(Units::ALL.map(|units| of(units).map(cell).unwrap_or_default()));
            table.rows.push(row);
        }
    }
    table
}

fn paper_1() -> Table {
    let columns = ["program", "#blocks", "#by dominators", "#methods"];
    let mut table = Table::new(
        "table-1-paper",
        "Table 1, the paper's: Specjvm98",
        "",
        &columns,
    );
    for row in paper::TABLE_1 {
        let numbers = [row.blocks, row.dominators, row.methods].map(|n| count(n.into()));
        table
            .rows
            .push([vec![row.program.to_owned()], numbers.to_vec()].concat());
    }
    table
}

fn times(results: &Results, units: Units, table_number: u32) -> Table {
    let name = units.name();
    let also = if units == Units::Function {
        " and 6"
    } else {
        ""
    };
    let basic = if units == Units::BlockDom {
        "Dom-I"
    } else {
        "Basic-I"
    };
    let head = |stay: Stay| format!("#{basic} ({}) %", stay.name());
    let gain = |stay: Stay| format!("#gain on {}", stay.name());
    let mut columns: Vec<String> = ["run", "#No-I s", "#sd", "#noise %"].map(Into::into).into();
    columns.extend(Stay::ALL.map(head));
    columns.extend(["#LD s", "#sd", "#LD %", "#armed %"].map(Into::into));
    columns.extend(Stay::ALL.map(gain));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let title = format!("Table {table_number}{also}, ours: {name}");
    let mut table = Table::new(&format!("table-{table_number}"), &title, "", &columns);
    for timed in &results.timed {
        let lasting = Stay::ALL.map(|stay| Way::Lasting(units, stay));
        let (cover, armed) = (Way::Covered(units), Way::Armed(units));
        let seconds = |way| {
            let summary = timed.summary(way);
            [summary.map(|s| s.mean), summary.map(|s| s.deviation)].map(number)
        };
        let mut row = vec![timed.task.clone()];
        row.extend(seconds(Way::Bare));
        row.push(percent(timed.noise()));
        row.extend(lasting.map(|way| percent(timed.overhead(way))));
        row.extend(seconds(cover));
        row.extend([cover, armed].map(|way| percent(timed.overhead(way))));
        row.extend(lasting.map(|way| percent(timed.gain(way, armed))));
        table.rows.push(row);
    }
    table
}

fn printed(times: &paper::Times) -> Table {
    let number = times.number;
    let title = format!("Table {number}, the paper's: {}", times.title);
    let kind = if number == 3 { "Dom-I" } else { "Basic-I" };
    let columns = [
        "program",
        "#No-I s",
        &format!("#{kind} s"),
        "#%",
        &format!("#LD-{kind} s"),
        "#%",
        "#gain",
    ];
    let mut table = Table::new(&format!("table-{number}-paper"), &title, "", &columns);
    for row in times.rows {
        let numbers = [
            row.bare,
            row.lasting,
            row.lasting_overhead,
            row.disposed,
            row.disposed_overhead,
            row.gain,
        ];
        let cells = numbers.map(|value| value.to_string()).to_vec();
        table
            .rows
            .push([vec![row.program.to_owned()], cells].concat());
    }
    table
}

fn redundancy(results: &Results) -> Table {
    let note = "Executions of the very marks that stay, each counted exactly; RPE = executed − unique (DIS §3.3).";
    let columns = [
        "run",
        "probes at",
        "#executed",
        "#unique",
        "#RPE",
        "#RPE / s, millions",
    ];
    let mut table = Table::new(
        "redundancy",
        "Redundant probe executions, ours",
        note,
        &columns,
    );
    for one in &results.redundancy {
        let rate = rate(results, one).map(|rate| rate / 1e6);
        let [executed, unique, redundant] = [one.executed, one.unique, one.redundant()].map(count);
        let names = [one.task.clone(), one.units.name().to_owned()];
        let cells = vec![executed, unique, redundant, number(rate)];
        table.rows.push([names.to_vec(), cells].concat());
    }
    table
}

/// Redundant probe executions in a second of the row's own time without probes.
pub(in crate::disposal) fn rate(results: &Results, one: &Redundancy) -> Option<f64> {
    let timed: Option<&Timed> = results.timed.iter().find(|timed| timed.task == one.task);
    let bare = timed?.summary(Way::Bare)?.mean;
    Some(one.redundant() as f64 / bare)
}
