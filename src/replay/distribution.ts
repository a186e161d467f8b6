export interface Statistics {
  mean: number;
  min: number;
  max: number;
  median: number;
  p75: number;
  p90: number;
  p95: number;
  p99: number;
  std: number;
}

/**
 * Exact statistics of many values of which few are distinct: a count for each value. Replay's times are whole
 * microseconds and most passes of an engine last equally long, so millions of gaps between tokens fit.
 */
export class Distribution {
  private readonly counts = new Map<number, number>();

  add(value: number, times = 1): void {
    this.counts.set(value, (this.counts.get(value) ?? 0) + times);
  }

  /** The distribution of a function of the values. */
  map(change: (value: number) => number): Distribution {
    const mapped = new Distribution();
    for (const [value, times] of this.counts) mapped.add(change(value), times);
    return mapped;
  }

  /** Quantiles by nearest rank, ⌊(n − 1)·p + ½⌋; `std` of the population; undefined without values. */
  statistics(): Statistics | undefined {
    const sorted = [...this.counts].sort((a, b) => a[0] - b[0]);
    if (sorted.length === 0) return undefined;
    let n = 0;
    let sum = 0;
    for (const [value, times] of sorted) {
      n += times;
      sum += value * times;
    }
    const mean = sum / n;
    let squares = 0;
    for (const [value, times] of sorted) squares += (value - mean) ** 2 * times;

    const quantile = (p: number): number => {
      let left = Math.floor((n - 1) * p + 0.5);
      for (const [value, times] of sorted) {
        if (left < times) return value;
        left -= times;
      }
      return sorted[sorted.length - 1]![0];
    };
    return {
      mean,
      min: sorted[0]![0],
      max: sorted[sorted.length - 1]![0],
      median: quantile(0.5),
      p75: quantile(0.75),
      p90: quantile(0.9),
      p95: quantile(0.95),
      p99: quantile(0.99),
      std: Math.sqrt(squares / n),
    };
  }
}
