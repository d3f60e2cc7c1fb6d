import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import process from "node:process";

/** Names this process as a holder of turns, and judges the names of other processes. */
export interface TurnOwners {
  /** Identifies this process, for people and for `stateOf`; at most 200 characters. */
  readonly self: string;
  /** Returns `gone` only when it is certain that the owner cannot write any more. */
  stateOf(owner: string): "self" | "gone" | "unknown";
}

/** Identifies one process. The process id alone is not enough, because the system reuses it. */
interface ProcessName {
  /**
   * Holds the host name. On Linux it also holds the boot id and the process namespace, because a process id is unique
   * only within these.
   */
  readonly place: string;
  readonly pid: number;
  /** Counts clock ticks since the boot; 0 when the system does not state them. */
  readonly startedTicks: number;
}

const pattern = /^pid (\d+) on (\S+) started (\d+)$/;

let self: string | null = null;

/** Reads the state of owners from /proc on Linux. On other systems no owner counts as gone, and its lease decides. */
export function processOwners(): TurnOwners {
  self ??= nameOf({ place: placeOf(), pid: process.pid, startedTicks: readStart(process.pid)?.startedTicks ?? 0 });
  const own = self;
  return {
    self: own,
    stateOf: (owner) => {
      if (owner === own) return "self";
      const other = parseName(owner);
      // Nothing is known about a process on another host, of another boot or in another container. Its lease decides.
      if (other === null || other.place !== placeOf() || other.startedTicks === 0) return "unknown";
      return isGone(other) ? "gone" : "unknown";
    },
  };
}

function nameOf({ place, pid, startedTicks }: ProcessName): string {
  return `pid ${pid} on ${place} started ${startedTicks}`;
}

function parseName(owner: string): ProcessName | null {
  const [, pid, place, startedTicks] = pattern.exec(owner) ?? [];
  return place === undefined ? null : { place, pid: Number(pid), startedTicks: Number(startedTicks) };
}

let place: string | null = null;

function placeOf(): string {
  place ??= [
    hostname()
      .replace(/[^\w.-]/g, "_")
      .slice(0, 64),
    readOr("", () => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").slice(0, 8)),
    readOr("", () => readlinkSync("/proc/self/ns/pid").replace(/\D/g, "")),
  ].join("/");
  return place;
}

function isGone({ pid, startedTicks }: ProcessName): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
  const now = readStart(pid);
  if (now === null) return false;
  // A zombie still has its process id, but it cannot write any more.
  return now.startedTicks !== startedTicks || now.state === "Z" || now.state === "X";
}

/**
 * The command name in /proc/<pid>/stat may contain any character, even `)`. The fields are therefore read after the
 * last `)`.
 */
function readStart(pid: number): { readonly state: string; readonly startedTicks: number } | null {
  const stat = readOr("", () => readFileSync(`/proc/${pid}/stat`, "utf8"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const startedTicks = Number(fields[19]);
  return fields[0] === undefined || !Number.isSafeInteger(startedTicks) ? null : { state: fields[0], startedTicks };
}

/** Some systems have no /proc, and some containers hide it. Nothing is known then. */
function readOr(fallback: string, read: () => string): string {
  try {
    return read();
  } catch {
    return fallback;
  }
}
