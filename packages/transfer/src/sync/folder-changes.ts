import { dirname, join } from "node:path";
import type { Clock } from "@throughline/core";
import { fileFacts } from "../node/source-files.ts";
import { changedName, FolderWatch } from "./folder-watch.ts";
import type { ChangedFolders, ChangedNames, KnownFiles } from "./known-files.ts";

/** A program writes a line in several steps, so a pass waits shortly for the last one. */
const settleMs = 150;
/** A pass begins at the latest this long after the first change, while a program keeps writing. */
const mostSettleMs = 1000;
/** A pass that took long is followed by a pause of four times as long. */
const restFactor = 4;
const pollMs = 10_000;
const recentMs = 24 * 60 * 60 * 1000;
const searchEveryMs = 10 * 60 * 1000;

/**
 * Finds out in which folders something changed, by the events of the system. A folder without events is checked every
 * ten seconds, with its files of the last day. Every ten minutes all places are searched.
 */
export class FolderChanges implements Disposable {
  readonly #clock: Clock;
  #watch: FolderWatch | null = null;
  #changed = new Map<string, Set<string> | "any">();
  /** Holds the folders that were listed, and files that are places by themselves. */
  readonly #folders = new Set<string>();
  readonly #files = new Set<string>();
  #bell: (() => void) | null = null;
  #firstAtMs = 0;
  #lastAtMs = 0;
  #restMs = 0;
  #searchedAtMs = 0;
  #polledAtMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts to watch what `see` receives. */
  begin(): void {
    this.#watch ??= new FolderWatch((folder, name) => this.#note(folder, name));
    this.#searchedAtMs = this.#polledAtMs = this.#clock.nowMs();
  }

  /** Receives a folder before it is listed, or a place that is a file, so that no change falls between the list and the watch. */
  see(path: string): void {
    if (this.#watch === null) return;
    const isFile = fileFacts(path)?.isFolder === false;
    const folder = isFile ? dirname(path) : path;
    if (!isFile) this.#folders.add(folder);
    else this.#files.add(path);
    this.#watch.add(folder);
  }

  /** Receives how long the last pass took. */
  tookMs(ms: number): void {
    this.#restMs = ms * restFactor;
  }

  /** Waits for changes, and returns their folders; null when all places are to be searched. */
  async next(known: KnownFiles, signal: AbortSignal): Promise<ChangedFolders | null> {
    for (;;) {
      await this.#pause(this.#restMs, signal);
      this.#restMs = 0;
      if (this.#changed.size === 0) await this.#wait(signal);
      if (signal.aborted) return new Map();
      const nowMs = this.#clock.nowMs();
      if (this.#hasPoll && Math.abs(nowMs - this.#polledAtMs) >= pollMs) this.#poll(known, nowMs);
      if (Math.abs(nowMs - this.#searchedAtMs) >= searchEveryMs) {
        this.#searchedAtMs = nowMs;
        this.#changed = new Map();
        this.#watch?.retry();
        return null;
      }
      if (this.#changed.size > 0) return this.#settled(known, signal);
    }
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }

  #note(folder: string, name: string | null): void {
    // The other files beside a place that is a file are not of interest.
    const isOfFile =
      name === null || this.#files.has(join(folder, name)) || this.#files.has(join(folder, changedName(name)));
    if (!this.#folders.has(folder) && !isOfFile) return;
    const nowMs = this.#clock.nowMs();
    if (this.#changed.size === 0) this.#firstAtMs = nowMs;
    this.#lastAtMs = nowMs;
    const names = this.#changed.get(folder);
    if (name === null || names === "any") this.#changed.set(folder, "any");
    else if (names === undefined) this.#changed.set(folder, new Set([name, changedName(name)]));
    else names.add(name).add(changedName(name));
    this.#bell?.();
  }

  /** Waits until the writers pause, then returns what they changed. */
  async #settled(known: KnownFiles, signal: AbortSignal): Promise<ChangedFolders> {
    for (;;) {
      const nowMs = this.#clock.nowMs();
      const untilMs = Math.min(this.#lastAtMs + settleMs, this.#firstAtMs + mostSettleMs);
      // A clock that was set back must not make the wait longer.
      if (untilMs <= nowMs || untilMs > nowMs + mostSettleMs || signal.aborted) break;
      await this.#pause(untilMs - nowMs, signal);
    }
    const changed = this.#changed;
    this.#changed = new Map();
    for (const [folder, names] of changed) this.#forgetReplaced(folder, names, known);
    return changed;
  }

  /** A folder that was removed or replaced needs a new watch, and all of it is listed again. */
  #forgetReplaced(folder: string, names: ChangedNames, known: KnownFiles): void {
    if (names === "any") return;
    for (const name of names) {
      const path = join(folder, name);
      if (!known.folders.has(path)) continue;
      known.forgetFolder(path);
      this.#watch?.remove(path);
    }
  }

  get #hasPoll(): boolean {
    return (this.#watch?.unwatched.size ?? 0) > 0;
  }

  /** Resolves at the first event, or when a look or a search is due. */
  async #wait(signal: AbortSignal): Promise<void> {
    const nowMs = this.#clock.nowMs();
    const dueMs = this.#searchedAtMs + searchEveryMs - nowMs;
    const pollDueMs = this.#hasPoll ? this.#polledAtMs + pollMs - nowMs : searchEveryMs;
    const rung = new AbortController();
    this.#bell = () => rung.abort();
    // A clock that was set back must not make the wait longer.
    const ms = Math.min(dueMs, pollDueMs, this.#hasPoll ? pollMs : searchEveryMs);
    await this.#pause(ms, AbortSignal.any([signal, rung.signal]));
    this.#bell = null;
  }

  #poll(known: KnownFiles, nowMs: number): void {
    this.#polledAtMs = nowMs;
    const unwatched = this.#watch?.unwatched ?? new Map<string, number>();
    for (const [folder, seenMs] of unwatched) {
      const modifiedMs = fileFacts(folder)?.modifiedMs ?? 0;
      if (modifiedMs === seenMs) continue;
      unwatched.set(folder, modifiedMs);
      this.#note(folder, null);
    }
    const sinceMs = nowMs - recentMs;
    for (const [path, modifiedMs] of known.files()) {
      const folder = dirname(path);
      if (modifiedMs >= sinceMs && unwatched.has(folder)) this.#note(folder, path.slice(folder.length + 1));
    }
  }

  /** Resolves after the time, or when the signal aborts. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (ms <= 0 || signal.aborted) return;
    await this.#clock.sleep(ms, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}
