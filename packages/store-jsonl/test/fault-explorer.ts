import { ThroughlineError } from "@throughline/core";
import { crashStates } from "./crash-states.ts";
import {
  observe,
  observedText,
  simulatedStore,
  textOf,
  withoutPartials,
  type Observation,
  type Step,
} from "./crash-explorer.ts";
import { createSimulatedDisk, systemError, type DiskImage, type SimulatedDisk } from "./simulated-disk.ts";

/** A call that fails: the how manyth of all that can, and how. */
export interface Fault {
  readonly place: number;
  readonly code: "EIO" | "ENOSPC";
}

const fallible: ReadonlySet<string> = new Set([
  "open",
  "write",
  "writeAt",
  "truncate",
  "flush",
  "flushNow",
  "flushFolder",
  "flushFolderLater",
  "makeFolder",
  "rename",
  "remove",
]);

/** How many calls of a life can fail. */
export async function countFallible(steps: readonly Step[]): Promise<number> {
  const disk = createSimulatedDisk();
  const fault = install(disk, null);
  const store = simulatedStore(disk);
  for (const step of steps) await step.run(store);
  await store.close();
  return fault.calls();
}

/**
 * Lives through the steps with one call failing, each step that fails being done again. Says what is wrong: an error
 * that is none of ours, a "not-applied" that was, an acknowledged change that a power cut right afterwards undoes. The
 * steps before the failure are those of every life; what a power cut makes of them is the crash explorer's.
 */
export async function liveWithFault(steps: readonly Step[], fault: Fault): Promise<readonly string[]> {
  const disk = createSimulatedDisk();
  const installed = install(disk, fault);
  const store = simulatedStore(disk);
  const problems: string[] = [];
  let image = disk.image();
  const doubtful = new Set<string>();
  for (const step of steps) {
    const outcome = await attempt(step, store);
    const name = `${fault.code} at call ${fault.place} (${installed.failed() ?? "not yet"}), ${step.name}`;
    if (outcome !== "done") {
      const seen = async (of: DiskImage): Promise<string> =>
        step.losesPartials === true ? textOf(withoutPartials(await observe(of))) : observedText(of);
      const [before, after] = [await seen(image), await seen(disk.image())];
      if (outcome !== "not-applied" && outcome !== "unknown") problems.push(`${name}: ${outcome}`);
      else if (outcome === "not-applied" && step.isParallel !== true && after !== before)
        problems.push(`${name}: not applied, but ${after}\n  instead of ${before}`);
      if (after === before) {
        const again = await attempt(step, store);
        if (again !== "done") problems.push(`${name}, again: ${again}`);
      } else {
        for (const file of step.files) doubtful.add(file);
        image = disk.image();
        continue;
      }
    }
    image = disk.image();
    for (const file of step.files)
      if (step.isVolatile === true) doubtful.add(file);
      else doubtful.delete(file);
    if (installed.failed() !== null) problems.push(...(await lostInPowerCut(name, disk, doubtful)));
  }
  await store.close();
  return problems;
}

/** Of the files in doubt anything may be there; of the others everything must. */
async function lostInPowerCut(
  name: string,
  disk: SimulatedDisk,
  doubtful: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (doubtful.has("entries")) return [];
  const certain = (all: Observation): string => textOf(all.filter(({ sessionId }) => !doubtful.has(sessionId)));
  const wanted = certain(await observe(disk.image()));
  for (const image of crashStates(disk.moment(), { cutEveryBytes: 100_000 })) {
    const found = await observe(image);
    if (certain(found) !== wanted) return [`${name}, power cut: ${textOf(found)}\n  instead of ${wanted}`];
  }
  return [];
}

async function attempt(step: Step, store: Parameters<Step["run"]>[0]): Promise<string> {
  try {
    await step.run(store);
    return "done";
  } catch (error) {
    return ThroughlineError.isInstance(error) ? String(error.outcome) : `not ours: ${String(error)}`;
  }
}

function install(disk: SimulatedDisk, fault: Fault | null): { calls(): number; failed(): string | null } {
  let calls = 0;
  let failed: string | null = null;
  let isFull = false;
  disk.onCall = (call, path) => {
    if (!fallible.has(call)) return undefined;
    if (isFull && (call === "write" || call === "writeAt")) {
      isFull = false;
      throw systemError("ENOSPC");
    }
    calls++;
    if (fault === null || calls !== fault.place) return undefined;
    failed = `${call} ${path}`;
    if (fault.code === "EIO") throw systemError("EIO");
    if (call === "open" || call === "makeFolder" || call === "rename") throw systemError("ENOSPC");
    // A disk that fills up takes some of the bytes, and says so with the next call.
    isFull = call === "write" || call === "writeAt";
    return isFull ? 7 : undefined;
  };
  return { calls: () => calls, failed: () => failed };
}
