import { readFileSync } from "node:fs";
import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { counterRef, operationOf, type Operation } from "./contention.ts";

/**
 * What is wrong with an order that is said to be one of all operations: two with one place, or one that was over before
 * another began and comes after it. Nothing, when one store that does a thing at a time could have given these answers.
 */
export function findDisorder(operations: readonly Operation[]): readonly string[] {
  const placed = operations
    .filter(({ got }) => got !== null)
    .toSorted((one, other) => (one.got ?? 0) - (other.got ?? 0));
  const problems: string[] = [];
  let earliestEnd: Operation | null = null;
  for (const [at, operation] of placed.toReversed().entries()) {
    const next = placed[placed.length - at];
    if (next !== undefined && next.got === operation.got)
      problems.push(`${nameOf(operation)} and ${nameOf(next)} were both told ${operation.got}`);
    if (earliestEnd !== null && (earliestEnd.endedAt ?? 0n) < operation.beganAt)
      problems.push(`${nameOf(earliestEnd)} ended before ${nameOf(operation)} began and comes after it`);
    if (earliestEnd === null || (operation.endedAt ?? 0n) < (earliestEnd.endedAt ?? 0n)) earliestEnd = operation;
  }
  return problems;
}

function nameOf({ name, index }: Operation): string {
  return `${name}-${index}`;
}

/** What is wrong with a session that all of them appended two records to at a time, and patched the entry of. */
export async function findSessionProblems(
  store: SessionStore,
  operations: readonly Operation[],
): Promise<readonly string[]> {
  const problems = [...findDisorder(operations)];
  const records: StoredRecord[] = [];
  for await (const page of store.read(counterRef)) records.push(...page.records);
  const texts = records.map(({ record }) => (record["message"] as { readonly content: string }).content);
  for (const [at, { seq, parentId }] of records.entries()) {
    if (seq !== at + 1) problems.push(`record ${at + 1} has the seq ${seq}`);
    if (parentId !== (records[at - 1]?.id ?? null)) problems.push(`record ${seq} has another parent`);
  }
  const begun = new Map(operations.map((operation) => [nameOf(operation), operation]));
  const places = new Map<string, number>();
  for (const [at, text] of texts.entries()) {
    const batch = text.slice(0, text.lastIndexOf("-"));
    if (at % 2 === 1 && text === `${batch}-b` && texts[at - 1] === `${batch}-a`) {
      if (places.has(batch)) problems.push(`${batch} is there twice`);
      if (!begun.has(batch)) problems.push(`${batch} is there and nobody wrote it`);
      places.set(batch, at + 1);
    } else if (at % 2 === 1 || at === texts.length - 1) problems.push(`half of ${batch} is there`);
  }
  const placed: Operation[] = [];
  for (const operation of operations) {
    const place = places.get(nameOf(operation)) ?? null;
    if (operation.got !== null && place !== operation.got)
      problems.push(`${nameOf(operation)} was told ${operation.got} and is at ${place}`);
    // One that was killed before it heard: it is there or not, and if it is, not before it began.
    if (place !== null) placed.push({ ...operation, got: place, endedAt: operation.endedAt ?? lastEnd(operations) });
  }
  const patches = operations.filter(({ index }) => index % 4 === 0);
  return [...problems, ...findDisorder(placed), ...(await findFieldProblems(store, patches))];
}

function lastEnd(operations: readonly Operation[]): bigint {
  return operations.reduce((last, { beganAt, endedAt }) => {
    const end = endedAt ?? beganAt;
    return end > last ? end : last;
  }, 0n);
}

/** Each process wrote a field of its own: what it wrote last is there, or what it was writing when it was killed. */
async function findFieldProblems(store: SessionStore, patches: readonly Operation[]): Promise<readonly string[]> {
  const entry = (await store.load(counterRef))?.entry ?? {};
  const allowed = new Map<string, number[]>();
  for (const { name, index, got } of patches.toSorted((one, other) => one.index - other.index))
    allowed.set(name, got === null ? [...(allowed.get(name) ?? []), index] : [index]);
  return [...allowed].flatMap(([name, indexes]) => {
    const found = (entry as Readonly<Record<string, unknown>>)[name];
    const isUnheard = found === undefined && patches.every((each) => each.name !== name || each.got === null);
    return isUnheard || indexes.includes(found as number)
      ? []
      : [`the field of ${name} is ${String(found)}, not ${indexes.join(" or ")}`];
  });
}

/** What is wrong with entries that all of them counted in, patched and added to. */
export async function findEntryProblems(
  store: SessionStore,
  operations: readonly Operation[],
): Promise<readonly string[]> {
  const of = (what: string): readonly Operation[] => operations.filter(({ index }) => operationOf(index) === what);
  const counts = of("count");
  const heard = counts.filter(({ got }) => got !== null);
  const count = Number((await store.load(counterRef))?.entry["count"]);
  const problems = [...findDisorder(counts), ...(await findFieldProblems(store, of("patch")))];
  if (count < heard.length || count > counts.length)
    problems.push(`the counter is ${count}, after ${heard.length} of ${counts.length} were told that they counted`);
  for (const operation of heard)
    if ((operation.got ?? 0) > count) problems.push(`${nameOf(operation)} was told ${operation.got} of ${count}`);
  const items = await listAll(store);
  const listed = new Set(items.map(({ sessionId }) => sessionId));
  const begun = new Set(of("save").map(nameOf));
  if (listed.size !== items.length) problems.push("a session is listed twice");
  for (const operation of of("save"))
    if (operation.got !== null && !listed.has(nameOf(operation)))
      problems.push(`the session ${nameOf(operation)} is gone`);
  for (const sessionId of listed)
    if (sessionId !== "s1" && !begun.has(sessionId)) problems.push(`nobody made the session ${sessionId}`);
  return problems;
}

async function listAll(store: SessionStore): Promise<readonly SessionState[]> {
  const items: SessionState[] = [];
  for (let cursor: string | null = null; ;) {
    const page = await store.list(cursor === null ? { limit: 500 } : { limit: 500, cursor });
    items.push(...page.sessions);
    cursor = page.nextCursor;
    if (cursor === null) return items;
  }
}

/** Where sessions.json, as OpenClaw would read it, says something else than the store. Its pending changes are written. */
export async function findViewProblems(store: SessionStore, root: string): Promise<readonly string[]> {
  await store.append(counterRef, [], { entry: { isLast: true } });
  const items = await listAll(store);
  await store.close();
  const text = readFileSync(`${root}/agents/main/sessions/sessions.json`, "utf8");
  const view = JSON.parse(text) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  const problems = items.flatMap(({ ref, entry, updatedAtMs }) => {
    const shown = view[ref.key];
    if (shown === undefined) return [`sessions.json lacks ${ref.key}`];
    // There it is the time of the last append, which is no field of the entry.
    return Object.entries({ ...entry, updatedAt: updatedAtMs })
      .filter(([field, value]) => JSON.stringify(shown[field]) !== JSON.stringify(value))
      .map(
        ([field, value]) =>
          `sessions.json has ${field} of ${ref.key} as ${JSON.stringify(shown[field])}, not ${JSON.stringify(value)}`,
      );
  });
  const known = new Set(items.map(({ ref }) => ref.key));
  return [
    ...problems,
    ...Object.keys(view)
      .filter((key) => !known.has(key))
      .map((key) => `sessions.json has ${key} as well`),
  ];
}
