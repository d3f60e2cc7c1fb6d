// Cuts the power of a file system under a writing store, again and again, and looks for what was acknowledged.
// node --conditions=@throughline/source tools/power-cut.ts [--store sqlite|jsonl|control] [--fs ext4|xfs] [--rounds 200]
//   [--size 200] [--durability disk]
// With "control" SQLite alone is written to, which says what the kernel itself gives away. The writer of the JSONL store
// appends turns, changes an entry and makes sessions, with index.db and sessions.json. Both stores write partials of an open
// turn: after the cut there is the last one that was acknowledged or a later one, whole. (root, Linux, loop devices, python3)
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Finding } from "../packages/core/src/index.ts";
import { powerCutTargets, sourceCondition, type PowerCutTarget } from "./power-cut-targets.ts";

/** What the power cuts left behind, over all rounds. */
export interface PowerCutFigures {
  readonly rounds: number;
  readonly acknowledged: number;
  /** Of the acknowledged ones, how many are in the store with the seq and id that was said. */
  readonly found: number;
  /**
   * Said while the power was being cut, and how many of them are there. A flush that overlaps the cut may be told success
   * by the kernel although its journal was just then given up; when the power fails nobody is left to be told.
   */
  readonly overlapping: number;
  readonly overlappingFound: number;
  readonly recordCount: number;
  readonly findings: readonly Finding[];
}

/** What mkfs.xfs takes at least is 300 MB. */
const imageBytes = { ext4: 256 * 1024 * 1024, xfs: 512 * 1024 * 1024 };

/** FS_IOC_SHUTDOWN without flushing the journal: whatever was not made durable is gone, as when the power fails. */
const shutdownProgram = [
  "import fcntl,os,struct,sys",
  "disk=os.open(sys.argv[1],os.O_RDONLY)",
  "print('ready',flush=True)",
  "sys.stdin.readline()",
  "fcntl.ioctl(disk,0x8004587d,struct.pack('I',2))",
].join("\n");

/** A file system of its own in a file, mounted. */
interface LoopDisk {
  readonly path: string;
  mount(): void;
  unmount(): void;
  /** Gets ready at once; the cut itself, when it is called for, is one system call. */
  prepareCut(): Promise<() => Promise<void>>;
  dispose(): void;
}

/** Null, with the reason on stderr, where the system does not allow it. */
export async function createLoopDisk(kind: "ext4" | "xfs" = "ext4"): Promise<LoopDisk | null> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return unavailable("it needs Linux and root");
  const folder = mkdtempSync(join(tmpdir(), "throughline-power-"));
  const [image, path] = [join(folder, "disk.img"), join(folder, "disk")];
  const run = (program: string, ...args: readonly string[]): void =>
    void execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const disk: LoopDisk = {
    path,
    mount: () => run("mount", "-o", "loop", image, path),
    unmount: () => run("umount", path),
    prepareCut: async () => {
      const cutter = spawn("python3", ["-c", shutdownProgram, path], { stdio: ["pipe", "pipe", "inherit"] });
      await once(cutter.stdout, "data");
      const closed = once(cutter, "close");
      return async () => {
        cutter.stdin.end("\n");
        const [code] = await closed;
        if (code !== 0) throw new Error("the power could not be cut");
      };
    },
    dispose: () => {
      try {
        disk.unmount();
      } catch {
        // It is not mounted any more.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
  try {
    mkdirSync(path);
    closeSync(openSync(image, "w"));
    truncateSync(image, imageBytes[kind]);
    run(`mkfs.${kind}`, "-q", kind === "xfs" ? "-f" : "-F", image);
    disk.mount();
    await (
      await disk.prepareCut()
    )();
    disk.unmount();
    return disk;
  } catch (error) {
    disk.dispose();
    return unavailable(error instanceof Error ? error.message : String(error));
  }
}

function unavailable(why: string): null {
  process.stderr.write(`skipped: no power can be cut here, ${why.split("\n")[0] ?? ""}\n`);
  return null;
}

/** Writes until the power is cut, mounts again, and reads everything back once at the end. */
export async function powerCuts(
  disk: LoopDisk,
  {
    rounds,
    writerArgs,
    target = powerCutTargets.sqlite,
  }: { readonly rounds: number; readonly writerArgs: readonly string[]; readonly target?: PowerCutTarget },
): Promise<PowerCutFigures> {
  const acknowledged: string[] = [];
  const overlapping: string[] = [];
  const found = new Set<string>();
  const path = join(disk.path, target.place);
  for (let round = 0; round < rounds; round++) {
    disk.mount();
    const said = await writeUntilCut(disk, [target.writer, path, ...writerArgs, ...(target.writerArgs ?? [])]);
    acknowledged.push(...said.before);
    overlapping.push(...said.during);
    disk.unmount();
    if (target.checkLife === undefined) continue;
    disk.mount();
    for (const word of await target.checkLife(path, [...said.before, ...said.during])) found.add(word);
    disk.unmount();
  }
  disk.mount();
  const last = await target.checkAll(path);
  disk.unmount();
  for (const word of last.found) found.add(word);
  const foundOf = (words: readonly string[]): number => words.filter((each) => found.has(each)).length;
  return {
    rounds,
    acknowledged: acknowledged.length,
    found: foundOf(acknowledged),
    overlapping: overlapping.length,
    overlappingFound: foundOf(overlapping),
    recordCount: last.found.size,
    findings: last.findings,
  };
}

interface Said {
  readonly before: readonly string[];
  readonly during: readonly string[];
}

/** One life of the writer: the power goes a random moment after its first word. */
async function writeUntilCut(disk: LoopDisk, writerArgs: readonly string[]): Promise<Said> {
  const cutPower = await disk.prepareCut();
  const child = spawn(process.execPath, [...sourceCondition, ...writerArgs], { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  let isCut = false;
  let lengthAtCut = 0;
  let cut: Promise<void> = Promise.resolve();
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
    if (isCut) return;
    isCut = true;
    setTimeout(() => {
      lengthAtCut = text.length;
      const kill = (): void => void child.kill("SIGKILL");
      cut = cutPower();
      cut.then(kill, kill);
    }, Math.random() * 60);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => {
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      // A line that was half read when the cut began was said before it.
      const split = lengthAtCut === 0 ? 0 : whole.indexOf("\n", lengthAtCut - 1) + 1 || whole.length;
      const words = (part: string): string[] => part.split(/\s/).filter((each) => each !== "");
      const said = { before: words(whole.slice(0, split)), during: words(whole.slice(split)) };
      // Whoever cuts has the disk open until he is done.
      if (isCut) cut.then(() => resolve(said), reject);
      else reject(new Error("the writer ended before it had written anything"));
    });
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      store: { type: "string", default: "sqlite" },
      fs: { type: "string", default: "ext4" },
      rounds: { type: "string", default: "200" },
      size: { type: "string", default: "200" },
      // With "process" something is lost: that is how one sees that the power is really cut.
      durability: { type: "string", default: "disk" },
    },
  });
  const target = Object.entries(powerCutTargets).find(([name]) => name === values.store)?.[1];
  if (target === undefined || !existsSync(target.writer)) throw new Error(`there is no store "${values.store}"`);
  const kind = values.fs === "xfs" ? "xfs" : "ext4";
  const disk = await createLoopDisk(kind);
  if (disk !== null) {
    const startedMs = performance.now();
    try {
      const figures = await powerCuts(disk, {
        rounds: Number(values.rounds),
        writerArgs: [values.size, values.durability],
        target,
      });
      const { rounds, acknowledged, found, overlapping, overlappingFound, recordCount, findings } = figures;
      for (const { code, message } of findings.slice(0, 20)) process.stdout.write(`${code}: ${message}\n`);
      process.stdout.write(
        `power cut under ${target.title} on ${kind}, ${rounds} rounds, records of ${values.size} bytes, ${values.durability}: ${acknowledged} acknowledged, ${found} found, ` +
          `${acknowledged - found} lost; ${overlapping} more said while the power was being cut, ${overlapping - overlappingFound} of them lost; ${recordCount} in the store, ${findings.length} findings, ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`,
      );
      process.exitCode = acknowledged > 0 && found === acknowledged && findings.length === 0 ? 0 : 1;
    } finally {
      disk.dispose();
    }
  }
}
