import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { count } from "../../format.ts";
import type { DigestJson } from "../../json.ts";
import type { ReadingPlace } from "../reading-place.ts";
import type { SessionOutline } from "../session-outline.ts";
import { Slider } from "./slider.tsx";
import { type Tones, useCanvas } from "./use-canvas.ts";

interface StripProps {
  readonly outline: SessionOutline;
  readonly version: number;
  readonly digest: DigestJson | null;
  readonly reading: ReadingPlace;
  readonly onJump: (seq: number) => void;
}

const stops = 100;

/** Shows the whole session as a strip: the amount of text, with errors and compactions. */
export function Strip({ outline, version, digest, reading, onJump }: StripProps): JSX.Element {
  const [seq, setSeq] = useState(reading.seq);
  useEffect(() => reading.listen(setSeq), [reading]);
  const last = Math.max(1, outline.lastLoaded);
  const draw = (at: CanvasRenderingContext2D, tones: Tones, size: { width: number; height: number }): void =>
    drawStrip(at, tones, size, outline, digest);
  const canvas = useCanvas(draw, [version, digest]);
  const seqs = useMemo(() => {
    const number = Math.min(stops, last);
    return Array.from({ length: number }, (_, at) => 1 + Math.round((at * (last - 1)) / Math.max(1, number - 1)));
  }, [last]);
  return (
    <Slider
      name="Map of the session"
      className="strip"
      isVertical={true}
      at={seqs.findLastIndex((each) => each <= seq)}
      seqs={seqs}
      text={`Record ${count(seq)} of ${count(last)}`}
      hint="The whole session: the width shows the amount of text. Blue: prompts. Red: errors. Ocher: compactions."
      onJump={onJump}
      onPoint={(y) => onJump(Math.max(1, Math.round((y / Math.max(1, canvas.height)) * last)))}
    >
      <canvas ref={canvas.ref} aria-hidden="true" />
      <span class="strip-here" style={{ top: `${(100 * (seq - 1)) / last}%` }} aria-hidden="true" />
    </Slider>
  );
}

function drawStrip(
  at: CanvasRenderingContext2D,
  tones: Tones,
  { width, height }: { readonly width: number; readonly height: number },
  outline: SessionOutline,
  digest: DigestJson | null,
): void {
  const rowHeight = 3;
  const rows = Math.max(1, Math.min(outline.count, Math.floor(height / rowHeight)));
  const each = height / rows;
  const bytes = new Float64Array(rows);
  const isPrompt = new Uint8Array(rows);
  const rowOf = (index: number): number => Math.min(rows - 1, Math.floor((index / outline.count) * rows));
  for (let index = 0; index < outline.count; index++) {
    const row = rowOf(index);
    bytes[row] = (bytes[row] ?? 0) + outline.bytesAt(index);
    if (outline.roleAt(index) === "user") isPrompt[row] = 1;
  }
  const most = bytes.reduce((high, value) => Math.max(high, value), 1);
  const [work, prompt] = [tones("strip"), tones("accent")];
  for (let row = 0; row < rows; row++) {
    at.fillStyle = work;
    at.fillRect(0, row * each, Math.max(2, Math.sqrt((bytes[row] ?? 0) / most) * width), Math.max(1, each - 1));
    // In a long session every line of pixels has a prompt, and a mark of each would say nothing.
    if (isPrompt[row] !== 1 || outline.count > rows * 4) continue;
    at.fillStyle = prompt;
    at.fillRect(0, row * each, 2, Math.max(1, each - 1));
  }
  const mark = (seq: number, tone: string): void => {
    at.fillStyle = tone;
    at.fillRect(0, rowOf(Math.max(0, outline.indexOf(seq))) * each, width, 2);
  };
  const [error, compaction] = [tones("error"), tones("two")];
  for (const seq of digest?.errors ?? []) mark(seq, error);
  for (const { seq } of digest?.compactions ?? []) mark(seq, compaction);
}
