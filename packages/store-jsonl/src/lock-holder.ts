import { readWhole } from "./file-work.ts";
import type { Files } from "./files.ts";

export interface LockHolder {
  readonly pid: number;
  /** As the kernel names it: "running", "stopped", "unknown". */
  readonly state: string;
}

/** Who holds the lock file, as Linux tells it; null when it does not. Never opens the lock file itself. */
export function describeLockHolder(files: Files, path: string): LockHolder | null {
  const inode = files.facts(path)?.identity.split(":")[1];
  const table = readText(files, "/proc/locks");
  const line = table.split("\n").find((text) => text.includes("WRITE") && text.includes(`:${inode} `));
  const pid = Number(/WRITE\s+(\d+)\s/.exec(line ?? "")?.[1] ?? Number.NaN);
  if (!Number.isInteger(pid) || pid <= 0) return null;
  const letter = /\)\s(\S)/.exec(readText(files, `/proc/${pid}/stat`))?.[1];
  const state = letter === undefined ? "unknown" : letter === "T" || letter === "t" ? "stopped" : "running";
  return { pid, state };
}

/** Only an explanation is looked for here: where it cannot be read there is none, and the lock error stands by itself. */
function readText(files: Files, path: string): string {
  try {
    return Buffer.from(readWhole(files, path) ?? []).toString();
  } catch {
    return "";
  }
}
