import { spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { tmpdir } from "node:os";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../tools/free-port.ts";

/** A PgBouncer in transaction mode before a server. */
export interface Pooler {
  readonly url: string;
  stop(): Promise<void>;
}

function findProgram(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => join(folder, "pgbouncer")).find((path) => existsSync(path));
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => end(true)).on("error", () => end(false));
  });
}

/** The pooler with three connections to the server, or why there is none here. */
export async function startPooler(place: {
  readonly url: string;
  readonly dataFolder: string;
}): Promise<Pooler | string> {
  const program = findProgram();
  if (program === undefined) return "the program pgbouncer is not installed";
  const server = new URL(place.url);
  const folder = mkdtempSync(join(tmpdir(), "throughline-pooler-"));
  const port = await freePort();
  const settings = join(folder, "pgbouncer.ini");
  writeFileSync(
    settings,
    `[databases]
* = host=127.0.0.1 port=${server.port} user=${server.username} password=${server.password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 200
`,
    { mode: 0o600 },
  );
  // It refuses to run as root: then it runs as the server does.
  const { uid, gid } = statSync(place.dataFolder);
  const owner = process.getuid?.() === 0 ? { uid, gid } : {};
  if (owner.uid !== undefined) {
    chmodSync(folder, 0o700);
    for (const path of [folder, settings]) chownSync(path, uid, gid);
  }
  const child = spawn(program, ["-q", settings], { stdio: ["ignore", "ignore", "pipe"], cwd: folder, ...owner });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()).once("error", () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true });
  };
  for (let waited = 0; !(await isListening(port)); waited++) {
    if (child.exitCode === null && waited < 200) await sleep(25);
    else {
      await stop();
      return `pgbouncer did not start: ${said}`;
    }
  }
  server.port = String(port);
  return { url: server.href, stop };
}
