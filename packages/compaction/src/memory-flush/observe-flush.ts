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

/** A call of a tool in the turn in which the agent was asked. */
export interface ObservedCall {
  /** The name of the tool; case does not matter. */
  readonly name: string;
  /** The arguments of the call; its path arguments say which file was written. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** A write that failed wrote nothing. @default false */
  readonly isError?: boolean;
}

/** How the turn ended in which the agent was asked. */
export interface EndedFlush {
  /** The tool calls of the turn, in their order. */
  readonly calls: readonly ObservedCall[];
  /** The call of the model failed before the agent could answer. */
  readonly failed: boolean;
}

/** What a flush did, read from its records. */
export interface FlushObservation {
  /** A file under the memory folder was written. */
  readonly flushActioned: boolean;
  /** Any file was written. */
  readonly flushWrote: boolean;
}

const { any, flag, listOf, objectOf, required, text } = optionKinds;

const calls: OptionKind = listOf(
  objectOf<ObservedCall>({ name: required(text), arguments: required(any), isError: flag }),
);

/** The types of the input of `endFlush` about a turn. */
export const endedFlushTable: OptionTable<EndedFlush> = { calls: required(calls), failed: required(flag) };

/**
 * Whether the agent wrote files after it was asked. It only observes.
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
 * The patch of the entry after the turn in which the agent was asked. It states what the agent did, or that it may be
 * asked again, because the call failed before an answer. Null if it was not asked.
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
