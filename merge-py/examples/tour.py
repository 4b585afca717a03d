# %% [markdown]
# # A tour of gmerge
# The cells of this file run one after another in Jupyter, VS Code or Spyder, or all at once: `python tour.py plot.svg`.

# %%
import sys
import time

import gmerge
import numpy as np

rng = np.random.default_rng(0)
prices = rng.lognormal(3, 1, 1_000_000).round(2)
shops = rng.integers(0, 1000, 1_000_000)

# %% [markdown]
# ## Orders
# An argsort is stable in both directions, and NaNs stay last.

# %%
prices[::1000] = np.nan
order = gmerge.argsort(prices, descending=True)
print("the three highest prices:", prices[order[:3]], "and the last:", prices[order[-1]])
assert np.array_equal(order[-1000:], np.flatnonzero(np.isnan(prices)))

# %% [markdown]
# ## The first elements
# They take one pass over the array, and no sort of all of it.

# %%
best = gmerge.argtopk(prices, 3)
assert np.array_equal(best, order[:3])

# %% [markdown]
# ## Groups
# The number of sales and their sum for each shop.

# %%
names, counts = gmerge.unique(shops, return_counts=True)
same_names, totals = gmerge.reduce_by_key(shops, np.nan_to_num(prices))
assert np.array_equal(names, same_names)
print(f"shop {names[0]}: {counts[0]} sales, {totals[0]:.2f} in all")

# %% [markdown]
# ## Rows of any length
# All rows are sorted at once.

# %%
offsets = np.concatenate([[0], np.cumsum(counts)])
by_shop = prices[gmerge.argsort(shops)]
sorted_by_shop = gmerge.segmented_sort(by_shop, offsets)
assert np.array_equal(sorted_by_shop[: counts[0]], np.sort(by_shop[: counts[0]]), equal_nan=True)

# %% [markdown]
# ## How long it takes


# %%
def nanoseconds(call, x):
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        call(x)
        times.append(time.perf_counter() - begin)
    return sorted(times)[3] / len(x) * 1e9


sizes = [1000, 10_000, 100_000, 1_000_000, 10_000_000]
rows = {"numpy.argsort(kind='stable')": [], "gmerge.argsort": []}
for size in sizes:
    x = rng.standard_normal(size)
    rows["numpy.argsort(kind='stable')"].append(nanoseconds(lambda x: np.argsort(x, kind="stable"), x))
    rows["gmerge.argsort"].append(nanoseconds(lambda x: gmerge.argsort(x, engine="cpu"), x))
for name, times in rows.items():
    print(f"{name:30}", "".join(f"{time:9.1f}" for time in times), "ns an element")

# %%
if len(sys.argv) > 1:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name, times in rows.items():
        axes.plot(sizes, times, "o-", label=name)
    axes.set(xscale="log", xlabel="elements of float64", ylabel="ns an element", ylim=(0, None))
    axes.legend()
    figure.savefig(sys.argv[1])
