//! Sorts that keep the first of equal keys.

use super::{Engine, On, Work};
use crate::cpu::{RunMut, sort};
use crate::unique::unique_on;
use crate::{ElementsMut, Error, Key, SortOptions, Timing};

impl Engine {
    /// Sorts `elements`, keys alone or with values, as `options` say, and moves the first of equal keys to the front,
    /// with their values. Returns how many elements are kept. Those behind them are unspecified.
    ///
    /// Two keys are equal if their bits are: −0.0 differs from 0.0. The first of equal keys is the one with the least
    /// index before the sort.
    ///
    /// A GPU downloads the elements that are kept, and no others. Several GPUs sort, and the CPU leaves the equal keys
    /// out.
    ///
    /// # Complexity
    /// That of [`sort_with`](Self::sort_with).
    ///
    /// # Errors
    /// The errors of [`sort_with`](Self::sort_with).
    ///
    /// ```
    /// use merge_host::{Engine, SortOrder};
    ///
    /// let mut keys = [4, 1, 6, 1, 6, 6];
    /// let (count, _) = Engine::auto().sort_unique(SortOrder::Descending, &mut keys)?;
    /// assert_eq!(keys[..count], [6, 4, 1]);
    ///
    /// let (mut keys, mut values) = ([4, 1, 6, 1], ["4", "first 1", "6", "second 1"]);
    /// let (count, _) = Engine::auto().sort_unique(SortOrder::Ascending, (&mut keys, &mut values))?;
    /// assert_eq!((&keys[..count], &values[..count]), (&[1, 4, 6][..], &["first 1", "4", "6"][..]));
    /// # Ok::<(), merge_host::Error>(())
    /// ```
    pub fn sort_unique<K: Key, V: Copy + Send + Sync>(
        &self,
        options: impl Into<SortOptions>,
        mut elements: impl ElementsMut<K, V>,
    ) -> Result<(usize, Timing), Error> {
        self.sort_unique_run(options.into(), elements.run_mut("the input")?)
    }

    /// [`sort_unique`](Self::sort_unique), compiled once for all forms of its arguments.
    fn sort_unique_run<K: Key, V: Copy + Send + Sync>(
        &self,
        options: SortOptions,
        RunMut { keys, values }: RunMut<K, V>,
    ) -> Result<(usize, Timing), Error> {
        let place = self.place_to_sort::<K>(&Work::sort::<K>(keys.len()).with_values(size_of::<V>()))?;
        let mut count = 0;
        let steps = match place.on {
            #[cfg(feature = "gpu")]
            On::Gpus(gpus) => {
                let mut run = RunMut { keys, values };
                // Keys of 16 bytes are only sorted on a GPU.
                match gpus.only::<K::OnGpu>().filter(|_| K::ON_GPU) {
                    Some(gpu) => {
                        let steps;
                        (count, steps) = gpu.sort_unique_host(options.on_gpu::<K>(), run.on_gpu())?;
                        steps
                    }
                    None => {
                        let mut steps = gpus.sort_host(options.on_gpu::<K>(), run.part(0..run.keys.len()).on_gpu())?;
                        let left = self.workers.merge(run.keys.len(), |threads| {
                            count = unique_on(threads, run.keys, run.values, 1, None);
                        })?;
                        steps.compute += left.compute;
                        steps
                    }
                }
            }
            On::Cpu(workers) => workers.sort(keys.len(), |threads| {
                sort::sort(options.order, RunMut { keys: &mut *keys, values: &mut *values }, threads)?;
                count = unique_on(threads, keys, values, 1, None);
                Ok(())
            })?,
        };
        Ok((count, place.timing(steps)))
    }
}
