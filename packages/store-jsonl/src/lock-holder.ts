import { readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface LockHolder {
  readonly pid: number;
  /** As the kernel names it: "running", "stopped", "unknown". */
  readonly state: string;
  /** How long ago the process began; null where the kernel does not tell. */
  readonly ageMs: number | null;
}

/** Who holds the lock file, as Linux tells it; null when it does not. Never opens the lock file itself. */
export function describeLockHolder(files: Files, path: string): LockHolder | null {
  const inode = files.facts(path)?.identity.split(":")[1];
  const table = readText(files, "/proc/locks");
  const line = table.split("\n").find((text) => text.includes("WRITE") && text.includes(`:${inode} `));
  const pid = Number(/WRITE\s+(\d+)\s/.exec(line ?? "")?.[1] ?? Number.NaN);
  return Number.isInteger(pid) && pid > 0 ? describeProcess(files, pid) : null;
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
