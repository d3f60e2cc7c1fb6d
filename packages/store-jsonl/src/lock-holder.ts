import { readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface LockHolder {
  readonly pid: number;
  /** As the kernel names it: "running", "stopped", "unknown". */
  readonly state: string;
  /** How long ago the process began; null where the kernel does not tell. */
  readonly ageMs: number | null;
}

/** Who holds the lock file, as Linux reports it; null if it does not. Never opens the lock file itself. */
export function describeLockHolder(files: Files, path: string): LockHolder | null {
  const [device, inode] = files.facts(path)?.identity.split(":") ?? [];
  if (device === undefined || inode === undefined) return null;
  // Inodes are counted anew on each file system: the first ones of two small ones are the same.
  const wanted = [nameOfDevice(BigInt(device)), mountedDevice(files, path)].map((name) => `${name}:${inode}`);
  for (const line of readText(files, "/proc/locks").split("\n")) {
    const [, pid, major = "", minor = "", heldInode] =
      /WRITE\s+(\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s/.exec(line) ?? [];
    const held = `${Number.parseInt(major, 16)}:${Number.parseInt(minor, 16)}:${heldInode}`;
    // A holder in another container has no number here.
    if (wanted.includes(held) && Number(pid) > 0) return describeProcess(files, Number(pid));
  }
  return null;
}

/** The device of a file's facts, as the kernel writes it: "major:minor". */
function nameOfDevice(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}

/**
 * The device of the mount a path lies on; null when the kernel does not tell. On btrfs it is another than the one in a
 * file's facts, which there is the subvolume's, and it is the one that the table of locks goes by.
 */
function mountedDevice(files: Files, path: string): string | null {
  let found: { readonly device: string; readonly length: number } | null = null;
  for (const line of readText(files, "/proc/self/mountinfo").split("\n")) {
    const [, , device, , mountPoint] = line.split(" ");
    if (device === undefined || mountPoint === undefined) continue;
    const folder = mountPoint.replaceAll(/\\([0-7]{3})/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 8)),
    );
    const isAbove = folder === "/" || path === folder || path.startsWith(`${folder}/`);
    // Of two mounts on one folder the later covers the earlier.
    if (isAbove && folder.length >= (found?.length ?? 0)) found = { device, length: folder.length };
  }
  return found?.device ?? null;
}

/** The kernel counts in hundredths of a second here, whatever its own clock does. */
const ticksPerSecond = 100;

/** A process as the kernel describes it. */
export function describeProcess(files: Files, pid: number): LockHolder {
  const stat = readText(files, `/proc/${pid}/stat`);
  const [letter, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (stat === "" || letter === undefined) return { pid, state: "unknown", ageMs: null };
  const upSeconds = Number(readText(files, "/proc/uptime").split(" ")[0]);
  const ageMs = (upSeconds - Number(fields[18]) / ticksPerSecond) * 1000;
  const state = letter === "T" || letter === "t" ? "stopped" : "running";
  return { pid, state, ageMs: Number.isFinite(ageMs) ? Math.max(0, Math.round(ageMs)) : null };
}

/** Only an explanation is looked for here: where it cannot be read there is none, and the lock error stands by itself. */
function readText(files: Files, path: string): string {
  try {
    return Buffer.from(readWhole(files, path) ?? []).toString();
  } catch {
    return "";
  }
}
