import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { installBundle } from "../../../tools/install-bundle.ts";
import { builtPage } from "./browser.ts";

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that goes on, after its first line. */
interface Started {
  readonly line: string;
  readonly child: ChildProcess;
  end(): Promise<number | null>;
}

/** The command line with the page, installed as npm does it, and an empty home. */
export interface Installed {
  readonly home: string;
  /** The only folder of the path, so that no program of this machine is found. */
  readonly programs: string;
  run(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Run>;
  start(args: readonly string[]): Promise<Started>;
  remove(): Promise<void>;
}

export async function install(): Promise<Installed> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-page-installed-"));
  const { bin } = await installBundle(folder);
  cpSync(await builtPage(), join(dirname(bin), "../dist/inspect"), { recursive: true });
  const [home, programs] = [join(folder, "home"), join(folder, "programs")];
  for (const each of [home, programs]) mkdirSync(each);
  const env = { PATH: programs, HOME: home, THROUGHLINE_HOME: join(home, ".throughline"), TZ: "UTC" };
  const running: Started[] = [];
  return {
    home,
    programs,
    run: (args, environment = {}) =>
      new Promise((resolve) => {
        const options = { cwd: home, env: { ...env, ...environment }, maxBuffer: 64 * 1024 * 1024 };
        const child = execFile(process.execPath, [bin, ...args], options, (_error, stdout, stderr) =>
          resolve({ code: child.exitCode ?? -1, stdout, stderr }),
        );
        child.stdin?.end();
      }),
    start: async (args) => {
      const child = spawn(process.execPath, [bin, ...args], { cwd: home, env, stdio: ["ignore", "pipe", "inherit"] });
      const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
      const line = await new Promise<string>((resolve, reject) => {
        let text = "";
        child.stdout.on("data", (chunk) => {
          text += chunk;
          if (text.includes("\n")) resolve(text.split("\n")[0] ?? "");
        });
        void ended.then((code) => reject(new Error(`${args.join(" ")} ended with ${code}`)));
      });
      const end = (): Promise<number | null> => (child.kill("SIGINT"), ended);
      const started = { line, child, end };
      running.push(started);
      return started;
    },
    remove: async () => {
      for (const { end } of running) await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
