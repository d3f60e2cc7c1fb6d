import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** What the tests need of a server's program, whichever it is. */
export interface ServerProgram {
  initialise(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface InstalledOptions {
  /** The folder of `initdb` and `postgres`. */
  readonly binaries: string;
  readonly dataFolder: string;
  readonly port: number;
  readonly password: string;
  readonly initdbFlags: readonly string[];
  /** A line of the server's own file. */
  readonly settings: string;
  readonly serverFlags: readonly string[];
  readonly note: (line: string) => void;
}

/** A PostgreSQL that is installed on this machine, run as the user `postgres` where the tests run as root. */
export function createInstalledPostgres(options: InstalledOptions): ServerProgram {
  const { binaries, dataFolder, port, password, note } = options;
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  const env = { ...process.env, LC_ALL: "C", LC_MESSAGES: "C" };
  let child: ChildProcess | null = null;
  return {
    async initialise() {
      mkdirSync(dataFolder, { mode: 0o700 });
      const passwordFile = `${dataFolder}.password`;
      writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
      if (user.uid !== undefined) for (const path of [dataFolder, passwordFile]) chownSync(path, user.uid, user.gid);
      const flags = ["-D", dataFolder, "-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`];
      try {
        execFileSync(join(binaries, "initdb"), [...flags, ...options.initdbFlags], {
          ...user,
          env,
          cwd: "/",
          stdio: "pipe",
        });
      } finally {
        rmSync(passwordFile);
      }
      // `initdb --set` is younger than the oldest server.
      appendFileSync(join(dataFolder, "postgresql.conf"), `${options.settings}\n`);
    },
    async start() {
      const started = spawn(
        join(binaries, "postgres"),
        ["-D", dataFolder, "-p", String(port), ...options.serverFlags],
        {
          ...user,
          env,
          cwd: "/",
          stdio: ["ignore", "ignore", "pipe"],
        },
      );
      child = started;
      await new Promise<void>((resolve, reject) => {
        started.once("error", reject);
        started.once("close", (code) => reject(new Error(`postgres ended with ${code}`)));
        started.stderr.on("data", (chunk: Buffer) => {
          note(chunk.toString());
          if (chunk.includes("database system is ready to accept connections")) resolve();
        });
      });
    },
    async stop() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child?.once("close", resolve));
      // A fast shutdown: connections are ended.
      child.kill("SIGINT");
      await ended;
    },
  };
}

function idOf(flag: "-u" | "-g"): number {
  return Number(execFileSync("id", [flag, "postgres"]).toString());
}
