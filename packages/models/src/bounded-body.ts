import { ThroughlineError } from "@throughline/core";

/** No event of a stream, and no line of one, is as long as this. */
const maxLineBytes: number = 16 * 1024 * 1024;
/** Nor is an answer that comes whole. */
const maxBodyBytes: number = 64 * 1024 * 1024;
const lineFeed = 0x0a;

/**
 * The response with a body that fails if it is longer than any answer: one line of a stream, or the whole of any other
 * body. SDKs keep all of it in memory until it ends.
 */
export function withBoundedBody(response: Response): Response {
  if (response.body === null) return response;
  const isStream = /event-stream|ndjson/i.test(response.headers.get("content-type") ?? "");
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(boundedBytes(isStream)), { status, statusText, headers });
}

function boundedBytes(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  const most = isStream ? maxLineBytes : maxBodyBytes;
  let bytes = 0;
  return new TransformStream({
    transform(chunk, controller): void {
      const lastLine = isStream ? chunk.lastIndexOf(lineFeed) : -1;
      bytes = lastLine < 0 ? bytes + chunk.length : chunk.length - lastLine - 1;
      if (bytes <= most) return controller.enqueue(chunk);
      const what = isStream ? "A line of the provider's answer" : "The provider's answer";
      const message = `${what} is longer than ${most} bytes, so it was not read any further.`;
      controller.error(new ThroughlineError("MODEL_FAILED", message, { details: { bytes: most } }));
    },
  });
}
