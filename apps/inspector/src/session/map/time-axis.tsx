import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { counted, durationOf, momentOf } from "../../format.ts";
import type { DigestJson } from "../../json.ts";
import { shown } from "../../ui/text.ts";
import type { ReadingPlace } from "../reading-place.ts";
import type { SessionOutline } from "../session-outline.ts";
import type { PageChapter } from "../use-chapters.ts";
import { type AxisLayout, layAxis } from "./axis-layout.ts";
import { Slider } from "./slider.tsx";
import { type Tones, useCanvas } from "./use-canvas.ts";

interface AxisProps {
  readonly axis: NonNullable<DigestJson["axis"]>;
  readonly chapters: readonly PageChapter[];
  /** Is the place of the chapter that is read; -1 before the first. */
  readonly current: number;
  readonly outline: SessionOutline;
  readonly windowTokens: number | null;
  readonly reading: ReadingPlace;
  readonly onJump: (seq: number) => void;
}

const axisHint =
  "Marks at the top: prompts. Bars: replies and calls, failed calls in red. Ground: how full the context was.";

/** Shows when what happened: prompts, work, errors, and how full the context was. Pauses are folded. */
export function TimeAxis(props: AxisProps): JSX.Element {
  const { axis, chapters, current, outline, windowTokens, reading, onJump } = props;
  const seqs = useMemo(() => chapters.map(({ seq }) => seq), [chapters]);
  const draw = (at: CanvasRenderingContext2D, tones: Tones, size: { width: number; height: number }): void =>
    drawAxis(at, tones, layAxis(axis.buckets, size.width), size.height, windowTokens);
  const canvas = useCanvas(draw, [axis, windowTokens]);
  const layout = useMemo(() => layAxis(axis.buckets, canvas.width), [axis, canvas.width]);
  const chapter = chapters[current];
  const text =
    chapter === undefined
      ? "Before the first prompt"
      : `Prompt ${chapter.number} of ${chapters.length}, ${momentOf(outline.tsMsAt(outline.indexOf(chapter.seq)))}: ${shown(chapter.title)}`;
  const pauses = layout.idles.length === 0 ? "" : `, ${counted(layout.idles.length, "pause")} folded`;
  return (
    <Slider
      name={`Time axis, ${durationOf(axis.toMs - axis.fromMs)}${pauses}`}
      className="axis"
      isVertical={false}
      at={current}
      seqs={seqs}
      text={text}
      hint={axisHint}
      onJump={onJump}
      onPoint={(x) => onJump(seqAtTime(outline, layout.msOf(x)))}
    >
      <canvas ref={canvas.ref} aria-hidden="true" />
      {layout.idles.map(({ x, width, fromMs, toMs }) => (
        <span key={fromMs} class="idle" style={{ left: `${x}px`, width: `${width}px` }} aria-hidden="true">
          {idleText(toMs - fromMs, width)}
        </span>
      ))}
      <Here layout={layout} outline={outline} reading={reading} />
    </Slider>
  );
}

type HereProps = Pick<AxisProps, "outline" | "reading"> & { readonly layout: AxisLayout };

/** Marks the time of the record at the top of the screen. */
function Here({ layout, outline, reading }: HereProps): JSX.Element | null {
  const [seq, setSeq] = useState(reading.seq);
  useEffect(() => reading.listen(setSeq), [reading]);
  const tsMs = outline.tsMsAt(outline.indexOf(seq));
  if (tsMs === null) return null;
  return <span class="axis-here" style={{ left: `${layout.xOf(tsMs)}px` }} aria-hidden="true" />;
}

/** Names a pause as far as its width allows. */
function idleText(ms: number, width: number): string {
  if (width < 52) return "";
  return width < 76 ? durationOf(ms) : `idle ${durationOf(ms)}`;
}

/** Returns the first record that is not before a time. Times of imports may step back, so all are looked at. */
function seqAtTime(outline: SessionOutline, tsMs: number): number {
  for (let index = 0; index < outline.count; index++) {
    const time = outline.tsMsAt(index);
    if (time !== null && time >= tsMs) return outline.seqAt(index);
  }
  return outline.lastLoaded;
}

function drawAxis(
  at: CanvasRenderingContext2D,
  tones: Tones,
  { buckets }: AxisLayout,
  height: number,
  windowTokens: number | null,
): void {
  const most = Math.max(1, ...buckets.map(({ bucket: { replies, tools } }) => replies + tools));
  const mostFill = Math.max(1, windowTokens ?? 0, ...buckets.map(({ bucket }) => bucket.fillTokens ?? 0));
  const ground = height - 1;
  at.fillStyle = tones("fill");
  for (const { x, width, bucket } of buckets) {
    const high = ((bucket.fillTokens ?? 0) / mostFill) * (ground - 8);
    at.fillRect(x, ground - high, Math.max(1, width), high);
  }
  // A moment is wide enough to be seen, unless moments stand side by side.
  const least = buckets.length * 4 < at.canvas.width / devicePixelRatio ? 3 : 1;
  const [work, error, prompt] = [tones("edge"), tones("error"), tones("accent")];
  for (const { x, width, bucket } of buckets) {
    const wide = Math.max(least, Math.min(8, width - (width > 3 ? 1 : 0)));
    // The root keeps one busy minute from hiding all others.
    const high = Math.sqrt((bucket.replies + bucket.tools) / most) * (ground - 12);
    at.fillStyle = work;
    at.fillRect(x, ground - high, wide, high);
    if (bucket.errors > 0) {
      at.fillStyle = error;
      const share = Math.max(8, high * Math.min(1, bucket.errors / Math.max(1, bucket.tools)));
      at.fillRect(x, ground - share, wide, share);
    }
    if (bucket.prompts > 0) {
      at.fillStyle = prompt;
      at.fillRect(x, 0, Math.max(2, wide), 6);
    }
  }
  at.fillStyle = tones("line");
  at.fillRect(0, ground, buckets.at(-1) === undefined ? 0 : at.canvas.width, 1);
}
