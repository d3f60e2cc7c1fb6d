import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { binPath, cleanEnvironment, sourceCondition } from "./harness.ts";

/** Other users must reach the folder, unlike those of other tests. */
let home = "";
let child: ChildProcess | null = null;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "throughline-surroundings-"));
  chmodSync(home, 0o755);
});
afterEach(async () => {
  if (child !== null && child.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "close");
  }
  child = null;
  rmSync(home, { recursive: true, force: true });
});

function pathOf(session: number, project: string = "-srv"): string {
  const id = `0b0e1b5e-0000-4000-8000-${String(session).padStart(12, "0")}`;
  return join(home, ".claude", "projects", project, `${id}.jsonl`);
}

function line(session: number, at: number, text: string): string {
  const uuid = `0b0e1b5e-${String(session).padStart(4, "0")}-4000-9000-${String(at).padStart(12, "0")}`;
  const sessionId = `0b0e1b5e-0000-4000-8000-${String(session).padStart(12, "0")}`;
  const fields = { parentUuid: null, isSidechain: false, userType: "external", cwd: "/srv", sessionId };
  const message = { role: "user", content: text };
  return `${JSON.stringify({ ...fields, version: "2.0.0", type: "user", message, uuid, timestamp: "2026-01-01T00:00:00.000Z" })}\n`;
}

function write(session: number, project?: string): void {
  mkdirSync(dirname(pathOf(session, project)), { recursive: true });
  writeFileSync(pathOf(session, project), line(session, 1, "words"));
}

/** Starts the program behind a command that changes what is around it. */
function begin(before: readonly string[], args: readonly string[]): { readonly text: () => string } {
  const [command = "", ...others] = [...before, process.execPath, sourceCondition, binPath, ...args];
  child = spawn(command, others, { cwd: "/", env: cleanEnvironment(home), stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return { text: () => text };
}

async function run(before: readonly string[], args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const { text } = begin(before, args);
  const [code] = (await once(child as ChildProcess, "close")) as [number | null];
  return { code, text: text() };
}

async function until(isDone: () => boolean, what: () => string, ms: number = 60_000): Promise<void> {
  const beganMs = performance.now();
  while (!isDone()) {
    if (performance.now() - beganMs > ms) throw new Error(`did not happen: ${what()}`);
    await wait(50);
  }
}

/** Counts the watches of the process by what the system lists. */
function watchesOf(pid: number): number {
  const folder = `/proc/${pid}/fdinfo`;
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  return texts.join("\n").match(/^inotify wd/gm)?.length ?? 0;
}

const succeeds = (command: string, args: readonly string[]): boolean => spawnSync(command, args).status === 0;
const isRoot = process.getuid?.() === 0;
const fewWatches = ["unshare", "-Ur", "sh", "-c", 'echo 2 >/proc/sys/user/max_inotify_watches; exec "$@"', "sh"];
const isLimitable = succeeds("unshare", ["-Ur", "sh", "-c", "echo 2 >/proc/sys/user/max_inotify_watches"]);

describe("a watch that the system limits", () => {
  it.skipIf(!isLimitable)(
    "takes the watches that there are, and polls the other folders",
    { timeout: 120_000 },
    async () => {
      for (let session = 0; session < 6; session++) write(session, `-srv-${session}`);
      const { text } = begin(fewWatches, ["sync", "--watch"]);
      await until(() => text().includes("Watching"), text);
      expect(watchesOf(child?.pid ?? 0)).toBe(2);
      for (let session = 0; session < 6; session++)
        appendFileSync(pathOf(session, `-srv-${session}`), line(session, 2, "more"));
      await until(
        () => (text().match(/(\d+) grown/g) ?? []).reduce((sum, each) => sum + Number.parseInt(each, 10), 0) === 6,
        text,
      );
      // A poll sees a new file, too.
      write(7, "-srv-5");
      await until(() => /[1-9]\d* imported/.test(text().slice(text().indexOf("Watching"))), text);
    },
  );
});

// With -D the program is the child, so that it ends with the test.
const traced = ["strace", "-D", "-f", "-qq", "-e", "trace=statfs,inotify_add_watch"];
const onNfs = [...traced, "-e", "inject=statfs:poke_exit=@arg2=6969000000000000"];

describe("a folder on a network", () => {
  it.skipIf(!succeeds(onNfs[0] ?? "", [...onNfs.slice(1), "true"]))(
    "gets no watch and is polled",
    { timeout: 120_000 },
    async () => {
      write(1);
      const trace = join(home, "trace");
      const { text } = begin([...onNfs, "-o", trace], ["sync", "--watch"]);
      await until(() => text().includes("Watching"), text);
      appendFileSync(pathOf(1), line(1, 2, "more"));
      await until(() => text().includes("1 grown"), text);
      const calls = readFileSync(trace, "utf8");
      expect([calls.includes("NFS_SUPER_MAGIC"), calls.includes("inotify_add_watch")]).toEqual([true, false]);
    },
  );
});

describe("a home that cannot be written", () => {
  const frozen = [
    "unshare",
    "-m",
    "sh",
    "-c",
    'mount --bind "$HOME/.throughline" "$HOME/.throughline" && mount -o remount,ro,bind "$HOME/.throughline" && exec "$@"',
    "sh",
  ];

  it.skipIf(!isRoot || !succeeds("unshare", ["-m", "true"]))(
    "is reported, and a store elsewhere takes the sessions",
    async () => {
      write(1);
      mkdirSync(join(home, ".throughline"));
      const before = [...frozen, "env", `THROUGHLINE_HOME=${join(home, ".throughline")}`];
      const inHome = await run(before, ["sync"]);
      expect([inHome.code, inHome.text]).toEqual([1, expect.stringContaining("The database cannot be written.")]);
      const store = ["--store", `sqlite:${join(home, "other.db")}`];
      const elsewhere = await run(before, ["sync", ...store]);
      expect([elsewhere.code, elsewhere.text]).toEqual([
        0,
        expect.stringContaining("1 imported, 0 grown, 0 unchanged"),
      ]);
      expect(elsewhere.text).toContain("The list of read files cannot be written");
      // Without the list, every file is read again, and gives nothing twice.
      expect((await run(before, ["sync", ...store])).text).toContain("0 imported, 0 grown, 1 unchanged");
    },
  );
});

describe("a folder of another user", () => {
  const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

  it.skipIf(!isRoot || !succeeds("setpriv", ["--reuid=65534", "true"]))(
    "is reported, and the sessions beside it are imported",
    async () => {
      write(1);
      write(2, "-closed");
      chmodSync(dirname(pathOf(2, "-closed")), 0);
      chownSync(home, 65534, 65534);
      const { code, text } = await run(nobody, ["sync", "--json"]);
      expect([code, text]).toEqual([3, expect.stringContaining("FILE_UNREADABLE")]);
      expect(text).toContain("-closed");
      expect(text).toMatch(/"imported":1\b/);
      chmodSync(dirname(pathOf(2, "-closed")), 0o755);
      const again = await run(nobody, ["sync", "--json"]);
      expect([again.code, again.text]).toEqual([0, expect.stringMatching(/"imported":1\b/)]);
    },
  );
});
