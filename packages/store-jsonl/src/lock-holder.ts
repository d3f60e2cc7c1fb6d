import { readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface LockHolder {
  readonly pid: number;
  /** Is one of "running", "stopped" and "unknown". */
  readonly state: string;
  /** States the age of the process; null when the kernel does not report it. */
  readonly ageMs: number | null;
}

/**
 * Finds the holder of the lock file from Linux's /proc; null when it is not reported. It never opens the lock file,
 * because closing it would drop this process's locks.
 */
export function describeLockHolder(files: Files, path: string): LockHolder | null {
  const [device, inode] = files.facts(path)?.identity.split(":") ?? [];
  if (device === undefined || inode === undefined) return null;
  // The device must match too, because inode numbers repeat across file systems.
  const wanted = [nameOfDevice(BigInt(device)), mountedDevice(files, path)].map((name) => `${name}:${inode}`);
  for (const line of readText(files, "/proc/locks").split("\n")) {
    const [, pid, major = "", minor = "", heldInode] =
      /WRITE\s+(\d+)\s+([0-9a-f]+):([0-9a-f]+):(\d+)\s/.exec(line) ?? [];
    const held = `${Number.parseInt(major, 16)}:${Number.parseInt(minor, 16)}:${heldInode}`;
    // A holder in another container has no process id here, so nothing can be reported about it.
    if (wanted.includes(held) && Number(pid) > 0) return describeProcess(files, Number(pid));
  }
  return null;
}

function nameOfDevice(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n);
  const minor = (device & 0xffn) | ((device >> 12n) & 0xffffff00n);
  return `${major}:${minor}`;
}

/**
 * Returns the device of the mount that a path is on; null when the kernel does not report it. On btrfs a file's own
 * device is that of the subvolume, and the kernel's lock table uses the mount's.
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
    // The later of two mounts on one folder covers the earlier, so it wins.
    if (isAbove && folder.length >= (found?.length ?? 0)) found = { device, length: folder.length };
  }
  return found?.device ?? null;
}

/** The kernel reports process times in hundredths of a second, independent of its own clock rate. */
const ticksPerSecond = 100;

export function describeProcess(files: Files, pid: number): LockHolder {
  const stat = readText(files, `/proc/${pid}/stat`);
  const [letter, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (stat === "" || letter === undefined) return { pid, state: "unknown", ageMs: null };
  const upSeconds = Number(readText(files, "/proc/uptime").split(" ")[0]);
  const ageMs = (upSeconds - Number(fields[18]) / ticksPerSecond) * 1000;
  const state = letter === "T" || letter === "t" ? "stopped" : "running";
  return { pid, state, ageMs: Number.isFinite(ageMs) ? Math.max(0, Math.round(ageMs)) : null };
}

/** Ignores errors: the text only explains a lock error, which is complete without it. */
function readText(files: Files, path: string): string {
  try {
    return Buffer.from(readWhole(files, path) ?? []).toString();
  } catch {
    return "";
  }
}
