import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Files, nodeFiles } from "../src/files.ts";
import { crashStates, imageDigest } from "./crash-states.ts";
import { createSimulatedDisk, type DiskImage } from "./simulated-disk.ts";
import { createRandom } from "../../../tools/seeded-random.ts";

/** A file system in a file, mounted. */
export interface LoopDisk {
  readonly mountPoint: string;
  /** Loses everything that was not flushed, as a power cut does, and mounts it again. */
  cutPower(): void;
  unmount(): void;
}

/** FS_IOC_SHUTDOWN, told to leave the journal as it is. */
const shutDown =
  "import fcntl,os,struct,sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";

/** Makes and mounts a small file system. Needs root, loop devices and python3. */
export function mountLoopDisk(kind: "ext4" | "xfs", folder: string): LoopDisk {
  const image = join(folder, `${kind}.img`);
  const mountPoint = join(folder, kind);
  execFileSync("truncate", ["-s", kind === "xfs" ? "320M" : "64M", image]);
  execFileSync(`mkfs.${kind}`, [kind === "xfs" ? "-f" : "-F", "-q", image]);
  mkdirSync(mountPoint);
  const mount = (): void => void execFileSync("mount", ["-o", "loop", image, mountPoint]);
  mount();
  return {
    mountPoint,
    cutPower() {
      execFileSync("python3", ["-c", shutDown, mountPoint]);
      execFileSync("umount", [mountPoint]);
      mount();
    },
    unmount: () => void execFileSync("umount", ["-l", mountPoint]),
  };
}

/** Does the same at random on both file systems, the simulated and the real one. */
async function randomWork(folders: readonly (readonly [Files, string])[], random: () => number): Promise<void> {
  const names = ["a", "b", "c"];
  const pick = (): string => names[Math.floor(random() * names.length)] ?? "a";
  const steps = 3 + Math.floor(random() * 5);
  for (let step = 0; step < steps; step++) {
    const [one, other, choice, size] = [pick(), pick(), random(), 1 + Math.floor(random() * 200)];
    const isFlushed = random() < 0.4;
    const bytes = Buffer.alloc(size, 97 + step);
    for (const [files, folder] of folders) await doStep(files, folder, { one, other, choice, size, isFlushed, bytes });
  }
}

interface WorkStep {
  readonly one: string;
  readonly other: string;
  readonly choice: number;
  readonly size: number;
  readonly isFlushed: boolean;
  readonly bytes: Uint8Array;
}

async function doStep(files: Files, folder: string, step: WorkStep): Promise<void> {
  const { one, other, choice, size, isFlushed, bytes } = step;
  const path = `${folder}/${one}`;
  const facts = files.facts(path);
  if (choice < 0.6 || facts === null) {
    const handle = files.open(path, facts === null ? "create" : "append");
    files.write(handle, bytes);
    if (isFlushed) await files.flush(handle);
    files.close(handle);
    if (facts === null && isFlushed) files.flushFolder(folder || "/");
  } else if (choice < 0.7) {
    const handle = files.open(path, "append");
    files.truncate(handle, Math.min(size, facts.sizeBytes));
    if (isFlushed) files.flushNow(handle);
    files.close(handle);
  } else if (choice < 0.9) {
    if (one !== other) files.rename(path, `${folder}/${other}`);
    if (isFlushed) files.flushFolder(folder || "/");
  } else {
    files.remove(path);
    if (isFlushed) files.flushFolder(folder || "/");
  }
}

/** What lies in a folder of the real file system, as an image of one that has it at its top. */
function imageOfFolder(folder: string): DiskImage {
  const files = readdirSync(folder)
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => [`/${name}`, new Uint8Array(readFileSync(join(folder, name)))] as const);
  return new Map<string, Uint8Array | null>([["/", null], ...files]);
}

/** Whether a power cut in the middle of some work left on the real disk what the simulation says it may. */
export async function checkAgainstKernel(disk: LoopDisk, seed: number): Promise<{ isKnown: boolean; states: number }> {
  const folder = join(disk.mountPoint, `w${seed}`);
  mkdirSync(folder);
  nodeFiles.flushFolder(folder);
  nodeFiles.flushFolder(disk.mountPoint);
  const simulated = createSimulatedDisk();
  await randomWork(
    [
      [simulated.files, ""],
      [nodeFiles, folder],
    ],
    createRandom(seed),
  );
  disk.cutPower();
  const left = imageDigest(imageOfFolder(folder));
  const states = new Set<string>();
  for (const image of crashStates(simulated.moment(), { cutEveryBytes: 1 })) states.add(imageDigest(image));
  return { isKnown: states.has(left), states: states.size };
}
