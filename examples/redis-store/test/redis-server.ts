import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@redis/client";

/** A Redis server of this machine, on a socket in a folder of its own. */
export interface RedisServer {
  readonly url: string;
  /** Removes everything. */
  flush(): Promise<void>;
  /** The content of the database on the disk, after it was saved. */
  saved(): Promise<Buffer>;
  /** Runs one command, as another program would. */
  command(...words: readonly string[]): Promise<unknown>;
  stop(): Promise<void>;
}

/** The reason why no test can run; null when `redis-server` is installed. */
export const missingServer: string | null =
  spawnSync("redis-server", ["--version"]).status === 0
    ? null
    : "redis-server is not installed: `apt-get install redis-server`, `brew install redis`";

/** Starts a server that listens on no port. */
export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "redis-"));
  const socket = join(folder, "redis.sock");
  const settings = { port: "0", unixsocket: socket, dir: folder, save: "", appendonly: "no", rdbcompression: "no" };
  const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = spawn("redis-server", words, { stdio: "ignore" });
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  while (!existsSync(socket)) {
    if (server.exitCode !== null) throw new Error(`redis-server ended with ${server.exitCode}.`);
    await sleep(10);
  }
  const url = `unix://${socket}`;
  const client = await createClient({ url }).connect();
  return {
    url,
    flush: async () => void (await client.flushAll()),
    saved: async () => {
      await client.sendCommand(["SAVE"]);
      return readFileSync(join(folder, "dump.rdb"));
    },
    command: (...parts) => client.sendCommand([...parts]),
    stop: async () => {
      client.destroy();
      server.kill();
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
