import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** How long requests that run may take once the server is closing. */
const graceMs = 30_000;
/** How long a connection without a request may still send one: its client may have begun to write. */
const firstRequestMs = 1000;
const checkEveryMs = 100;

/** The connections of a server that is to be stopped. */
export interface Connections {
  /** Takes no new connections, and ends those there are when their requests are answered. */
  end(): Promise<void>;
}

/**
 * Node ends connections that wait for their next request, and waits for those that never sent one: fetch opens such a
 * connection for each request that it gave up.
 */
export function trackConnections(http: Server): Connections {
  const unused = new Set<Socket>();
  http.on("connection", (socket) => {
    unused.add(socket);
    socket.once("close", () => unused.delete(socket));
  });
  for (const event of ["request", "checkContinue"] as const)
    http.on(event, ({ socket }: IncomingMessage) => void unused.delete(socket));
  return {
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
