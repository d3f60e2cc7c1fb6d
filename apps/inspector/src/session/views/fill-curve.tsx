import type { JSX } from "preact";
import { count } from "../../format.ts";
import { type Tones, useCanvas } from "../map/use-canvas.ts";

interface FillProps {
  /** Holds the tokens of the context after each prompt. A prompt without a known number is left out. */
  readonly fills: readonly number[];
  readonly windowTokens: number | null;
}

/** Shows how full the context was after each prompt. A compaction is a fall. */
export function FillCurve({ fills, windowTokens }: FillProps): JSX.Element | null {
  const largest = fills.reduce((high, tokens) => Math.max(high, tokens), 0);
  // A window that the session states may be that of another model than the one that was called.
  const top = Math.max(windowTokens ?? 0, largest);
  const canvas = useCanvas((at, tones, size) => drawFill(at, tones, size, { fills, top, windowTokens }), [fills, top]);
  if (fills.length < 2 || top === 0) return null;
  const last = fills.at(-1) ?? 0;
  const of = windowTokens === null ? "" : ` of ${count(windowTokens)}`;
  return (
    <figure class="fill">
      <canvas
        ref={canvas.ref}
        role="img"
        aria-label={`Context after each prompt: at most ${count(largest)}, at last ${count(last)}${of} tokens`}
      />
      <figcaption class="soft">
        Context after each prompt, in tokens: at most {count(largest)}, at last {count(last)}
        {of}
      </figcaption>
    </figure>
  );
}

interface Drawn extends FillProps {
  readonly top: number;
}

function drawFill(
  at: CanvasRenderingContext2D,
  tones: Tones,
  { width, height }: { readonly width: number; readonly height: number },
  { fills, top, windowTokens }: Drawn,
): void {
  const step = width / fills.length;
  const yOf = (tokens: number): number => height - (tokens / top) * (height - 2);
  const trace = (): void => {
    for (const [index, tokens] of fills.entries()) {
      at.lineTo(index * step, yOf(tokens));
      at.lineTo((index + 1) * step, yOf(tokens));
    }
  };
  at.fillStyle = tones("strip");
  at.beginPath();
  at.moveTo(0, height);
  trace();
  at.lineTo(width, height);
  at.fill();
  at.strokeStyle = tones("accent");
  at.lineWidth = 2;
  at.beginPath();
  trace();
  at.stroke();
  if (windowTokens === null) return;
  at.fillStyle = tones("two");
  at.fillRect(0, yOf(windowTokens) - 1, width, 1);
}
