import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** The release that the cluster suite builds, and the Debian PostgreSQL that it builds for. */
export const citusRelease = "v13.2.2";
const installed = "/usr/lib/postgresql/15";
const publicSources = "https://github.com/citusdata/citus";

/** Returns why Citus cannot be built on this machine, or null. */
export function missingForCitus(): string | null {
  if (process.platform !== "linux") return "needs Linux";
  if (!existsSync(join(installed, "bin/initdb"))) return `no PostgreSQL in ${installed}: install postgresql-15`;
  if (!existsSync(join(installed, "lib/pgxs"))) return "no headers of PostgreSQL 15: install postgresql-server-dev-15";
  const absent = ["git", "gcc", "make", "nice"].find(
    (name) => spawnSync("sh", ["-c", `command -v ${name}`]).status !== 0,
  );
  return absent === undefined ? null : `${absent} is not installed`;
}

interface BuildOptions {
  /** Names a folder of the sources, or a git repository that `git clone` can reach. */
  readonly sources: string | undefined;
  /** Is created, and holds a copy of PostgreSQL with the extension. A finished one is used again. */
  readonly prefix: string;
}

/**
 * Builds Citus, and returns the folder of the server's programs. PostgreSQL finds its extensions relative to its own
 * program. So a copy of the server beside the extension needs no change to the installed one.
 * @throws {Error} with the end of the output of the step that failed
 */
export function buildCitus({ sources, prefix }: BuildOptions): string {
  const root = join(prefix, "usr");
  const binaries = join(root, "lib/postgresql/15/bin");
  if (existsSync(join(root, "built"))) return binaries;
  rmSync(prefix, { recursive: true, force: true });
  const folder = join(prefix, "build");
  mkdirSync(root, { recursive: true });
  copySources(sources ?? publicSources, folder);
  const env = { PG_CONFIG: join(installed, "bin/pg_config") };
  step("./configure", ["--without-libcurl"], { cwd: folder, env });
  step("nice", ["make", "-j2", "with_llvm=no", "extension"], { cwd: folder, env });
  for (const part of ["lib/postgresql/15", "share/postgresql/15"])
    cpSync(join("/usr", part), join(root, part), { recursive: true, dereference: true });
  step("make", ["with_llvm=no", `DESTDIR=${prefix}`, "install-extension"], { cwd: folder, env });
  rmSync(folder, { recursive: true });
  mkdirSync(join(root, "built"));
  return binaries;
}

function copySources(sources: string, folder: string): void {
  if (existsSync(join(sources, "configure"))) return cpSync(sources, folder, { recursive: true });
  step("git", ["clone", "--quiet", "--depth", "1", "--branch", citusRelease, sources, folder], {});
}

function step(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> },
): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { ...process.env, ...env, GIT_TERMINAL_PROMPT: "0" },
    encoding: "utf8",
    maxBuffer: 256 * 1024 ** 2,
  });
  if (status === 0) return;
  const said = error === undefined ? `${stdout}\n${stderr}`.trim().slice(-2000) : error.message;
  throw new Error(`\`${[program, ...args].join(" ")}\` failed: ${said}`);
}
