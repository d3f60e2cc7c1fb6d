import {
  type ListQuery,
  type SessionEvent,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "../../packages/core/src/index.ts";
import { copySessions, exportSession } from "../../packages/transfer/src/index.ts";
import { createMemoryStore } from "../../packages/store-memory/src/index.ts";
import { facetWorks } from "./facet-reads.ts";

/** What one operation gave on a store with a changed bit. */
export interface FlipOutcome {
  readonly operation: string;
  /** `reported`: a read gave what is left, and a finding named the changed file. `shared`: what another program may have written. */
  readonly kind: "right" | "error" | "reported" | "shared" | "wrong";
  /** What came instead of what was written; for `error`: its code. */
  readonly what: string;
}

/** What each operation gives on the whole store. */
export type Expected = ReadonlyMap<string, string>;

export interface Work {
  readonly operation: string;
  /** What it gives, as text. */
  run(): Promise<string>;
}

interface CompareContext {
  readonly store: SessionStore;
  readonly refs: readonly SessionRef[];
  /** Which of them are asked for by themselves. @default all */
  readonly asked?: ReadonlySet<number>;
  /** Where a backup is written, and what opens it; absent: `more` has the backup. */
  readonly backup?: { readonly path: string; open(path: string): SessionStore };
  /** The files of the whole store. */
  readonly fileIds: readonly string[];
  /** What only this kind of store is asked. */
  readonly more?: readonly Work[];
}

const payloads = ["record", "source", "head"] as const;

/** More than the store has: a read that gives more does not end. */
const mostRecords = 10_000;

async function readText(store: SessionStore, ref: SessionRef, options: object): Promise<string> {
  const found: unknown[] = [];
  for await (const { records, lastSeq } of store.read(ref, options)) {
    found.push(...records, lastSeq);
    if (found.length > mostRecords) throw new Error("the read does not end");
  }
  return JSON.stringify(found, (_, value: unknown) => (value instanceof Uint8Array ? [...value] : value));
}

/** Lists over each index, with each filter that an index or a row answers. Every session of the store is of this agent and time. */
const lists: Readonly<Record<string, ListQuery>> = {
  list: { state: "any", sort: "updated" },
  "list by key": { state: "any", sort: "key" },
  "list of active": {},
  "list of archived": { state: "archived" },
  "list of an agent": { state: "any", agentId: "main" },
  "list of an agent by key": { sort: "key", agentId: "main" },
  "list of a prefix": { keyPrefix: "agent:main:cli:direct:s" },
  "list of a prefix by key": { agentId: "main", sort: "key", keyPrefix: "agent:main:cli:direct:s" },
  "list of a time": { state: "any", sinceMs: 1_000_000_000_000, untilMs: 9_000_000_000_000 },
};

/** The list as text: a line for each session. */
async function listText(store: SessionStore, query: ListQuery): Promise<string> {
  const lines: string[] = [];
  for (let cursor: string | null = null; ;) {
    const page: Awaited<ReturnType<SessionStore["list"]>> = await store.list({
      limit: 7,
      ...query,
      ...(cursor === null ? {} : { cursor }),
    });
    for (const state of page.sessions) lines.push(JSON.stringify(state));
    if (lines.length > mostRecords) throw new Error("the list does not end");
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  return lines.toSorted().join("\n");
}

async function wholeText(store: SessionStore, refs: readonly SessionRef[]): Promise<string> {
  const parts = [await listText(store, lists["list"] ?? {})];
  for (const ref of refs) parts.push(await readText(store, ref, { payload: "source" }));
  return parts.join("\n");
}

/** The copy's sessions as text, without what a copy has of its own. */
async function copyText(store: SessionStore, refs: readonly SessionRef[]): Promise<string> {
  const copy = createMemoryStore();
  const parts: string[] = [];
  for await (const result of copySessions(store, copy, { refs })) {
    if (result.error !== null) throw result.error;
    const ref = result.ref;
    const state = await copy.load(ref);
    const records: unknown[] = [];
    for await (const page of copy.read(ref, { payload: "source" }))
      for (const { seq, record, source } of page.records) records.push([seq, record, source]);
    parts.push(JSON.stringify([result.state, state?.entry, state?.head.headId, records]));
  }
  await copy.close();
  return parts.join("\n");
}

async function exportText(store: SessionStore, ref: SessionRef): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const bytes of exportSession(store, ref, { to: "jsonl" }))
    parts.push(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  return Buffer.concat(parts).toString();
}

async function backupText(
  store: SessionStore,
  refs: readonly SessionRef[],
  backup: NonNullable<CompareContext["backup"]>,
): Promise<string> {
  await store.maintenance?.backup(backup.path);
  const copy = backup.open(backup.path);
  try {
    return await wholeText(copy, refs);
  } finally {
    await copy.close();
  }
}

function worksOf({ store, refs, asked, fileIds, backup, more = [] }: CompareContext): readonly Work[] {
  return [
    ...Object.entries(lists).map(([operation, query]) => ({ operation, run: () => listText(store, query) })),
    ...refs.flatMap((ref, index): Work[] =>
      asked?.has(index) === false
        ? []
        : [
            { operation: `load ${index}`, run: async () => JSON.stringify(await store.load(ref)) },
            ...payloads.map((payload) => ({
              operation: `read ${payload} ${index}`,
              run: () => readText(store, ref, { payload }),
            })),
            { operation: `read backwards ${index}`, run: () => readText(store, ref, { order: "descending" }) },
            { operation: `copy ${index}`, run: () => copyText(store, [ref]) },
            { operation: `export ${index}`, run: () => exportText(store, ref) },
          ],
    ),
    ...facetWorks(store, fileIds),
    ...(backup === undefined ? [] : [{ operation: "backup", run: () => backupText(store, refs, backup) }]),
    ...more,
  ];
}

/** What every operation gives on a store that is whole. */
export async function expectedOf(context: CompareContext): Promise<Expected> {
  const expected = new Map<string, string>();
  for (const { operation, run } of worksOf(context)) expected.set(operation, await run());
  return expected;
}

/** The file with the changed bit. */
interface ChangedFile {
  readonly path: string;
  readonly isShared: boolean;
}

/** Reads skip a malformed line, and give a line that a person may have edited, with a finding. What makes copies does not. */
const mayBeReported = /^(?:list(?: |$)|load |read (?:record|head|backwards) )/;

/** Runs every operation on a store with a changed bit. `events`: what the store reported meanwhile. */
export async function compareReads(
  context: CompareContext,
  expected: Expected,
  events: readonly SessionEvent[],
  changed: ChangedFile | null = null,
): Promise<readonly FlipOutcome[]> {
  const outcomes: FlipOutcome[] = [];
  const kindOf = (operation: string, given: string, wanted: string): FlipOutcome["kind"] => {
    if (given === wanted || (operation in lists && isReported(given, wanted, events))) return "right";
    // Vectors are derived: a session that is damaged has none, and damaged ones are made anew.
    if (operation === "nearest" && isPartOf(given, wanted)) return "right";
    if (changed === null) return "wrong";
    // The open reply of a session whose own turn cannot be read is dropped. Its records are refused.
    if (operation === "open reply" && given === "null" && /[/\\]sessions[/\\]/.test(changed.path)) return "reported";
    if (changed.isShared) return "shared";
    return mayBeReported.test(operation) && isNamed(changed.path, events) ? "reported" : "wrong";
  };
  for (const { operation, run } of worksOf(context)) {
    const wanted = expected.get(operation) ?? "";
    try {
      const given = await run();
      const kind = kindOf(operation, given, wanted);
      outcomes.push({ operation, kind, what: kind === "right" ? "" : difference(given, wanted) });
    } catch (error) {
      const isTyped = ThroughlineError.isInstance(error) && error.code !== "INTERNAL";
      outcomes.push({ operation, kind: isTyped ? "error" : "wrong", what: isTyped ? error.code : String(error) });
    }
  }
  return outcomes;
}

function isPartOf(given: string, wanted: string): boolean {
  const all = new Set(wanted.split("\n"));
  return given === "" || given.split("\n").every((line) => all.has(line));
}

/** Whether a finding named the file and a place in it. */
function isNamed(path: string, events: readonly SessionEvent[]): boolean {
  return events.some((event) => event.name === "finding" && event.finding.path === path && event.finding.line !== null);
}

/** A session that cannot be read hides no other: a list is right when findings name all that is missing, and the rest is equal. */
function isReported(given: string, wanted: string, events: readonly SessionEvent[]): boolean {
  // A finding names a session once for all lists of a handle, by the key that its row has now.
  const named = new Set(events.map((event) => (event.name === "finding" ? event.finding.key : null)));
  named.delete(null);
  const [has, should] = [new Set(given === "" ? [] : given.split("\n")), wanted.split("\n")];
  const missing = should.filter((line) => !has.has(line));
  return has.size === should.length - missing.length && missing.length <= named.size;
}

function difference(given: string, wanted: string): string {
  let at = 0;
  while (at < given.length && given[at] === wanted[at]) at++;
  const from = Math.max(0, at - 40);
  return `${given.length} characters for ${wanted.length}; ${JSON.stringify(given.slice(from, at + 60))} for ${JSON.stringify(wanted.slice(from, at + 60))}`;
}
