import { abortedBefore } from "@throughline/core/internal";
import { createLineSplitter, type SplitLine } from "./line-splitter.ts";

/** Holds a line of a transcript, and its place as a transcript reader takes it. */
export interface NumberedLine {
  readonly bytes: Uint8Array;
  readonly place: Omit<SplitLine, "bytes"> & { readonly line: number };
}

/** Splits a transcript into its lines. The last one may have no line feed. @throws {ThroughlineError} ABORTED */
export async function* numberedLines(
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<NumberedLine, void, void> {
  const splitter = createLineSplitter();
  let line = 0;
  const numbered = ({ bytes, ...place }: SplitLine): NumberedLine => ({
    bytes,
    place: { ...place, line: (line += 1) },
  });
  for await (const chunk of chunks) {
    if (signal?.aborted) throw abortedBefore("the whole transcript was read", signal);
    yield* splitter.push(chunk).map(numbered);
  }
  const rest = splitter.end();
  if (rest !== null) yield numbered(rest);
}
