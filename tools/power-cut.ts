// Cuts the power of a file system under a writing SQLite store, again and again, and looks for what was acknowledged.
// node --conditions=@throughline/source tools/power-cut.ts [--rounds 200] [--size 200] [--durability disk]   (root, Linux, loop devices)
import { execFileSync, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Finding } from "../packages/core/src/index.ts";
import { createSqliteStore } from "../packages/store-sqlite/src/index.ts";
import { repositoryRoot } from "./find-files.ts";

/** What the power cuts left behind, over all rounds. */
export interface PowerCutFigures {
  readonly rounds: number;
  readonly acknowledged: number;
  /** Of the acknowledged ones, how many are in the store with the seq and id that was said. */
  readonly found: number;
  readonly recordCount: number;
  readonly findings: readonly Finding[];
}

const imageBytes = 256 * 1024 * 1024;
const ref = { namespace: "", agentId: "main", key: "agent:main:killed" };
const writerPath = join(repositoryRoot, "packages/store-sqlite/test/append-until-killed.ts");

/** FS_IOC_SHUTDOWN without flushing the journal: whatever was not made durable is gone, as when the power fails. */
const shutdownProgram =
  "import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1],os.O_RDONLY),0x8004587d,struct.pack('I',2))";

/** A file system of its own in a file, mounted. */
interface LoopDisk {
  readonly path: string;
  mount(): void;
  unmount(): void;
  cutPower(): void;
  dispose(): void;
}

/** Null, with the reason on stderr, where the system does not allow it. */
export function createLoopDisk(): LoopDisk | null {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return unavailable("it needs Linux and root");
  const folder = mkdtempSync(join(tmpdir(), "throughline-power-"));
  const [image, path] = [join(folder, "disk.img"), join(folder, "disk")];
  const run = (program: string, ...args: readonly string[]): void =>
    void execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const disk: LoopDisk = {
    path,
    mount: () => run("mount", "-o", "loop", image, path),
    unmount: () => run("umount", path),
    cutPower: () => run("python3", "-c", shutdownProgram, path),
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
    truncateSync(image, imageBytes);
    run("mkfs.ext4", "-q", "-F", image);
    disk.mount();
    disk.cutPower();
    disk.unmount();
    return disk;
  } catch (error) {
    disk.dispose();
    return unavailable(error instanceof Error ? error.message : String(error));
  }
}

function unavailable(why: string): null {
  process.stderr.write(`power cuts are skipped: ${why.split("\n")[0] ?? ""}\n`);
  return null;
}

/** Writes until the power is cut, mounts again, and reads everything back once at the end. */
export async function powerCuts(
  disk: LoopDisk,
  { rounds, writerArgs }: { readonly rounds: number; readonly writerArgs: readonly string[] },
): Promise<PowerCutFigures> {
  const acknowledged: string[] = [];
  const path = join(disk.path, "store.db");
  for (let round = 0; round < rounds; round++) {
    disk.mount();
    acknowledged.push(...(await writeUntilCut(disk, [path, ...writerArgs])));
    disk.unmount();
  }
  disk.mount();
  const findings: Finding[] = [];
  const said = new Set<string>();
  {
    await using store = createSqliteStore({ path, create: false, recover: false });
    for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
    for await (const { records } of store.read(ref)) for (const { seq, id } of records) said.add(`${seq}:${id}`);
  }
  disk.unmount();
  const found = acknowledged.filter((each) => said.has(each)).length;
  return { rounds, acknowledged: acknowledged.length, found, recordCount: said.size, findings };
}

/** One life of the writer: the power goes a random moment after its first word. */
function writeUntilCut(disk: LoopDisk, writerArgs: readonly string[]): Promise<string[]> {
  const args = ["--conditions=@throughline/source", writerPath, ...writerArgs];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  let isCut = false;
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    // What was said before the cut counts; a flush that fails afterwards is not acknowledged.
    text += chunk;
    if (isCut) return;
    isCut = true;
    setTimeout(() => {
      disk.cutPower();
      child.kill("SIGKILL");
    }, Math.random() * 60);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => {
      const whole = text.slice(0, text.lastIndexOf("\n") + 1);
      if (isCut) resolve(whole.split(/\s/).filter((each) => each !== ""));
      else reject(new Error("the writer ended before it had written anything"));
    });
  });
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "200" },
      size: { type: "string", default: "200" },
      // With "process" something is lost: that is how one sees that the power is really cut.
      durability: { type: "string", default: "disk" },
    },
  });
  const disk = existsSync(writerPath) ? createLoopDisk() : unavailable("the writer is missing");
  if (disk !== null) {
    const startedMs = performance.now();
    try {
      const figures = await powerCuts(disk, {
        rounds: Number(values.rounds),
        writerArgs: [values.size, values.durability],
      });
      const { rounds, acknowledged, found, recordCount, findings } = figures;
      process.stdout.write(
        `power cut under the sqlite store, ${rounds} rounds, records of ${values.size} bytes, ${values.durability}: ${acknowledged} acknowledged, ${found} found, ` +
          `${acknowledged - found} lost, ${recordCount} in the store, ${findings.length} findings, ${((performance.now() - startedMs) / 1000).toFixed(1)} s\n`,
      );
      process.exitCode = acknowledged > 0 && found === acknowledged && findings.length === 0 ? 0 : 1;
    } finally {
      disk.dispose();
    }
  }
}
