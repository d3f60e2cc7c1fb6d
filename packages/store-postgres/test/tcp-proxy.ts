import { connect, createServer, type Server, type Socket } from "node:net";
import { WireTraffic } from "./wire-traffic.ts";

/** What happens to the next connection that carries a message to be appended, or to all traffic. */
export type Fault =
  /** Cut before the statement reaches the server. */
  | "cut-before"
  /** Cut after so many bytes of the statement. */
  | { readonly cutAfterBytes: number }
  /** The statement arrives; the answer does not. */
  | "cut-answer"
  /** The client's side is ended as if by the server, which goes on. */
  | "half-close"
  /** Nothing of the answer comes, and nobody closes. */
  | "silence"
  | null;

export interface TcpProxy {
  readonly port: number;
  /** For the next append only. */
  fault: Fault;
  delayMs: number;
  /** How often a fault struck. */
  readonly struck: () => number;
  /** What went through so far. */
  readonly traffic: WireTraffic;
  /** Changes what the server says before the client has it. */
  rewrite: ((chunk: Buffer) => Buffer) | null;
  cutAll(): void;
  close(): Promise<void>;
}

/** A proxy on loopback that does to PostgreSQL's traffic what networks do. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let struck = 0;
  const state = { fault: null as Fault, delayMs: 0, rewrite: null as TcpProxy["rewrite"] };
  const traffic = new WireTraffic();
  const server: Server = createServer((client) => {
    const upstream = connect(targetPort, "127.0.0.1");
    let isDeaf = false;
    const heard = traffic.connection();
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
    const cut = (): void => {
      client.destroy();
      upstream.destroy();
    };
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => {
      if (!isDeaf) client.destroy();
    });
    client.on("data", (chunk: Buffer) => {
      heard.client(chunk);
      const { fault } = state;
      if (fault !== null && chunk.includes('"message":{"role"')) {
        state.fault = null;
        struck += 1;
        if (fault === "cut-before") return cut();
        if (typeof fault === "object") {
          upstream.write(chunk.subarray(0, fault.cutAfterBytes), cut);
          return;
        }
        if (fault === "silence") isDeaf = true;
        if (fault === "half-close") {
          isDeaf = true;
          client.end();
        }
        if (fault === "cut-answer") {
          upstream.removeAllListeners("data");
          upstream.once("data", cut);
        }
        upstream.write(chunk);
        return;
      }
      later(() => upstream.write(chunk));
    });
    upstream.on("data", (chunk: Buffer) => {
      heard.server(chunk);
      const told = state.rewrite === null ? chunk : state.rewrite(chunk);
      if (!isDeaf) later(() => client.write(told));
    });
  });
  const later = (run: () => void): void => {
    if (state.delayMs === 0) run();
    else setTimeout(run, state.delayMs);
  };
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
  return {
    port,
    get fault() {
      return state.fault;
    },
    set fault(fault) {
      state.fault = fault;
    },
    get delayMs() {
      return state.delayMs;
    },
    set delayMs(delayMs) {
      state.delayMs = delayMs;
    },
    struck: () => struck,
    traffic,
    get rewrite() {
      return state.rewrite;
    },
    set rewrite(rewrite) {
      state.rewrite = rewrite;
    },
    cutAll() {
      for (const socket of sockets) socket.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
