import type { SessionStore } from "@throughline/core";
import { simulatedStore, type Step } from "./crash-explorer.ts";
import { crashStates, imageDigest } from "./crash-states.ts";
import { mainRef, userDraft } from "./session-fixture.ts";
import { createSimulatedDisk, type DiskImage } from "./simulated-disk.ts";

const sessions = "/store/agents/main/sessions";
const transcript = `${sessions}/s1.jsonl`;

/** What another program does to the transcript of a session; it changes the image. */
type ForeignAct = (image: Map<string, Uint8Array | null>) => void;

/** Keeps the first `count` lines, or drops the last ones when the number is negative. */
function keepLines(count: number): ForeignAct {
  return (image) => {
    const lines = Buffer.from(image.get(transcript) ?? [])
      .toString("latin1")
      .split(/(?<=\n)/);
    image.set(transcript, Buffer.from(lines.slice(0, count).join(""), "latin1"));
  };
}

function moveTo(name: string): ForeignAct {
  return (image) => {
    image.set(`${sessions}/${name}`, image.get(transcript) ?? null);
    image.delete(transcript);
  };
}

export const foreignActs: ReadonlyMap<string, ForeignAct> = new Map([
  ["emptied", keepLines(0)],
  ["header only", keepLines(1)],
  ["last line cut", keepLines(-1)],
  ["last 2 lines cut", keepLines(-2)],
  ["last 3 lines cut", keepLines(-3)],
  ["moved to .reset", moveTo("s1.jsonl.reset.2026-01-02T03-04-05.006Z")],
  ["moved to .deleted", moveTo("s1.jsonl.deleted.2026-01-02T03-04-05.006Z")],
  ["deleted", (image) => void image.delete(transcript)],
]);

/** The image after an act; null without a transcript. */
export function imageAfter(image: DiskImage, act: string): DiskImage | null {
  if (image.get(transcript) === undefined) return null;
  const changed = new Map(image);
  foreignActs.get(act)?.(changed);
  return changed;
}

/** The entry of the session with its revision, as a store that opens the image answers. */
export async function entryIn(image: DiskImage): Promise<string> {
  const store = simulatedStore(createSimulatedDisk(image), { called: "observer", onEvent: () => undefined });
  const state = await store.load(mainRef);
  await store.close();
  if (state === null) return "no session";
  const { updatedAt: _updatedAt, ...fields } = state.entry;
  return JSON.stringify([fields, state.revision]);
}

/** A session whose entry is changed by appends of records, with other appends in between. */
function lifeOfEntries(): readonly Step[] {
  const step = (name: string, run: (store: SessionStore) => Promise<unknown>): Step => ({ name, files: [], run });
  const entries = [{ sendPolicy: "deny" }, { label: "two" }, { sendPolicy: undefined, totalTokens: 9 }];
  return [
    step("save", (store) => store.save(mainRef, { sessionId: "s1", label: "one" }, { ifRevision: null })),
    step("append", (store) => store.append(mainRef, [userDraft("a")])),
    ...entries.map((entry, index) =>
      step(`patch ${index}`, (store) => store.append(mainRef, [userDraft(`p${index}`)], { entry })),
    ),
    step("append after it", (store) => store.append(mainRef, [userDraft("b")])),
    step("patch without records", (store) => store.append(mainRef, [], { entry: { label: "three" } })),
    step("keyed patch", (store) =>
      store.append(mainRef, [userDraft("k")], { entry: { sendPolicy: "deny" }, idempotencyKey: "k" }),
    ),
  ];
}

export interface ForeignActsOptions {
  /** The most states of one moment, spread evenly. */
  readonly statesPerMoment: number;
  readonly cutEveryBytes: number;
  readonly part?: { readonly index: number; readonly count: number };
}

/**
 * Every act of another program, after a kill and after a power cut at each moment of a life of entries: the entry that was
 * caught up last, or the one that was acknowledged since, must be there. Closing after each step catches up.
 */
export async function exploreForeignActs(
  options: ForeignActsOptions,
): Promise<{ readonly states: number; readonly problems: readonly string[] }> {
  const { statesPerMoment, cutEveryBytes, part = { index: 0, count: 1 } } = options;
  const disk = createSimulatedDisk();
  const problems: string[] = [];
  const seen = new Set<string>();
  let states = 0;
  let moments = 0;
  const check = async (name: string, image: DiskImage, allowed: readonly string[]): Promise<void> => {
    for (const act of foreignActs.keys()) {
      const changed = imageAfter(image, act);
      const key = changed === null ? "" : `${imageDigest(changed)} ${allowed.join()}`;
      if (changed === null || seen.has(key)) continue;
      seen.add(key);
      states++;
      const found = await entryIn(changed);
      if (!allowed.includes(found)) problems.push(`${name}, ${act}: ${found}\n  allowed ${allowed.join("\n  or ")}`);
    }
  };
  const checkMoment = async (name: string, images: readonly DiskImage[], allowed: readonly string[]): Promise<void> => {
    if (moments++ % part.count !== part.index) return;
    const count = Math.min(statesPerMoment, images.length);
    const places = new Set(Array.from({ length: count }, (_, at) => Math.floor((at * images.length) / count)));
    for (const place of places) await check(name, images[place] ?? new Map(), allowed);
  };
  let before = "no session";
  for (const [index, step] of lifeOfEntries().entries()) {
    const imagesNow = (): DiskImage[] => [disk.image(), ...crashStates(disk.moment(), { cutEveryBytes })];
    let passed: DiskImage[][] = [];
    disk.onChange = () => void passed.push(imagesNow());
    const store = simulatedStore(disk, { called: `r${index}` });
    await step.run(store);
    const running = passed;
    const acknowledged = imagesNow();
    passed = [];
    await store.close();
    disk.onChange = () => undefined;
    const after = await entryIn(disk.image());
    const afterRun = [before, after];
    for (const images of running) await checkMoment(step.name, images, [before, after]);
    await checkMoment(`${step.name}, acknowledged`, acknowledged, afterRun);
    for (const images of passed) await checkMoment(`${step.name}, closing`, images, afterRun);
    await checkMoment(`${step.name}, closed`, imagesNow(), [after]);
    before = after;
  }
  return { states, problems };
}
