import type { TextCutter } from "../text-units.ts";

/** The beginning of a line states its author. The file does not distinguish a model's line with the same beginning. */
export type AiderLine = "start" | "heading" | "tool" | "user" | "assistant";

/** A chat begins with this mark, and its start time follows. */
export const startMark = "# aider chat started at ";

export function lineKind(line: string): AiderLine {
  if (line.startsWith(startMark)) return "start";
  if (line.startsWith("# ")) return "heading";
  if (line.startsWith("> ")) return "tool";
  return line.startsWith("#### ") ? "user" : "assistant";
}

/** A last line without its end may still become one of these marks. */
const marks: readonly string[] = [startMark, "> ", "#### "];

/**
 * Consecutive lines of one kind form an item. A heading that begins no chat joins the item before it, because no reader
 * uses it.
 */
export function turnCutter(): TextCutter {
  let current: AiderLine | null = null;
  const decoder = new TextDecoder("latin1");
  return (chunk) => {
    const cuts: number[] = [];
    for (let at = 0; at < chunk.length;) {
      const end = chunk.indexOf(0x0a, at);
      const beginning = decoder.decode(chunk.subarray(at, end < 0 ? undefined : end).subarray(0, startMark.length));
      const kind = lineKind(beginning);
      const isOpen = end < 0 && marks.some((mark) => mark.length > beginning.length && mark.startsWith(beginning));
      if (current === null || (kind !== "heading" && !isOpen)) {
        if (current !== null && (kind !== current || kind === "start")) cuts.push(at);
        current = kind;
      }
      at = end < 0 ? chunk.length : end + 1;
    }
    return cuts;
  };
}
