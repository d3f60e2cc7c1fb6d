// The pictures of docs/benchmarks.md as SVG: curves and bars, both on logarithmic scales, for light and dark pages.

/** A line through values at the sizes of a chart. */
export interface Curve {
  readonly title: string;
  readonly kind: "sqlite" | "jsonl" | "control";
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** One bar, whose label may be long. */
export interface Bar {
  readonly title: string;
  readonly kind: "ours" | "peer" | "control";
  readonly value: number;
  readonly label: string;
}

const style = `<style>
  svg { --ground: #ffffff; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4; --one: #0969da; --two: #bc4c00; --rest: #8c959f; }
  @media (prefers-color-scheme: dark) {
    svg { --ground: #0d1117; --ink: #e6edf3; --soft: #9198a1; --grid: #30363d; --one: #4493f8; --two: #f0883e; --rest: #6e7681; }
  }
  text { fill: var(--ink); font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; }
  .soft { fill: var(--soft); font-size: 12px; } .title { font-weight: 600; font-size: 15px; }
  .grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2.5; }
  .sqlite, .ours { --mark: var(--one); } .jsonl { --mark: var(--two); } .control, .peer { --mark: var(--rest); }
  .control .line { stroke-dasharray: 5 4; } .line { stroke: var(--mark); } .fill { fill: var(--mark); }
  .bar.control { opacity: 0.55; }
</style>`;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function picture(width: number, height: number, title: string, content: readonly string[]): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">`;
  return [
    head,
    `<title id="title">${escaped(title)}</title>`,
    style,
    `<rect width="${width}" height="${height}" rx="6" fill="var(--ground)"/>`,
    `<text class="title" x="16" y="26">${escaped(title)}</text>`,
    ...content,
    "</svg>",
    "",
  ].join("\n");
}

/** A figure with two digits that count: 0.42, 4.2, 42, 420, 4,200. */
export function short(value: number): string {
  if (value >= 100) return Number(value.toPrecision(3)).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2);
}

interface Scale {
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

function logScale(low: number, high: number, from: number, to: number): Scale {
  const [first, last] = [
    Math.floor(Math.log10(low)),
    Math.max(Math.ceil(Math.log10(high)), Math.floor(Math.log10(low)) + 1),
  ];
  const ticks = Array.from({ length: last - first + 1 }, (_, place) => 10 ** (first + place));
  return { at: (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from), ticks };
}

const [left, right, top, bottom] = [64, 500, 48, 264];

function curveOf({ title, kind, points }: Curve, x: Scale, y: Scale, labelY: number): string {
  const places = points.map(([at, value]) => [x.at(at).toFixed(1), y.at(value).toFixed(1)] as const);
  const dots = places.map(([cx, cy]) => `<circle class="fill" cx="${cx}" cy="${cy}" r="3.5"/>`).join("");
  const line = `<polyline class="line" points="${places.map((place) => place.join(",")).join(" ")}"/>`;
  const label = `<text x="${right + 18}" y="${labelY + 4}">${escaped(title)}</text>`;
  return `<g class="${kind}">${line}${dots}<rect class="fill" x="${right + 4}" y="${labelY - 4}" width="9" height="9" rx="2"/>${label}</g>`;
}

/** Values over sizes, with the unit on the left and a name at the end of each line. */
export function curveChart(title: string, unit: string, curves: readonly Curve[]): string {
  const points = curves.flatMap((curve) => curve.points);
  const values = points.map(([, value]) => value);
  const sizes = points.map(([size]) => size);
  const x = logScale(Math.min(...sizes), Math.max(...sizes), left + 12, right - 12);
  const y = logScale(Math.min(...values), Math.max(...values), bottom, top);
  const rows = y.ticks.map(
    (tick) =>
      `<path class="grid" d="M${left} ${y.at(tick).toFixed(1)}H${right}"/>` +
      `<text class="soft" text-anchor="end" x="${left - 8}" y="${(y.at(tick) + 4).toFixed(1)}">${tick.toLocaleString("en-US")}</text>`,
  );
  const columns = x.ticks.map(
    (tick) =>
      `<text class="soft" text-anchor="middle" x="${x.at(tick).toFixed(1)}" y="${bottom + 20}">${tick.toLocaleString("en-US")}</text>`,
  );
  const ends = curves.map(({ points: each }) => y.at(each.at(-1)?.[1] ?? 1));
  const order = ends.map((_, place) => place).toSorted((one, other) => (ends[one] ?? 0) - (ends[other] ?? 0));
  const labels = [...ends];
  for (const [rank, place] of order.entries()) {
    const above = order[rank - 1];
    if (above !== undefined) labels[place] = Math.max(labels[place] ?? 0, (labels[above] ?? 0) + 18);
  }
  return picture(680, 312, title, [
    ...rows,
    ...columns,
    `<text class="soft" x="${left}" y="${bottom + 40}">${escaped(`${unit}, by records in the store`)}</text>`,
    ...curves.map((curve, place) => curveOf(curve, x, y, labels[place] ?? 0)),
  ]);
}

/** Values beside each other; a bar ten times as long is not ten times the value, which its label shows. */
export function barChart(title: string, note: string, bars: readonly Bar[]): string {
  const [from, to, rowHeight, first] = [300, 600, 30, 44];
  const values = bars.map(({ value }) => value);
  const scale = logScale(Math.min(...values) / 1.5, Math.max(...values), from, to);
  const rows = bars.map(({ title: name, kind, value, label }, place) => {
    const y = first + place * rowHeight;
    const width = Math.max(2, scale.at(value) - from).toFixed(1);
    return (
      `<g class="bar ${kind}"><text text-anchor="end" x="${from - 10}" y="${y + 16}"${kind === "ours" ? ' font-weight="600"' : ""}>${escaped(name)}</text>` +
      `<rect class="fill" x="${from}" y="${y + 2}" width="${width}" height="20" rx="3"/></g>` +
      `<text class="soft" x="${(from + Number(width) + 8).toFixed(1)}" y="${y + 16}">${escaped(label)}</text>`
    );
  });
  const height = first + bars.length * rowHeight + 34;
  return picture(680, height, title, [...rows, `<text class="soft" x="16" y="${height - 14}">${escaped(note)}</text>`]);
}
