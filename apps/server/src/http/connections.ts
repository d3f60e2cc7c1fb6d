import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { monotonicMs } from "@throughline/core/internal";

const graceMs = 30_000;
/** Leaves unused connections open for a moment on close, because the client may already be sending a request. */
const firstRequestMs = 1000;
const checkEveryMs = 100;

export interface Connections {
  /** Returns the milliseconds since the last request ended; 0 while one is open. */
  idleMs(): number;
  end(): Promise<void>;
}

/**
 * Tracks connections that never sent a request. Node's `close` ends idle connections but waits for these, and `fetch`
 * leaves one behind for each aborted request.
 */
export function trackConnections(http: Server): Connections {
  const unused = new Set<Socket>();
  http.on("connection", (socket) => {
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  let open = 0;
  let endedAtMs = monotonicMs();
  for (const event of ["request", "checkContinue"] as const)
    http.on(event, ({ socket }: IncomingMessage, response: ServerResponse) => {
      unused.delete(socket);
      open += 1;
      response.once("close", () => {
        open -= 1;
        endedAtMs = monotonicMs();
      });
    });
  return {
    idleMs: () => (open > 0 ? 0 : monotonicMs() - endedAtMs),
    async end() {
      const closed = new Promise<void>((resolve) => http.close(() => resolve()));
      const endUnused = (): void => unused.forEach((socket) => void socket.destroy());
      const timers = [
        setInterval(() => http.closeIdleConnections(), checkEveryMs),
        setTimeout(endUnused, firstRequestMs),
        setTimeout(() => http.closeAllConnections(), graceMs),
      ];
      await closed;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
