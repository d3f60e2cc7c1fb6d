import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { repositoryRoot } from "./find-files.ts";
import { freePort } from "./free-port.ts";

const verdaccioVersion = "6.10.4";
const pnpm = ["-y", "pnpm@12.21.0"];

/** Runs a program to its end. @throws {Error} with what it printed, when it fails */
export function run(
  file: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): string {
  const { status, stdout, stderr } = spawnSync(file, args, {
    cwd,
    env: { ...process.env, ...env },
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} ended with ${status}:\n${stdout}\n${stderr}`);
  return stdout;
}

/** Makes a folder in which a user has installed these packages. */
export function installInto(folder: string, packages: readonly string[], env: Readonly<Record<string, string>>): void {
  mkdirSync(folder);
  run("npm", ["init", "-y"], folder, env);
  run("npm", ["install", ...packages], folder, env);
}

/** A registry in a folder, with what npm's has behind it. */
async function startRegistry(folder: string): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  mkdirSync(folder);
  // One dependency of the registry names a tag that npm's own registry does not have everywhere.
  const manifest = {
    private: true,
    dependencies: { verdaccio: verdaccioVersion },
    overrides: { "node-fetch": "2.7.0" },
  };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  run("npm", ["install", "--no-fund", "--no-audit"], folder);
  const upstream = run("npm", ["config", "get", "registry"], folder).trim();
  writeFileSync(
    join(folder, "config.yaml"),
    `storage: ./storage
uplinks: { up: { url: "${upstream}" } }
packages:
  "@throughline/*": { access: $all, publish: $all, unpublish: $all }
  "**": { access: $all, proxy: up }
auth: { htpasswd: { file: ./htpasswd, max_users: -1 } }
web: { enable: false }
max_body_size: 50mb
log: { type: stdout, format: json, level: warn }
`,
  );
  const port = await freePort();
  const program = join(folder, "node_modules/verdaccio/bin/verdaccio");
  const child = spawn(process.execPath, [program, "--config", "config.yaml", "--listen", `127.0.0.1:${port}`], {
    cwd: folder,
    stdio: "ignore",
  });
  const url = `http://127.0.0.1:${port}/`;
  for (let waited = 0; ; waited++) {
    const isUp = await fetch(`${url}-/ping`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return { url, child };
    if (waited > 300) throw new Error("the registry did not start");
    await sleep(100);
  }
}

/** A registry of this machine that has every package of the workspace, as it is built. */
export interface LocalRegistry {
  readonly url: string;
  /** Makes npm and pnpm install from it. */
  readonly env: Readonly<Record<string, string>>;
  stop(): void;
}

/** Starts a registry in a folder and publishes every package to it. */
export async function publishLocally(folder: string): Promise<LocalRegistry> {
  const { url, child } = await startRegistry(join(folder, "registry"));
  try {
    const config = join(folder, "npmrc");
    writeFileSync(config, `registry=${url}\n${url.replace("http:", "")}:_authToken=local\nfund=false\naudit=false\n`);
    const env = { NPM_CONFIG_USERCONFIG: config, npm_config_registry: url };
    run("npx", [...pnpm, "-r", "publish", "--no-git-checks", "--registry", url], repositoryRoot, env);
    return { url, env, stop: () => void child.kill() };
  } catch (error) {
    child.kill();
    throw error;
  }
}
