import { createWorkSlices } from "@throughline/core/internal";

export interface Segment {
  readonly speaker: string;
  readonly text: string;
}

/** Matches the start of a message, `[User]: …`. The other lines of a message are indented by two spaces. */
const labelPattern = /^\[([^\]\n]{1,200})\]: ?/;

/**
 * Parses a conversation in the format of history's `renderText`. Text before the first label becomes a segment without
 * a speaker. The work runs in slices.
 */
export async function readTranscript(text: string): Promise<readonly Segment[]> {
  const segments: { speaker: string; lines: string[] }[] = [];
  const slices = createWorkSlices();
  for (const line of text.split("\n")) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    const label = labelPattern.exec(line);
    const last = segments.at(-1);
    if (label !== null) segments.push({ speaker: label[1] ?? "", lines: [line.slice(label[0].length)] });
    else if (last !== undefined) last.lines.push(line.startsWith("  ") ? line.slice(2) : line);
    else if (line.trim() !== "") segments.push({ speaker: "", lines: [line] });
  }
  const read: Segment[] = [];
  for (const { speaker, lines: said } of segments) {
    const pause = slices.next();
    if (pause !== undefined) await pause;
    read.push({ speaker, text: said.join("\n").trimEnd() });
  }
  return read;
}

/**
 * Writes the segments as text. Continuation lines are indented, so that no line can look like the start of a message.
 */
export function writeTranscript(segments: readonly Segment[]): string {
  return segments
    .map(({ speaker, text }) => (speaker === "" ? text : `[${speaker}]: ${text.replaceAll("\n", "\n  ")}`))
    .join("\n\n");
}

export function isUser({ speaker }: Segment): boolean {
  return speaker === "User";
}

export function isAssistant({ speaker }: Segment): boolean {
  return speaker === "Assistant" || speaker.startsWith("Assistant, ");
}

export function isCall({ speaker }: Segment): boolean {
  return speaker === "Assistant calls";
}

export function isResult({ speaker }: Segment): boolean {
  return speaker.startsWith("Tool result");
}

export function isFailedResult(segment: Segment): boolean {
  return isResult(segment) && segment.speaker.endsWith(", failed");
}

/** Shortens a text by its middle, because its beginning and end usually matter most. */
export function headAndTail(text: string, mostChars: number): string {
  if (text.length <= mostChars) return text;
  const half = Math.floor(mostChars / 2);
  const left = text.length - 2 * half;
  return `${text.slice(0, half)}\n[… ${left} characters left out …]\n${text.slice(text.length - half)}`.toWellFormed();
}
