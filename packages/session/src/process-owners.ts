import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import process from "node:process";
import type { TurnOwners } from "./turn-owners.ts";

/** Distinguishes a process from every other one: a process id alone is reused. */
interface ProcessName {
  /** The host's name; on Linux with the boot and the process namespace, inside of which a process id means something. */
  readonly place: string;
  readonly pid: number;
  /** Clock ticks since the boot; 0 where it is not told. */
  readonly startedTicks: number;
}

const pattern = /^pid (\d+) on (\S+) started (\d+)$/;

let self: string | null = null;

/** Owners by process, from /proc on Linux. Elsewhere no owner counts as gone, and its lease decides. */
export function processOwners(): TurnOwners {
  self ??= nameOf({ place: placeOf(), pid: process.pid, startedTicks: readStart(process.pid)?.startedTicks ?? 0 });
  const own = self;
  return {
    self: own,
    stateOf: (owner) => {
      if (owner === own) return "self";
      const other = parseName(owner);
      // On another host, after another boot or in another container nothing can be said: the lease decides.
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
  // A zombie still has its id; it will not write again.
  return now.startedTicks !== startedTicks || now.state === "Z" || now.state === "X";
}

/** From /proc/<pid>/stat; the command before the fields may hold anything, closing brackets too. */
function readStart(pid: number): { readonly state: string; readonly startedTicks: number } | null {
  const stat = readOr("", () => readFileSync(`/proc/${pid}/stat`, "utf8"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const startedTicks = Number(fields[19]);
  return fields[0] === undefined || !Number.isSafeInteger(startedTicks) ? null : { state: fields[0], startedTicks };
}

/** Systems without /proc, and containers that hide it, tell nothing. */
function readOr(fallback: string, read: () => string): string {
  try {
    return read();
  } catch {
    return fallback;
  }
}
