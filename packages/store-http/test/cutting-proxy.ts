import { connect, createServer, type Server, type Socket } from "node:net";

/** A proxy on loopback in front of a server, which keeps its address while servers come and go behind it. */
export interface CuttingProxy {
  readonly url: string;
  /** Where connections go. */
  target: number;
  /** True: requests arrive, and every answer is cut. */
  cutsAnswers: boolean;
  /** Refuses connections, and ends those that there are. */
  refuse(): Promise<void>;
  /** Takes connections again. */
  accept(): Promise<void>;
  close(): Promise<void>;
}

export async function startCuttingProxy(target: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const state = { target, cutsAnswers: false };
  let port = 0;
  const open = (): Promise<Server> =>
    new Promise((resolve, reject) => {
      const server = createServer((client) => {
        const upstream = connect(state.target, "127.0.0.1");
        const end = (): void => {
          client.destroy();
          upstream.destroy();
        };
        for (const socket of [client, upstream]) {
          sockets.add(socket);
          socket.setNoDelay(true);
          socket.on("error", end);
          socket.on("close", () => {
            sockets.delete(socket);
            end();
          });
        }
        client.on("data", (chunk: Buffer) => upstream.write(chunk));
        upstream.on("data", (chunk: Buffer) => (state.cutsAnswers ? end() : client.write(chunk)));
      });
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        const address = server.address();
        port = typeof address === "object" && address !== null ? address.port : 0;
        resolve(server);
      });
    });
  let server: Server | null = await open();
  const refuse = async (): Promise<void> => {
    const closing = server;
    server = null;
    for (const socket of sockets) socket.destroy();
    if (closing !== null) await new Promise<void>((resolve) => closing.close(() => resolve()));
  };
  return {
    url: `http://127.0.0.1:${port}`,
    get target() {
      return state.target;
    },
    set target(to) {
      state.target = to;
    },
    get cutsAnswers() {
      return state.cutsAnswers;
    },
    set cutsAnswers(cuts) {
      state.cutsAnswers = cuts;
    },
    refuse,
    accept: async () => {
      server ??= await open();
    },
    close: refuse,
  };
}
