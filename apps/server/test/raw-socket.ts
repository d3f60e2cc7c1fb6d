import { connect, type Socket } from "node:net";

/** What came back on a connection, and whether the server closed it. */
export interface RawAnswer {
  readonly text: string;
  readonly isClosed: boolean;
  readonly ms: number;
}

/** Sends bytes as they are, and waits until the server closes or falls silent. */
export async function sendRaw(url: string, bytes: string | Buffer, quietMs = 400): Promise<RawAnswer> {
  const beganMs = performance.now();
  const socket = connectTo(url);
  const chunks: Buffer[] = [];
  let isClosed = false;
  let lastMs = performance.now();
  socket.on("data", (chunk) => {
    chunks.push(chunk);
    lastMs = performance.now();
  });
  socket.on("close", () => (isClosed = true));
  socket.write(bytes);
  while (
    !isClosed &&
    (chunks.length === 0 ? performance.now() - beganMs < 10_000 : performance.now() - lastMs < quietMs)
  )
    await new Promise((resolve) => setTimeout(resolve, 10));
  const ms = lastMs - beganMs;
  socket.destroy();
  return { text: Buffer.concat(chunks).toString("latin1"), isClosed, ms };
}

export function connectTo(url: string): Socket {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  // The server may close while we write.
  socket.on("error", () => {});
  return socket;
}

/** The status and the code of the first answer. */
export function answerOf({ text }: Pick<RawAnswer, "text">): readonly [number, string | undefined] {
  return [Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), /"code":"([A-Z_]+)"/.exec(text)?.[1]];
}

/** The head of a request, ready for more lines. */
export function headOf(method: string, path: string, lines: readonly string[], host = "localhost"): string {
  return [`${method} ${path} HTTP/1.1`, `host: ${host}`, ...lines, "", ""].join("\r\n");
}
