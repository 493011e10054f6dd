//! Whether differences are chance: analysis of variance, two ways, with replication and as many values in every cell; and
//! Student's t with Bonferroni's correction between its levels (PDT §6, Table 3).
//!
//! Source: Fisher, *Statistical Methods for Research Workers*, 1925, ch. VII and VIII; Dunn, *Multiple Comparisons Among Means*,
//! JASA 56, 1961. Sums of squares are those of the definition, distributions those of `statrs`.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

/// An effect: how much of the variance it explains.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// Degrees of freedom.
    pub freedom: f64,
    /// Sum of squares.
    pub squares: f64,
    /// F; none where nothing varies within cells.
    pub f: Option<f64>,
    /// The chance of an F so large if there were no effect; 1 where nothing varies at all, 0 where only the effect does.
    pub p: f64,
}

/// An analysis of two factors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Anova {
    /// The effect of the first factor.
    pub first: Effect,
    /// Of the second.
    pub second: Effect,
    /// Of both together, beyond what each does by itself.
    pub interaction: Effect,
    /// Mean of squares within cells.
    pub within: f64,
    /// Degrees of freedom within cells.
    pub freedom: f64,
}

impl Anova {
    /// Of the values of each cell, by the level of the first factor and that of the second. None where there are not two
    /// levels of each, and two values in every cell, the same number in all.
    #[must_use]
    pub fn of(cells: &[Vec<Vec<f64>>]) -> Option<Self> {
        let (rows, columns) = (cells.len(), cells.first()?.len());
        let count = cells.first()?.first()?.len();
        let even = |row: &Vec<Vec<f64>>| {
            row.len() == columns && row.iter().all(|cell| cell.len() == count)
        };
        if rows < 2 || columns < 2 || count < 2 || !cells.iter().all(even) {
            return None;
        }
        let mean =
            |values: &mut dyn Iterator<Item = f64>, of: usize| values.sum::<f64>() / of as f64;
        let all = rows * columns * count;
        let grand = mean(&mut cells.iter().flatten().flatten().copied(), all);
        let of_row = |row: usize| mean(&mut cells[row].iter().flatten().copied(), columns * count);
        let of_column = |column: usize| {
            let values = cells.iter().flat_map(|row| &row[column]);
            mean(&mut values.copied(), rows * count)
        };
        let square = |difference: f64| difference * difference;
        let first: f64 = (0..rows).map(|row| square(of_row(row) - grand)).sum();
        let second: f64 = (0..columns)
            .map(|column| square(of_column(column) - grand))
            .sum();
        let (mut both, mut within) = (0.0, 0.0);
        for (row, own) in cells.iter().enumerate() {
            for (column, values) in own.iter().enumerate() {
                let mean = mean(&mut values.iter().copied(), count);
                both += square(mean - of_row(row) - of_column(column) + grand);
                within += values.iter().map(|one| square(one - mean)).sum::<f64>();
            }
        }
        let freedom = (rows * columns * (count - 1)) as f64;
        let within = within / freedom;
        let effect = |squares: f64, levels: usize| effect(squares, levels as f64, within, freedom);
        Some(Self {
            first: effect(first * (columns * count) as f64, rows - 1),
            second: effect(second * (rows * count) as f64, columns - 1),
            interaction: effect(both * count as f64, (rows - 1) * (columns - 1)),
            within,
            freedom,
        })
    }

    /// The chance that two cells with means so far apart differ by chance, where so many pairs are compared: twice the tail
    /// of Student's t, times that number, 1 at most.
    #[must_use]
    pub fn bonferroni(&self, difference: f64, count: usize, pairs: usize) -> f64 {
        let error = (2.0 * self.within / count as f64).sqrt();
        let tail = match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) if error > 0.0 => student.sf(difference.abs() / error),
            _ => f64::from(u8::from(difference == 0.0)),
        };
        (2.0 * tail * pairs as f64).min(1.0)
    }
}

fn effect(squares: f64, freedom: f64, within: f64, within_freedom: f64) -> Effect {
    let f = squares / freedom / within;
    let p = match FisherSnedecor::new(freedom, within_freedom) {
        Ok(fisher) if f.is_finite() => fisher.sf(f),
        _ => f64::from(u8::from(squares == 0.0)),
    };
    Effect {
        freedom,
        squares,
        f: f.is_finite().then_some(f),
        p,
    }
}

#[cfg(test)]
mod tests {
    use super::Anova;

    /// The growth of guinea pigs' teeth (Crampton, J. Nutrition 33, 1947, as R ships it in `ToothGrowth`): two ways to
    /// give vitamin C, in three doses. What R's `aov(len ~ supp * factor(dose))` prints.
    #[test]
    fn growth_of_teeth() {
        let cells = [
            [
                vec![4.2, 11.5, 7.3, 5.8, 6.4, 10.0, 11.2, 11.2, 5.2, 7.0],
                vec![16.5, 16.5, 15.2, 17.3, 22.5, 17.3, 13.6, 14.5, 18.8, 15.5],
                vec![23.6, 18.5, 33.9, 25.5, 26.4, 32.5, 26.7, 21.5, 23.3, 29.5],
            ],
            [
                vec![15.2, 21.5, 17.6, 9.7, 14.5, 10.0, 8.2, 9.4, 16.5, 9.7],
                vec![19.7, 23.3, 23.6, 26.4, 20.0, 25.2, 25.8, 21.2, 14.5, 27.3],
                vec![25.5, 26.4, 22.4, 24.5, 24.8, 30.9, 26.4, 27.3, 29.4, 23.0],
            ],
        ];
        let anova = Anova::of(&cells.map(|row| row.to_vec())).expect("even cells");
        let close = |value: f64, expected: f64| {
            assert!(
                (value - expected).abs() < expected * 5e-4,
                "{value}, not {expected}"
            );
        };
        close(anova.first.squares, 205.4);
        close(anova.second.squares, 2426.4);
        close(anova.interaction.squares, 108.3);
        close(anova.within * anova.freedom, 712.1);
        close(anova.first.f.expect("F"), 15.572);
        close(anova.second.f.expect("F"), 92.0);
        close(anova.interaction.f.expect("F"), 4.107);
        close(anova.first.p, 0.000_231_18);
        close(anova.interaction.p, 0.021_860_3);
        assert!(anova.second.p < 2e-16);
        assert_eq!(
            (
                anova.first.freedom,
                anova.interaction.freedom,
                anova.freedom
            ),
            (1.0, 2.0, 54.0)
        );
    }

    /// With t at 2.00488 and 54 degrees of freedom the tails are 5 %, of which three comparisons make 15 %.
    #[test]
    fn comparisons_are_paid_for() {
        let anova = Anova {
            within: 5.0,
            freedom: 54.0,
            ..Anova::of(&[vec![vec![1.0, 2.0]; 2], vec![vec![1.0, 2.0]; 2]].map(|row| row))
                .expect("even")
        };
        let p = |difference: f64, pairs| anova.bonferroni(difference, 10, pairs);
        assert!((p(2.004_88, 1) - 0.05).abs() < 1e-5, "{}", p(2.004_88, 1));
        assert!((p(-2.004_88, 3) - 0.15).abs() < 3e-5);
        assert_eq!(p(0.0, 3), 1.0);
    }

    #[test]
    fn what_does_not_vary_within_cells_is_no_chance() {
        let cells =
            |first: f64, second: f64| vec![vec![vec![first; 3]; 2], vec![vec![second; 3]; 2]];
        let same = Anova::of(&cells(1.0, 1.0)).expect("even");
        assert_eq!(
            (same.first.p, same.second.p, same.bonferroni(0.0, 3, 1)),
            (1.0, 1.0, 1.0)
        );
        let other = Anova::of(&cells(1.0, 2.0)).expect("even");
        assert_eq!(
            (other.first.p, other.second.p, other.bonferroni(1.0, 3, 1)),
            (0.0, 1.0, 0.0)
        );
    }

    #[test]
    fn uneven_cells_are_refused() {
        let cell = vec![1.0, 2.0];
        for cells in [
            vec![],
            vec![vec![cell.clone(); 2]],
            vec![vec![cell.clone()], vec![cell.clone()]],
            vec![vec![cell.clone(); 2], vec![cell.clone(); 3]],
            vec![vec![vec![1.0]; 2]; 2],
            vec![
                vec![cell.clone(), vec![1.0, 2.0, 3.0]],
                vec![cell.clone(), cell],
            ],
        ] {
            assert_eq!(Anova::of(&cells), None, "{cells:?}");
        }
    }
}
