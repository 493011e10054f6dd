//! The figures of DPT §6, as printed.

/// The programs, in the order of all figures.
pub(super) const PROGRAMS: [&str; 12] = [
    "order", "iinv", "imat", "inap", "r013", "rls", "rv54", "tcbl", "tccm", "wip", "zrep", "zrotc",
];

/// Figure 12: blocks, diamonds and cycles: how many there are, how many the trace covers, how often it hits them.
pub(super) const FIGURE_12: [[[u64; 3]; 3]; 12] = [
    [[475, 93, 4031], [638, 29, 1607], [10, 2, 126]],
    [[745, 219, 3807], [509, 38, 1144], [5, 3, 34]],
    [[967, 245, 2525], [1787, 68, 958], [12, 2, 66]],
    [[215, 111, 296], [97, 20, 111], [3, 3, 3]],
    [[137, 97, 1067], [36, 18, 280], [0, 0, 0]],
    [[82, 46, 105], [41, 6, 22], [0, 0, 0]],
    [[653, 104, 108], [1814, 21, 21], [21, 2, 4]],
    [[143, 125, 3618], [57, 30, 1373], [1, 1, 58]],
    [[145, 130, 14932], [152, 27, 5771], [2, 1, 851]],
    [[541, 245, 2309], [300, 65, 721], [13, 8, 139]],
    [[25, 17, 855], [17, 7, 287], [0, 0, 0]],
    [[105, 63, 1041], [16, 6, 338], [0, 0, 0]],
];

/// Figure 13: cost of distribution and of collection, by the estimate: not distributed; then on 2 to 5 machines
/// fine-grained, function-wise, optimized.
pub(super) const FIGURE_13: [&str; 12] = [
    "342/992 239/889 203/879 181/815 168/892 218/810 179/563 161/689 151/489 228/666 195/616 175/567 166/372",
    "231/1095 171/1091 144/943 127/852 113/601 142/643 105/575 84/405 73/407 134/732 103/483 85/377 77/351",
    "561/740 462/717 417/641 383/518 357/523 286/513 198/324 168/397 141/229 352/481 277/366 239/362 222/338",
    "83/70 58/69 51/79 45/81 46/68 42/65 31/63 24/61 21/61 58/60 49/57 43/60 42/56",
    "645/480 425/349 379/254 243/254 243/259 626/379 623/374 622/374 621/371 629/373 626/371 623/374 622/373",
    "8/22 6/21 5/19 4/20 4/19 4/20 4/19 4/19 4/19 4/20 4/19 4/19 4/19",
    "824/25 655/23 595/23 592/24 576/25 565/14 534/11 524/9 517/10 616/21 599/18 591/11 588/8",
    "191/1443 119/992 108/925 115/770 77/665 174/1155 169/1097 166/1093 165/1091 173/1155 171/1148 170/1147 169/1146",
    "67/6631 50/6257 47/6212 38/3813 38/3813 37/5403 28/5403 28/5403 27/5402 37/5402 33/5405 32/5403 32/5403",
    "605/1040 408/755 334/595 291/574 270/554 303/584 210/382 182/343 162/372 330/598 256/442 230/444 201/425",
    "7/423 4/285 4/285 3/215 3/215 7/423 7/423 7/423 7/423 5/212 3/212 3/212 3/212",
    "297/424 202/256 202/252 130/171 121/168 290/422 287/421 286/421 285/421 289/422 287/421 286/421 285/421",
];

/// §6: the mean share of the non-distributed hits in the busiest of 2 to 7 machines, in %, three programs left out.
pub(super) const FIGURE_14: [f64; 6] = [62.0, 49.0, 44.0, 38.0, 32.0, 31.0];

/// Figure 16: cost of collection where profiles have at most 10, 20, 30 and 40 witnesses.
pub(super) const FIGURE_16: [[u64; 4]; 12] = [
    [1366, 1005, 597, 687],
    [1203, 729, 641, 567],
    [3207, 2005, 1485, 1273],
    [90, 73, 47, 59],
    [719, 374, 374, 374],
    [34, 24, 18, 18],
    [59, 45, 35, 32],
    [750, 910, 1080, 1097],
    [6841, 5038, 4092, 4882],
    [492, 475, 495, 435],
    [352, 423, 423, 423],
    [421, 421, 421, 421],
];

#[cfg(test)]
mod tests {
    use super::{FIGURE_13, FIGURE_14};

    /// The text's means follow from Figure 13, as far as that goes: 2 to 5 machines, the best strategy, without `rls`,
    /// `inap` and `zrep`.
    #[test]
    fn the_means_of_the_text_lie_near_those_of_figure_13() {
        let rows = FIGURE_13.iter().enumerate();
        let rows = rows.filter(|(at, _)| ![3, 5, 10].contains(at));
        let hits: Vec<Vec<f64>> = rows
            .map(|(_, row)| {
                let cells = row.split(' ').filter_map(|cell| cell.split_once('/'));
                cells.map(|(_, hits)| hits.parse().expect("hits")).collect()
            })
            .collect();
        assert!(hits.iter().all(|row| row.len() == 13));
        for machines in 2..=5 {
            let share = |row: &Vec<f64>| {
                let own = [machines - 1, machines + 3, machines + 7].map(|at| row[at]);
                100.0 * own.into_iter().fold(f64::MAX, f64::min) / row[0]
            };
            let mean = hits.iter().map(share).sum::<f64>() / hits.len() as f64;
            let said = FIGURE_14[machines - 2];
            assert!((mean - said).abs() < 6.0, "{machines}: {mean:.1}, {said}");
        }
    }
}
