import type { SessionEvent, SessionStore } from "@throughline/core";
import { createJsonlStore, type JsonlStoreOptions, type LockPort } from "@throughline/store-jsonl";
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
  /** The files it writes to: one it flushed is in no doubt any more. */
  readonly files: readonly string[];
}

export interface Exploration extends CrashOptions {
  /** Of every so many states also the recovery is crashed. 0: of none. */
  readonly recoverEvery: number;
  /** Only every so manyth state is opened. @default 1 */
  readonly openEvery?: number;
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
let stores = 0;
const probeText = "after the crash";

/** A store on a simulated disk, with everything else fixed. */
export function simulatedStore(disk: SimulatedDisk, options: Partial<JsonlStoreOptions> = {}): SessionStore {
  let count = 0;
  const storeId = ++stores;
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
    files: disk.files,
    locks,
    clock,
    ids: { next: () => `r${storeId}-${++count}` },
    sessionsJson: true,
    ...options,
  } as JsonlStoreOptions);
}

/** Runs steps on a simulated disk and opens the store in every state that a power cut could leave at any moment of it. */
export async function exploreCrashes(steps: readonly Step[], options: Exploration): Promise<ExplorationResult> {
  const disk = createSimulatedDisk();
  const store = simulatedStore(disk);
  const check = new CrashCheck(options);
  let allowed: readonly Observation[] = [[]];
  let isSafe = true;
  for (const step of steps) {
    const moments: DiskMoment[] = [];
    disk.onChange = () => void moments.push(disk.moment());
    await step.run(store);
    disk.onChange = () => undefined;
    const after = await observe(disk.image());
    const mixed = step.isParallel === true || !isSafe ? between(allowed[0] ?? [], after) : [];
    const during = [...allowed, ...mixed, after];
    for (const moment of moments) await check.moment(step.name, moment, during);
    isSafe = step.isVolatile !== true;
    allowed = isSafe ? [after] : during;
    await check.moment(`${step.name}, acknowledged`, disk.moment(), allowed);
  }
  await store.close();
  return check.result();
}

class CrashCheck {
  readonly #options: Exploration;
  readonly #seen: Set<string> = new Set();
  readonly #problems: string[] = [];
  #states = 0;
  #moments = 0;
  #next = 0;
  #met = 0;

  constructor(options: Exploration) {
    this.#options = options;
  }

  result(): ExplorationResult {
    return { states: this.#states, moments: this.#moments, problems: this.#problems };
  }

  async moment(name: string, moment: DiskMoment, allowed: readonly Observation[]): Promise<void> {
    const { index, count } = this.#options.part ?? { index: 0, count: 1 };
    if (this.#next++ % count !== index) return;
    this.#moments++;
    for (const image of crashStates(moment, this.#options)) await this.#state(name, image, allowed, true);
  }

  async #state(name: string, image: DiskImage, allowed: readonly Observation[], mayCrashAgain: boolean): Promise<void> {
    const texts = allowed.map((one) => JSON.stringify(one));
    const key = `${imageDigest(image)} ${texts.join(" ").length} ${texts.length}`;
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#met++;
    const { openEvery = 1, recoverEvery } = this.#options;
    if (this.#met % openEvery !== 0) return;
    this.#states++;
    const disk = createSimulatedDisk(image);
    const moments: DiskMoment[] = [];
    const crashesAgain = mayCrashAgain && recoverEvery > 0 && this.#states % recoverEvery === 0;
    if (crashesAgain) disk.onChange = () => void moments.push(disk.moment());
    let acknowledgedAt = 0;
    try {
      const [found, probed] = await recover(disk, () => (acknowledgedAt = moments.length));
      if (!texts.includes(JSON.stringify(found)))
        return this.#fail(name, `found ${JSON.stringify(found)}\n  allowed ${texts.join("\n  or ")}`, image);
      const reopened = JSON.stringify(await observe(disk.image()));
      if (reopened !== JSON.stringify(probed)) return this.#fail(name, `after the probe: ${reopened}`, image);
      for (const [index, moment] of moments.entries())
        for (const again of crashStates(moment, { cutEveryBytes: 997 }))
          await (index < acknowledgedAt
            ? this.#state(`${name}, while recovering`, again, [...allowed, found, probed], false)
            : this.#state(`${name}, recovered`, again, [probed], false));
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
async function recover(disk: SimulatedDisk, onAcknowledged: () => void): Promise<readonly [Observation, Observation]> {
  const events: SessionEvent[] = [];
  const store = simulatedStore(disk, { onEvent: (event) => void events.push(event) });
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
  return [found, probed];
}

export async function observe(image: DiskImage): Promise<Observation> {
  const store = simulatedStore(createSimulatedDisk(image));
  try {
    return await observeStore(store);
  } finally {
    await store.close();
  }
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
    seen.push({ sessionId, rest: JSON.stringify([ref.key, archived, fields, revision, headId, windowSeq]), records });
  }
  return seen.toSorted((one, other) => (one.sessionId < other.sessionId ? -1 : 1));
}

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
