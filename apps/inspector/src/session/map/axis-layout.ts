import type { AxisBucket } from "../../json.ts";

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  readonly x: number;
  readonly width: number;
}

export interface AxisLayout {
  readonly buckets: readonly (Span & { readonly bucket: AxisBucket })[];
  /** Are the pauses that are folded to a fixed width. */
  readonly idles: readonly Span[];
  xOf(tsMs: number): number;
  msOf(x: number): number;
}

const idleMs = 5 * 60_000;
const idleWidth = 80;
/** Is the part of the width that all folded pauses take at most. */
const idleShare = 0.4;

/** Places buckets along a line. Time is to scale but for pauses over 5 minutes, which would stretch the line. */
export function layAxis(buckets: readonly AxisBucket[], width: number): AxisLayout {
  const gaps = buckets.map(({ toMs }, at) => Math.max(0, (buckets[at + 1]?.fromMs ?? toMs) - toMs));
  const isIdle = gaps.map((ms) => ms > idleMs);
  const idleCount = isIdle.filter(Boolean).length;
  const idleX = Math.min(idleWidth, (width * idleShare) / Math.max(1, idleCount));
  const active = buckets.reduce(
    (sum, bucket, at) => sum + lengthOf(bucket) + (isIdle[at] === true ? 0 : (gaps[at] ?? 0)),
    0,
  );
  const scale = (width - idleX * idleCount) / Math.max(1, active);
  const placed: (Span & { readonly bucket: AxisBucket })[] = [];
  const idles: Span[] = [];
  let x = 0;
  for (const [at, bucket] of buckets.entries()) {
    const wide = lengthOf(bucket) * scale;
    placed.push({ fromMs: bucket.fromMs, toMs: bucket.toMs, x, width: wide, bucket });
    x += wide;
    const gap = gaps[at] ?? 0;
    if (isIdle[at] === true) idles.push({ fromMs: bucket.toMs, toMs: bucket.toMs + gap, x, width: idleX });
    x += isIdle[at] === true ? idleX : gap * scale;
  }
  const spans = [...placed, ...idles].toSorted((a, b) => a.x - b.x);
  return { buckets: placed, idles, xOf: (tsMs) => xOf(spans, tsMs, width), msOf: (at) => msOf(spans, at) };
}

/** A bucket of one moment has a width too. */
function lengthOf({ fromMs, toMs }: AxisBucket): number {
  return Math.max(1, toMs - fromMs);
}

function xOf(spans: readonly Span[], tsMs: number, width: number): number {
  const span = spans.findLast(({ fromMs }) => fromMs <= tsMs);
  if (span === undefined) return 0;
  const part = Math.min(1, (tsMs - span.fromMs) / Math.max(1, span.toMs - span.fromMs));
  return Math.min(width, span.x + part * span.width);
}

function msOf(spans: readonly Span[], x: number): number {
  const span = spans.findLast((each) => each.x <= x) ?? spans[0];
  if (span === undefined) return 0;
  const part = Math.max(0, Math.min(1, (x - span.x) / Math.max(1, span.width)));
  return span.fromMs + part * (span.toMs - span.fromMs);
}
