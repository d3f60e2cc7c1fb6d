import { headAndTail, writeTranscript, type Segment } from "./transcript.ts";

/**
 * Splits off the next part that fits. A single message above the limit is cut, because otherwise no part would ever
 * contain it.
 */
export function nextChunk(
  segments: readonly Segment[],
  mostTokens: number,
  countText: (text: string) => number,
): { readonly chunk: readonly Segment[]; readonly rest: readonly Segment[]; readonly tokens: number } {
  const chunk: Segment[] = [];
  let tokens = 0;
  for (const segment of segments) {
    const cost = countText(writeTranscript([segment]));
    if (tokens + cost > mostTokens && chunk.length > 0) break;
    const fitted = cost > mostTokens ? cut(segment, mostTokens, cost) : segment;
    chunk.push(fitted);
    tokens += fitted === segment ? cost : countText(writeTranscript([fitted]));
  }
  return { chunk, rest: segments.slice(chunk.length), tokens };
}

function cut({ speaker, text }: Segment, mostTokens: number, tokens: number): Segment {
  return { speaker, text: headAndTail(text, Math.max(200, Math.floor((text.length * mostTokens * 0.9) / tokens))) };
}
