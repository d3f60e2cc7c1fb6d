import { headAndTail, isFailedResult, isResult, type Segment } from "./transcript.ts";

export interface ShapeOptions {
  /** Limits a message in characters. The middle of a longer message is cut out. */
  readonly messageChars: number;
  /** `marker` replaces successful tool results by their length. Failures keep their text in both modes. */
  readonly toolResults: "marker" | "keep";
}

/** Shortens tool results and long messages, because they cost most tokens and add least to a summary. */
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
