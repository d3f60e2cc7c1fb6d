import { connect, createServer, type Socket } from "node:net";

/** Which appends lose their connection, by their numbers from 1, and when. */
export interface Cut {
  readonly from: number;
  /** @default all that follow */
  readonly until?: number;
  /** Before the statement reaches the server, or after its commit, before the answer. */
  readonly when: "before-commit" | "after-commit";
}

/** A proxy on loopback in front of a PostgreSQL that cuts the connections of appends. */
export interface CuttingProxy extends AsyncDisposable {
  readonly port: number;
  cut: Cut | null;
  /** Appends of messages so far. */
  readonly appends: () => number;
}

export async function startCuttingProxy(targetPort: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const state = { cut: null as Cut | null };
  let appends = 0;
  const server = createServer((client) => {
    const upstream = connect(targetPort, "127.0.0.1");
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    let isDeaf = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (chunk: Buffer) => {
      const isAppend = chunk.includes('"message":{"role"');
      if (isAppend) appends += 1;
      const { cut } = state;
      const isCut = isAppend && cut !== null && appends >= cut.from && appends <= (cut.until ?? appends);
      if (isCut && cut.when === "before-commit") return end();
      isDeaf ||= isCut;
      upstream.write(chunk);
    });
    upstream.on("data", (chunk: Buffer) => (isDeaf ? end() : client.write(chunk)));
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  return {
    port,
    get cut() {
      return state.cut;
    },
    set cut(cut) {
      state.cut = cut;
      appends = 0;
    },
    appends: () => appends,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
