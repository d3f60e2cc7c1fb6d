import { pathArgumentNames, writeToolNames } from "@throughline/core/internal";
import { flushPatch, readFlushState, type FlushState } from "./flush-state.ts";
import type { SessionEntry } from "@throughline/core";
import { rearmThreshold } from "@throughline/tokens/internal";
import type { MemoryFlushSettings } from "./flush-settings.ts";
import { flushSteps } from "./flush-steps.ts";

/** A call of a tool in the turn in which the agent was asked. */
export interface ObservedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** A write that failed wrote nothing. @default false */
  readonly isError?: boolean;
}

export interface FlushObservation {
  /** A file under the memory folder was written. */
  readonly flushActioned: boolean;
  /** Any file was written. */
  readonly flushWrote: boolean;
}

/** What the agent did after it was asked. Observed for whoever wants to know; nothing is forced. */
export function observeFlush(calls: readonly ObservedCall[], settings: MemoryFlushSettings = {}): FlushObservation {
  const tools = new Set((settings.writeTools ?? writeToolNames).map((name) => name.toLowerCase()));
  const writes = calls.filter(({ name, isError }) => tools.has(name.toLowerCase()) && isError !== true);
  const paths = writes.flatMap(({ arguments: args }) => pathArgumentNames.map((key) => args[key]));
  return {
    flushActioned: paths.some((path) => typeof path === "string" && isMemoryPath(path, settings)),
    flushWrote: writes.length > 0,
  };
}

/** Whether a path lies under the memory folder, however it is written; `memory/../x` does not. */
export function isMemoryPath(path: string, settings: MemoryFlushSettings = {}): boolean {
  const folder = namesOf(settings.memoryFolder ?? "memory");
  const names = namesOf(path);
  if (names === null || folder === null || folder.length === 0) return false;
  const isAbsolute = /^(?:[/\\]|[A-Za-z]:[/\\])/.test(path);
  const root = settings.workspaceRoot === undefined ? null : namesOf(settings.workspaceRoot);
  const below = (start: number): boolean =>
    folder.every((name, index) => names[start + index] === name) && names.length > start + folder.length;
  if (!isAbsolute) return below(0);
  if (root !== null) return root.every((name, index) => names[index] === name) && below(root.length);
  return names.some((_, start) => below(start));
}

/** The names of a path without `.` and `..`; null when it leads out of where it begins. */
function namesOf(path: string): readonly string[] | null {
  const names: string[] = [];
  for (const name of path.split(/[/\\]+/)) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return null;
  }
  return names;
}

/**
 * The patch of the entry when the turn in which the agent was asked is over: what it did, or, when the call failed
 * before it could answer, that it may be asked again. Null when it was not asked.
 */
export function endFlush(
  entry: SessionEntry,
  ended: { readonly calls: readonly ObservedCall[]; readonly failed: boolean },
  settings: MemoryFlushSettings = {},
): { readonly patch: Readonly<Record<string, unknown>>; readonly observation: FlushObservation | null } | null {
  const state = readFlushState(entry);
  if (state.phase !== "asked") return null;
  const step = ended.failed ? "failed" : "turn-ended";
  const phase = flushSteps[state.phase][step].to;
  if (ended.failed) {
    const { askedPercent } = state;
    const thresholds = askedPercent === null ? state.thresholds : rearmThreshold(state.thresholds, askedPercent);
    const again: FlushState = { ...state, phase, thresholds, askedPercent: null };
    return { patch: flushPatch(again), observation: null };
  }
  const observation = observeFlush(ended.calls, settings);
  return { patch: flushPatch({ ...state, phase, ...observation }), observation };
}
