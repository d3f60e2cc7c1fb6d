import {
  assertArgument,
  assertKnownOptions,
  pathArgumentNames,
  writeToolNames,
  optionKinds,
  type OptionKind,
  type OptionTable,
} from "@throughline/core/internal";
import { flushPatch, readFlushState, type FlushState } from "./flush-state.ts";
import type { SessionEntry } from "@throughline/core";
import { rearmThreshold } from "@throughline/tokens/internal";
import { flushSettingsTable, type MemoryFlushSettings } from "./flush-settings.ts";
import { flushSteps } from "./flush-steps.ts";

/** Describes a tool call in the turn in which the agent was asked. */
export interface ObservedCall {
  /** Holds the name of the tool; case does not matter. */
  readonly name: string;
  /** Holds the arguments of the call; its path arguments name the file that was written. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Marks a failed call, which wrote no file. @default false */
  readonly isError?: boolean;
}

/** States how the turn ended in which the agent was asked. */
export interface EndedFlush {
  /** Lists the tool calls of the turn in order. */
  readonly calls: readonly ObservedCall[];
  /** Is true when the model call failed before the agent could answer. */
  readonly failed: boolean;
}

/** States what a flush did, read from its records. */
export interface FlushObservation {
  /** Is true when the agent wrote a file under the memory folder. */
  readonly flushActioned: boolean;
  /** Is true when the agent wrote any file. */
  readonly flushWrote: boolean;
}

const { any, flag, listOf, objectOf, required, text } = optionKinds;

const calls: OptionKind = listOf(
  objectOf<ObservedCall>({ name: required(text), arguments: required(any), isError: flag }),
);

export const endedFlushTable: OptionTable<EndedFlush> = { calls: required(calls), failed: required(flag) };

/**
 * Observes whether the agent wrote files after it was asked. It changes nothing.
 *
 * @throws {ThroughlineError} INPUT_INVALID for calls that are none, and settings that are not known
 */
export function observeFlush(observed: readonly ObservedCall[], settings: MemoryFlushSettings = {}): FlushObservation {
  assertKnownOptions<MemoryFlushSettings>("observeFlush", settings, flushSettingsTable, "settings");
  assertArgument("observeFlush", "calls", observed, calls);
  const tools = new Set((settings.writeTools ?? writeToolNames).map((name) => name.toLowerCase()));
  const writes = observed.filter(({ name, isError }) => tools.has(name.toLowerCase()) && isError !== true);
  const paths = writes.flatMap(({ arguments: args }) => pathArgumentNames.map((key) => args[key]));
  return {
    flushActioned: paths.some((path) => typeof path === "string" && isMemoryPath(path, settings)),
    flushWrote: writes.length > 0,
  };
}

/** Checks whether a path lies under the memory folder, in any notation; `memory/../x` does not. */
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

/**
 * Splits a path into names without `.` and `..`. Returns null when the path leaves its start, because it then lies
 * outside every folder.
 */
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
 * Builds the patch of the entry after the turn in which the agent was asked. The patch records the agent's writes.
 * After a failed call it lets the threshold fire again. Returns null if the agent was not asked.
 *
 * @throws {ThroughlineError} INPUT_INVALID
 */
export function endFlush(
  entry: SessionEntry,
  ended: EndedFlush,
  settings: MemoryFlushSettings = {},
): { readonly patch: Readonly<Record<string, unknown>>; readonly observation: FlushObservation | null } | null {
  assertKnownOptions<MemoryFlushSettings>("endFlush", settings, flushSettingsTable, "settings");
  assertKnownOptions<EndedFlush>("endFlush", ended, endedFlushTable, "ended");
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
