import { headAndTail, isFailedResult, isResult, type Segment } from "./transcript.ts";

export interface ShapeOptions {
  /** Longer messages are cut to their beginning and end. */
  readonly messageChars: number;
  /** `marker`: what tools gave is named and left out, except failures. */
  readonly toolResults: "marker" | "keep";
}

/** A conversation with what a summarizer can do without taken out: it costs the most and says the least. */
export function shapeInput(
  segments: readonly Segment[],
  { messageChars, toolResults }: ShapeOptions,
): readonly Segment[] {
  return segments.map((segment) => {
    const { speaker, text } = segment;
    if (toolResults === "marker" && isResult(segment) && !isFailedResult(segment)) {
      return { speaker, text: `(${text.length} characters)` };
    }
    return { speaker, text: headAndTail(text, messageChars) };
  });
}
