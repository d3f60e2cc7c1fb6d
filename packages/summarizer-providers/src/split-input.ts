import { headAndTail, writeTranscript, type Segment } from "./transcript.ts";

/**
 * The next part of a conversation that fits, and what is left of it. A single message that does not fit is cut: with
 * it the next part would never come.
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
