//! The study's page: tables, figures, and the paper's words beside ours.

use super::{Function, Results, SIZES};
use crate::disposal::StudyError;
use crate::disposal::numbers::median;
use crate::sheet::Sheet;
use crate::svg::{Layer, Plot, Shape};
use crate::table::{Table, count, number, percent};

/// Everything that the study gives to read: file names and contents. The page is `paths.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, StudyError> {
    let mut sheet = Sheet::new(opening(results));
    sheet.tables(&[
        functions(results),
        probes(results),
        shares(results),
        overhead(results),
    ]);
    for program in programs(results) {
        for (file, plot, words) in figures(results, program) {
            sheet.plot((&file, &plot.title), &plot, &words);
        }
    }
    Ok(sheet.close("paths", results)?)
}

fn opening(results: &Results) -> String {
    format!(
        "# Selective path profiling, on native programs\n\n\
         After Apiwattanapong, Harrold, *Selective Path Profiling* (SPP); numbers of figures are those of the paper, whose \
         subject was `javac`, 465 methods of 20 classes with at most 5656 paths. Here it is every function of the programs that \
         has more than one path. A probe is an edge that adds something; probes that set a register or count are not \
         counted, as in the paper. *SPP* is the corrected algorithm (see PAPERS.md), unless it says *published*. Made in \
         {:.0} seconds.\n\n",
        results.seconds
    )
}

fn programs(results: &Results) -> impl Iterator<Item = &str> {
    results.others.iter().map(|(program, ..)| program.as_str())
}

fn of<'r>(results: &'r Results, program: &'r str) -> impl Iterator<Item = &'r Function> {
    let functions = results.functions.iter();
    functions.filter(move |one| one.program == program)
}

fn functions(results: &Results) -> Table {
    let mut table = Table::new(
        "functions",
        "Functions under study",
        "",
        &[
            "program",
            "#functions",
            "#with one path",
            "#with more than 2^64",
            "#studied",
            "#of two paths",
            "#most paths",
        ],
    );
    table.rows.push(
        ["*SPP: javac*", "465", "186", "", "279", "", "5,656"]
            .map(str::to_owned)
            .to_vec(),
    );
    for (program, single, numberless) in &results.others {
        let studied = of(results, program).count();
        let two = of(results, program).filter(|one| one.paths == 2).count();
        let most = of(results, program).map(|one| one.paths).max().unwrap_or(0);
        let numbers = [
            studied + single + numberless,
            *single,
            *numberless,
            studied,
            two,
        ];
        let mut row = vec![program.clone()];
        row.extend(numbers.map(|number| count(number as u64)));
        row.push(count(most));
        table.rows.push(row);
    }
    table
}

/// Ratios of functions to what all their paths take, for selections of this size.
fn ratios<'r>(results: &'r Results, program: &'r str, size: usize) -> impl Iterator<Item = f64> {
    of(results, program).filter_map(move |one| one.ratio(size))
}

fn probes(results: &Results) -> Table {
    let mut table = Table::new(
        "probes",
        "Probes of a selection, for each that all paths take: the median function, in %",
        "Of functions that have more paths than are selected, as in the paper.",
        &[
            "program",
            "#1 path",
            "#1, published",
            "#2",
            "#3",
            "#4",
            "#5",
        ],
    );
    for program in programs(results) {
        let published = of(results, program).filter_map(|one| {
            let probes = one.published?;
            Some(probes / one.all as f64)
        });
        let mut medians: Vec<String> = SIZES
            .iter()
            .map(|size| percent(median(ratios(results, program, *size))))
            .collect();
        medians.insert(1, percent(median(published)));
        medians.insert(0, program.to_owned());
        table.rows.push(medians);
    }
    table
}

fn share(values: impl Iterator<Item = f64>, pleases: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut all, mut pleasing) = (0, 0);
    for value in values {
        all += 1;
        pleasing += usize::from(pleases(value));
    }
    (all > 0).then(|| f64::from(pleasing as u32) / f64::from(all))
}

fn shares(results: &Results) -> Table {
    let mut table = Table::new(
        "shares",
        "What the paper says of its figures, in % of functions",
        "The paper reads from its figures: \"for approximately half of the methods studied, the percentage of probes needed to \
         profile one path is less than 60%\", and \"for about 70% of methods in our subject, five randomly selected paths \
         cover most of the edges\", which we take for nine in ten of the probes that all paths need.",
        &[
            "program",
            "#one path, less than 60 % of the probes",
            "#five paths, at least 90 %",
        ],
    );
    table.rows.push(
        ["*SPP: javac*", "about 50", "about 70"]
            .map(str::to_owned)
            .to_vec(),
    );
    for program in programs(results) {
        let few = share(ratios(results, program, 1), |ratio| ratio < 0.6);
        let most = share(ratios(results, program, 5), |ratio| ratio >= 0.9);
        table
            .rows
            .push(vec![program.into(), percent(few), percent(most)]);
    }
    table
}

fn overhead(results: &Results) -> Table {
    let mut table = Table::new(
        "overhead",
        "What the probes cost: whole processes, the processor's time",
        "The paper leaves that open. All of a run is in it: starting, and telling what was counted. Ratios are medians of the \
         rounds' ratios to the program alone.",
        &[
            "program",
            "paths that are counted",
            "#paths",
            "#seconds",
            "#ratio",
            "printed the same",
        ],
    );
    for timed in &results.timed {
        table.rows.push(vec![
            timed.program.clone(),
            timed.way.into(),
            timed
                .paths
                .map(|paths| count(paths as u64))
                .unwrap_or_default(),
            number(Some(timed.seconds)),
            format!("{:.3}", timed.ratio),
            if timed.same { "yes" } else { "**no**" }.into(),
        ]);
    }
    table
}

fn figures(results: &Results, program: &str) -> Vec<(String, Plot, String)> {
    let mut functions: Vec<&Function> = of(results, program).collect();
    functions.sort_by(|a, b| a.chain().total_cmp(&b.chain()));
    let points = |size: usize| -> Vec<(f64, f64)> {
        let ratios = functions.iter().filter_map(|one| one.ratio(size));
        ratios
            .enumerate()
            .map(|(at, ratio)| (at as f64, ratio))
            .collect()
    };
    let layer = |size: usize| Layer {
        name: format!("{size} path{}", if size == 1 { "" } else { "s" }),
        colour: size - 1,
        shape: Shape::Points(points(size)),
    };
    let plot = |figure: usize, sizes: &[usize]| Plot {
        title: format!("Probes of SPP for each of BL: {program} (Figure {figure})"),
        x: "functions, from trees to chains of branches".into(),
        y: "probes of the selection / of all paths".into(),
        from_zero: true,
        layers: sizes.iter().map(|size| layer(*size)).collect(),
        ..Plot::default()
    };
    let words = |figure: usize| {
        format!(
            "Figure {figure}. Functions are in the order of their number of paths for each set of probes, as in the paper: what is on \
         the right is a chain of branches, and there is little to gain."
        )
    };
    vec![
        (format!("figure-6-{program}"), plot(6, &[1]), words(6)),
        (
            format!("figure-7-{program}"),
            plot(7, &[2, 3, 4, 5]),
            words(7),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Function, Results, render};

    #[test]
    fn a_page_has_its_tables_and_figures() {
        let function = |paths, all, one| Function {
            program: "p".into(),
            name: "f".into(),
            paths,
            all,
            some: [Some(one), None, None, None, None],
            published: Some(one),
            drawn: 2,
        };
        let results = Results {
            functions: vec![
                function(2, 1, 1.0),
                function(9, 4, 1.0),
                function(3, 2, 1.0),
            ],
            others: vec![("p".into(), 5, 1)],
            ..Results::default()
        };
        let files = render(&results).expect("files");
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert!(
            names.contains(&"paths.md") && names.contains(&"figure-7-p.svg"),
            "{names:?}"
        );
        let page = &files
            .iter()
            .find(|(name, _)| name == "paths.md")
            .expect("a page")
            .1;
        assert!(page.contains("| p | 9 | 5 | 1 | 3 | 1 | 9 |"), "{page}");
        assert!(
            page.contains("| p | 50.0 | 50.0 |"),
            "the median of 1, 1/4 and 1/2: {page}"
        );
        assert!(
            page.contains("| p | 66.7 |  |"),
            "two of three below 60 %: {page}"
        );
    }
}
