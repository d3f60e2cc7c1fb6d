import { createHash } from "node:crypto";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions, type LockPort } from "@throughline/store-jsonl";
import type { Files } from "../src/files.ts";
import { crashStates, imageDigest, type CrashOptions } from "./crash-states.ts";
import { createSimulatedDisk, type DiskImage, type DiskMoment, type SimulatedDisk } from "./simulated-disk.ts";

/** One thing done to a store. */
export interface Step {
  readonly name: string;
  run(store: SessionStore): Promise<unknown>;
  /** Not acknowledged as durable: a power cut may take it back until a later step is. */
  readonly isVolatile?: boolean;
  /** Several appends at once: what may be there between none and all of them. */
  readonly isParallel?: boolean;
  /** It takes open replies away before its commit: one that is gone while nothing else changed is no half change. */
  readonly losesPartials?: boolean;
  /** The files it writes to: one it flushed is in no doubt any more, one of a volatile step is. */
  readonly files: readonly string[];
}

export interface Exploration extends CrashOptions {
  /** Of every so many states also the recovery is crashed. 0: of none. */
  readonly recoverEvery: number;
  /** Each step is run by a store of its own, as a command line does, which writes what is derived when it is closed. */
  readonly isReopened?: boolean;
  /** Of each moment at most so many states are opened, spread evenly over its cuts. @default all */
  readonly statesPerMoment?: number;
  /** The same of each moment of a recovery. @default all */
  readonly statesPerRecovery?: number;
  /** Only every so manyth moment is looked at, from this one on, so that runs can share the work. @default all */
  readonly part?: { readonly index: number; readonly count: number };
}

export interface ExplorationResult {
  /** Different states that were opened and found right. */
  readonly states: number;
  readonly moments: number;
  readonly problems: readonly string[];
}

/** What a store answers, as one comparable value. */
export type Observation = readonly SessionObservation[];

interface SessionObservation {
  readonly sessionId: string;
  readonly rest: string;
  readonly records: readonly string[];
}

const createdAtMs = 1_767_323_045_006;
const probeText = "after the crash";

/**
 * A store on a simulated disk, with everything else fixed: the same disk gives the same answers, and the same work the
 * same bytes. Stores that write to one disk after each other are called differently, or their ids would meet.
 */
export function simulatedStore(
  disk: SimulatedDisk,
  { called = "r", ...options }: Partial<JsonlStoreOptions> & { readonly called?: string } = {},
): SessionStore {
  let count = 0;
  let drawn = Buffer.from(called).readUInt8(0) << 16;
  let nowMs = createdAtMs;
  const locks: LockPort = {
    name: "simulated",
    isKernels: false,
    open: (_files, path) => ({
      path,
      identity: null,
      tryLock: () => true,
      unlock: () => undefined,
      close: () => undefined,
    }),
  };
  const clock = { nowMs: () => nowMs++, sleep: () => Promise.resolve() };
  return createJsonlStore({
    root: "/store",
    files: withoutOpenclawLocks(disk.files),
    locks,
    clock,
    ids: { next: () => `${called}-${++count}` },
    random: { uint32: () => ++drawn, uuid: () => `${called}-${++drawn}` },
    sessionsJson: true,
    // By the clock on the wall a slow machine would see other moments than a fast one, and ten times as many states.
    derivedDelayMs: 2 ** 31 - 1,
    ...options,
  } as JsonlStoreOptions);
}

/** OpenClaw's lock files are another test's: a process that opens the disk after a power cut is not the one that made them. */
function withoutOpenclawLocks(files: Files): Files {
  const isLock = (path: string): boolean => path.endsWith(".lock");
  const handles = new Set<number>();
  return {
    ...files,
    open(path, mode) {
      if (!isLock(path)) return files.open(path, mode);
      const handle = -1 - handles.size;
      handles.add(handle);
      return handle;
    },
    close: (handle) => void (handles.delete(handle) || files.close(handle)),
    write: (handle, bytes) => (handles.has(handle) ? bytes.length : files.write(handle, bytes)),
    factsOf: (handle) =>
      handles.has(handle)
        ? { identity: `lock:${handle}`, sizeBytes: 0, modifiedNs: 0n, kind: "file", names: 1, isPrivate: true }
        : files.factsOf(handle),
    facts: (path) => (isLock(path) ? null : files.facts(path)),
    whereIs: (handle) => (handles.has(handle) ? null : files.whereIs(handle)),
  };
}

/** Runs steps on a simulated disk and opens the store in every state that a power cut could leave at any moment of it. */
export async function exploreCrashes(steps: readonly Step[], options: Exploration): Promise<ExplorationResult> {
  const disk = createSimulatedDisk();
  let store = simulatedStore(disk);
  const check = new CrashCheck(options);
  let allowed: readonly Observation[] = [[]];
  let isSafe = true;
  for (const [index, step] of steps.entries()) {
    const moments: DiskMoment[] = [];
    disk.onChange = () => void moments.push(disk.moment());
    if (options.isReopened === true) store = simulatedStore(disk, { called: `r${index}` });
    await step.run(store);
    if (options.isReopened === true) await store.close();
    disk.onChange = () => undefined;
    const after = await observe(disk.image());
    const mixed = step.isParallel === true || !isSafe ? between(allowed[0] ?? [], after) : [];
    const without = step.losesPartials === true ? allowed.map(withoutPartials) : [];
    const during = [...allowed, ...without, ...mixed, after];
    const duringTexts = during.map(textOf);
    for (const moment of moments) await check.moment(step.name, moment, duringTexts);
    isSafe = step.isVolatile !== true;
    allowed = isSafe ? [after] : during;
    await check.moment(`${step.name}, acknowledged`, disk.moment(), allowed.map(textOf));
  }
  await store.close();
  return check.result();
}

/** What may be found in the states of a moment; the digest tells whether two moments allow the same. */
interface Expectation {
  readonly name: string;
  readonly allowed: readonly string[];
  readonly digest: string;
}

function expectation(name: string, allowed: readonly string[]): Expectation {
  return { name, allowed, digest: createHash("sha1").update(allowed.join("\n")).digest("base64") };
}

class CrashCheck {
  readonly #options: Exploration;
  readonly #seen: Set<string> = new Set();
  readonly #problems: string[] = [];
  #states = 0;
  #moments = 0;
  #next = 0;
  #recoverable = 0;

  constructor(options: Exploration) {
    this.#options = options;
  }

  result(): ExplorationResult {
    return { states: this.#states, moments: this.#moments, problems: this.#problems };
  }

  async moment(name: string, moment: DiskMoment, allowed: readonly string[]): Promise<void> {
    const { index, count } = this.#options.part ?? { index: 0, count: 1 };
    if (this.#next++ % count !== index) return;
    this.#moments++;
    const expected = expectation(name, allowed);
    const states = this.#newStates(moment, this.#options.cutEveryBytes, expected, this.#options.statesPerMoment);
    for (const image of states) await this.#state(image, expected, true);
  }

  #newStates(moment: DiskMoment, cutEveryBytes: number, expected: Expectation, atMost = Infinity): DiskImage[] {
    const found = new Map<string, DiskImage>();
    for (const image of crashStates(moment, { cutEveryBytes })) {
      const key = `${imageDigest(image)} ${expected.digest}`;
      if (!this.#seen.has(key)) found.set(key, image);
    }
    const count = Math.min(atMost, found.size);
    const places = new Set(Array.from({ length: count }, (_, index) => Math.floor((index * found.size) / count)));
    return [...found].flatMap(([key, image], place) => {
      if (!places.has(place)) return [];
      this.#seen.add(key);
      return [image];
    });
  }

  async #state(image: DiskImage, { name, allowed }: Expectation, mayCrashAgain: boolean): Promise<void> {
    const { recoverEvery, statesPerRecovery } = this.#options;
    this.#states++;
    const disk = createSimulatedDisk(image);
    const moments: DiskMoment[] = [];
    const crashesAgain = mayCrashAgain && recoverEvery > 0 && ++this.#recoverable % recoverEvery === 0;
    if (crashesAgain) disk.onChange = () => void moments.push(disk.moment());
    let acknowledgedAt = 0;
    try {
      const onAcknowledged = (): void => void (acknowledgedAt = moments.length);
      const [found, probed] = await recover(disk, mayCrashAgain ? "once" : "twice", onAcknowledged);
      if (!allowed.includes(found))
        return this.#fail(name, `found ${found}\n  allowed ${allowed.join("\n  or ")}`, image);
      const reopened = await observedText(disk.image());
      if (reopened !== probed) return this.#fail(name, `after the probe: ${reopened}`, image);
      const recovering = expectation(`${name}, while recovering`, [...allowed, found, probed]);
      const recovered = expectation(`${name}, recovered`, [probed]);
      for (const [index, moment] of moments.entries()) {
        const expected = index < acknowledgedAt ? recovering : recovered;
        for (const again of this.#newStates(moment, 997, expected, statesPerRecovery))
          await this.#state(again, expected, false);
      }
    } catch (error) {
      this.#fail(name, error instanceof Error ? `${error.message}\n${error.stack}` : String(error), image);
    }
  }

  #fail(name: string, text: string, image: DiskImage): void {
    const files = [...image].map(([path, bytes]) => `${path} ${bytes === null ? "" : bytes.length}`);
    this.#problems.push(`${name}: ${text}\n  ${files.join("\n  ")}`);
  }
}

/** Opens the store, and appends to its first active session: what is there before and after. */
async function recover(
  disk: SimulatedDisk,
  called: string,
  onAcknowledged: () => void,
): Promise<readonly [string, string]> {
  const store = simulatedStore(disk, { called, onEvent: () => undefined });
  const found = await observeStore(store);
  const { sessions } = await store.list({ limit: 1 });
  const [first] = sessions;
  if (first !== undefined)
    await store.append(first.ref, [{ type: "message", message: { role: "user", content: probeText } }]);
  onAcknowledged();
  const probed = await observeStore(store);
  await store.close();
  const before = found.find(({ sessionId }) => sessionId === first?.sessionId);
  const after = probed.find(({ sessionId }) => sessionId === first?.sessionId);
  if (first !== undefined && after?.records.length !== (before?.records.length ?? 0) + 1)
    throw new Error(`the probe is not there: ${JSON.stringify(after)}`);
  return [textOf(found), textOf(probed)];
}

/** What a store that opens the image shows. */
export async function observe(image: DiskImage): Promise<Observation> {
  return JSON.parse(await observedText(image)) as Observation;
}

const observed = new Map<string, string>();
const observedAtMost = 4096;

/** The same as one text. One image always shows the same, so each is opened once. */
export async function observedText(image: DiskImage): Promise<string> {
  const digest = imageDigest(image);
  const known = observed.get(digest);
  if (known !== undefined) return known;
  const store = simulatedStore(createSimulatedDisk(image), { called: "observer" });
  try {
    const text = textOf(await observeStore(store));
    if (observed.size >= observedAtMost) observed.clear();
    observed.set(digest, text);
    return text;
  } finally {
    await store.close();
  }
}

/** One text for each observation. */
export function textOf(observation: Observation): string {
  return JSON.stringify(observation);
}

/** Everything a caller can see, but for activity times. @throws {Error} when the sequence has a gap */
async function observeStore(store: SessionStore): Promise<Observation> {
  const { sessions } = await store.list({ state: "any", limit: 1000, sort: "key" });
  const seen: SessionObservation[] = [];
  for (const { ref, sessionId, archived, entry, revision, head } of sessions) {
    const records: string[] = [];
    for await (const page of store.read(ref)) {
      for (const { seq, id, parentId, record } of page.records) {
        if (seq !== records.length + 1) throw new Error(`${sessionId}: seq ${seq} after ${records.length}`);
        records.push(`${id} ${parentId} ${JSON.stringify(record["message"] ?? record.type)}`);
      }
    }
    if (head.lastSeq !== records.length) throw new Error(`${sessionId}: lastSeq ${head.lastSeq} of ${records.length}`);
    const { updatedAt: _updatedAt, ...fields } = entry;
    const { headId, windowSeq } = head;
    const partial = (await store.partials?.read(ref)) ?? null;
    const shown = partial === null ? [] : [partial];
    const rest = JSON.stringify([ref.key, archived, fields, revision, headId, windowSeq, ...shown]);
    seen.push({ sessionId, rest, records });
  }
  return seen.toSorted((one, other) => (one.sessionId < other.sessionId ? -1 : 1));
}

/** The same without open replies. */
export function withoutPartials(observation: Observation): Observation {
  return observation.map((session) => {
    const rest = JSON.stringify((JSON.parse(session.rest) as unknown[]).slice(0, partialAt));
    return { ...session, rest };
  });
}

/** Where in `rest` a partial stands. */
const partialAt = 6;

/** Between the two: any of the new records of each session, in their order; none of them was acknowledged. */
function between(before: Observation, after: Observation): readonly Observation[] {
  return after.flatMap((session, place) => {
    const had = before.find(({ sessionId }) => sessionId === session.sessionId)?.records.length ?? 0;
    const fresh = session.records.slice(had);
    return Array.from({ length: 2 ** fresh.length }, (_, choice) => {
      const records = [
        ...session.records.slice(0, had),
        ...fresh.filter((_record, index) => (choice >> index) % 2 === 1),
      ];
      const [key, archived, fields, revision, , windowSeq] = JSON.parse(session.rest) as unknown[];
      const headId = records.at(-1)?.split(" ")[0] ?? null;
      const rest = JSON.stringify([key, archived, fields, revision, headId, windowSeq]);
      return after.with(place, { ...session, rest, records });
    });
  });
}
