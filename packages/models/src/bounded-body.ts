import { ThroughlineError } from "@throughline/core";

/** No event or line of a genuine stream reaches this length. */
const maxLineBytes: number = 16 * 1024 * 1024;
/** No genuine whole answer reaches this length. */
const maxBodyBytes: number = 64 * 1024 * 1024;
const lineFeed = 0x0a;

/**
 * Returns the response with a body that fails beyond the limit. The limit applies to each line of a stream, and to any
 * other body as a whole. It protects memory, because SDKs buffer the data until it ends.
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
