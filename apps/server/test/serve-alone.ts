import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { quickFolder } from "../../../packages/store-sqlite/test/test-folder.ts";

/** A server in a process of its own, so that its waits are its own. */
export interface ServerAlone {
  readonly url: string;
  readonly token: string;
  /** Its resident memory in bytes; from now on the most of it is kept. */
  watchMemory(): number;
  /** The most since then. */
  mostMemory(): number;
  end(): Promise<void>;
}

export async function serveAlone(): Promise<ServerAlone> {
  const folder = mkdtempSync(join(quickFolder(), "throughline-alone-"));
  const child: ChildProcess = fork(join(import.meta.dirname, "served-alone.ts"), [join(folder, "sessions.db")], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const [{ url, token }] = (await once(child, "message")) as [{ readonly url: string; readonly token: string }];
  const bytesOf = (name: string): number => {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1024;
  };
  return {
    url,
    token,
    watchMemory() {
      writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
      return bytesOf("VmRSS");
    },
    mostMemory: () => bytesOf("VmHWM"),
    async end() {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
