import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

/** A PostgreSQL of the tests' own, in a process of its own. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  readonly dataFolder: string;
  /** Kills the server with -9. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** What a test needs to know of a server, or why there is none. */
export type PostgresPlace = { readonly url: string; readonly dataFolder: string } | { readonly unavailable: string };

type Said = Readonly<Record<string, unknown>>;

/** The server, or why it cannot be brought up here. Its files lie in memory where the system has room there, or on disk. */
export async function startPostgres(
  place: "memory" | "disk" = "memory",
): Promise<PostgresServer | { readonly unavailable: string }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "serve-postgres.ts"), place], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Said> => {
    const line = await lines.next();
    return line.done === true
      ? { unavailable: `the server's process ended: ${errors}` }
      : (JSON.parse(line.value) as Said);
  };
  const first = await next();
  if (typeof first["url"] !== "string") {
    await ended;
    return { unavailable: String(first["unavailable"]) };
  }
  const ask = async (word: string, wanted: string): Promise<void> => {
    child.stdin.write(`${word}\n`);
    const answer = await next();
    if (answer[wanted] !== true) throw new Error(`the server did not ${word}: ${JSON.stringify(answer)}`);
  };
  return {
    url: first["url"],
    port: Number(first["port"]),
    dataFolder: String(first["dataFolder"]),
    kill: () => ask("kill", "killed"),
    start: () => ask("start", "started"),
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}
