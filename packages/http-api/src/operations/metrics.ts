/** Limits the values of one label. Later values are counted as `other`, because each value adds a time series. */
const mostValues = 200;

type Labels = Readonly<Record<string, string>>;

interface Series {
  readonly labels: string;
  value: number;
  /**
   * The Prometheus format expects cumulative counts, so each bucket includes the smaller ones. Other types have null.
   */
  readonly buckets: number[] | null;
  sum: number;
}

interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly bounds: readonly number[];
  readonly series: Map<string, Series>;
  readonly seen: Map<string, Set<string>>;
  /** Reads the value when the metrics are written, so that a gauge needs no updates. */
  readonly read: (() => number | readonly Measured[]) | null;
}

interface Measured {
  readonly labels: Labels;
  readonly value: number;
}

export interface Metrics {
  counter(name: string, help: string): (labels?: Labels, by?: number) => void;
  /** `read` is called at each scrape. It returns one value, or one value per label set. */
  gauge(name: string, help: string, read: () => number | readonly Measured[]): void;
  histogram(name: string, help: string, bounds: readonly number[]): (labels: Labels, value: number) => void;
  text(): string;
}

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();
  const add = (name: string, family: Pick<Family, "type" | "help"> & Partial<Family>): Family => {
    const made = { bounds: [], read: null, ...family, series: new Map(), seen: new Map() };
    families.set(name, made);
    return made;
  };
  return {
    counter(name, help) {
      const family = add(name, { type: "counter", help });
      return (labels = {}, by = 1) => void (seriesOf(family, labels).value += by);
    },
    gauge(name, help, read) {
      add(name, { type: "gauge", help, read });
    },
    histogram(name, help, bounds) {
      const family = add(name, { type: "histogram", help, bounds });
      return (labels, value) => {
        const series = seriesOf(family, labels);
        series.value += 1;
        series.sum += value;
        for (const [index, bound] of bounds.entries())
          if (value <= bound && series.buckets !== null) series.buckets[index] = (series.buckets[index] ?? 0) + 1;
      };
    },
    text: () => Array.from(families, ([name, family]) => familyText(name, family)).join(""),
  };
}

function seriesOf(family: Family, labels: Labels): Series {
  const text = Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(bounded(family, name, value))}"`)
    .join(",");
  const known = family.series.get(text);
  if (known !== undefined) return known;
  const buckets = family.type === "histogram" ? family.bounds.map(() => 0) : null;
  const series = { labels: text, value: 0, buckets, sum: 0 };
  family.series.set(text, series);
  return series;
}

function bounded({ seen }: Family, name: string, value: string): string {
  const values = seen.get(name) ?? new Set<string>();
  seen.set(name, values);
  if (values.has(value)) return value;
  if (values.size >= mostValues) return "other";
  values.add(value);
  return value;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function familyText(name: string, { type, help, bounds, series, read }: Family): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  if (read !== null) lines.push(...readLines(name, read()));
  for (const { labels, value, buckets, sum } of series.values()) {
    const own = labels === "" ? "" : `{${labels}}`;
    if (buckets === null) {
      lines.push(`${name}${own} ${value}`);
      continue;
    }
    const more = labels === "" ? "" : `${labels},`;
    for (const [index, bound] of bounds.entries())
      lines.push(`${name}_bucket{${more}le="${bound}"} ${buckets[index] ?? 0}`);
    lines.push(`${name}_bucket{${more}le="+Inf"} ${value}`, `${name}_sum${own} ${sum}`, `${name}_count${own} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

function readLines(name: string, found: number | readonly Measured[]): readonly string[] {
  if (typeof found === "number") return [`${name} ${found}`];
  return found.map(({ labels, value }) => {
    const text = Object.entries(labels).map(([label, of]) => `${label}="${escapeLabel(of)}"`);
    return `${name}{${text.join(",")}} ${value}`;
  });
}
