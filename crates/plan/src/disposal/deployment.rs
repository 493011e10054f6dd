//! When instances start.
//!
//! Source: DIS §4.2: all at once; one after the other; or along a diffusion curve (Rogers, *Diffusion of
//! Innovations*), there "a normal curve …, with a peak of 15 concurrent deployments" of 37. The paper
//! does not say how; here starts are the quantiles of a normal distribution whose deviation σ is such
//! that, of n instances that run for D, so many run at once at the peak: those that started within D,
//! n · (2Φ(D / 2σ) − 1).

use statrs::distribution::{ContinuousCDF, Normal};

/// How instances follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// All start at once: nobody can learn from earlier ones.
    Concurrent,
    /// Each starts when the one before has ended: the best that can be.
    Sequential,
    /// Few, many, few.
    Diffusion {
        /// How many run at once at the peak.
        peak: u32,
        /// How long one runs.
        duration: u64,
    },
}

/// Why there is no such deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeploymentError {
    /// A peak of nobody, or of everybody and more.
    #[error("{peak} of {instances} instances cannot be the peak of a curve")]
    Peak {
        /// The peak.
        peak: u32,
        /// All instances.
        instances: usize,
    },
}

impl Scenario {
    /// The diffusion of the study, for instances that run for `duration`: a peak of 15.
    #[must_use]
    pub fn study(duration: u64) -> Self {
        Self::Diffusion { peak: 15, duration }
    }

    /// When each of so many instances starts, ascending from 0; nothing if that depends on how long
    /// they take.
    pub fn starts(&self, instances: usize) -> Result<Option<Vec<u64>>, DeploymentError> {
        match *self {
            Self::Concurrent => Ok(Some(vec![0; instances])),
            Self::Sequential => Ok(None),
            Self::Diffusion { peak, duration } => {
                if peak == 0 || peak as usize >= instances {
                    return Err(DeploymentError::Peak { peak, instances });
                }
                Ok(Some(diffusion(instances, peak, duration)))
            }
        }
    }
}

fn diffusion(instances: usize, peak: u32, duration: u64) -> Vec<u64> {
    let normal = Normal::standard();
    let all = instances as f64;
    let deviation = duration as f64 / 2.0 / normal.inverse_cdf((1.0 + f64::from(peak) / all) / 2.0);
    let quantile = |k: usize| normal.inverse_cdf((k as f64 + 0.5) / all);
    let first = quantile(0);
    (0..instances)
        .map(|k| ((quantile(k) - first) * deviation).round() as u64)
        .collect()
}
