import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const gibibyte = 1024 ** 3;
/** What has to be free: place for the files, and memory for them beside the processes of the tests. */
const leastFree = { placeBytes: 4 * gibibyte, memoryBytes: 8 * gibibyte } as const;

const variable = "THROUGHLINE_RUN_FOLDER";
const folderOfRun = /^throughline-(\d+)$/;

/** Returns whether files in a folder lie in memory, there is room for them, and a library can be loaded from there. */
export function isRoomyMemory(folder: string): boolean {
  if (process.platform !== "linux" || !existsSync(folder)) return false;
  const mount = readFileSync("/proc/mounts", "utf8")
    .split("\n")
    .find((line) => line.split(" ")[1] === folder);
  if (mount === undefined || mount.includes("noexec")) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= leastFree.placeBytes && process.availableMemory() >= leastFree.memoryBytes;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user is there, too.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** What belongs to another user cannot be removed. */
function isOurs(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.();
}

/** Removes the folders of runs that were killed: the name of each has the process of its run. */
export function removeDeadFolders(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [folder, pid] = [join(parent, name), Number(folderOfRun.exec(name)?.[1])];
    if (pid > 0 && !isRunning(pid) && isOurs(folder)) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The folder in memory that the test run has made, for it and for the processes that it starts; null without one. */
export function runFolder(): string | null {
  return process.env[variable] ?? null;
}

/**
 * Makes the folder of this run, which goes with the process. Its name is short, because sockets lie below it. A server
 * that a test starts as another user passes through.
 */
export function makeRunFolder(parent: string): string {
  const folder = join(parent, `throughline-${process.pid}`);
  // Each project of vitest reads the configuration again, in the same process.
  if (runFolder() === folder) return folder;
  removeDeadFolders(parent);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o711 });
  process.env[variable] = folder;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
