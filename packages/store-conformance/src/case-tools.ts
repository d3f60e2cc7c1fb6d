import assert from "node:assert/strict";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { systemClock, throughlineDraft } from "@throughline/core/internal";
import type { ErrorCode, ReadOptions, RecordDraft, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import type { StoreUnderTest } from "./store-under-test.ts";

export interface NewSession {
  readonly agentId?: string;
  readonly namespace?: string;
  readonly key?: string;
  readonly sessionId?: string;
  readonly entry?: Readonly<Record<string, unknown>>;
}

export function refOf(name: string, { agentId = "main", namespace = "", key }: NewSession = {}): SessionRef {
  return { namespace, agentId, key: key ?? `agent:${agentId}:${name}` };
}

/** Creates an empty session, with the id `session-<name>` by default. */
export async function createSession(store: SessionStore, name: string, options: NewSession = {}): Promise<SessionRef> {
  const ref = refOf(name, options);
  await store.save(ref, { ...options.entry, sessionId: options.sessionId ?? `session-${name}` }, { ifRevision: null });
  return ref;
}

/** Creates a draft of a main record. */
export function userDraft(text: string, fields: Readonly<Record<string, unknown>> = {}): RecordDraft {
  return { type: "message", message: { role: "user", content: text }, ...fields };
}

/** Creates a draft of a side record. */
export function noteDraft(text: string): RecordDraft {
  return throughlineDraft("note", { text });
}

/** Creates the line of a main record in another program's format. */
export function lineOf(id: string, rest: string, parentId: string | null = null): string {
  return `{"type":"message","id":${JSON.stringify(id)},"parentId":${JSON.stringify(parentId)},"timestamp":"2026-01-02T03:04:05.006Z",${rest}}`;
}

export async function readRecords(
  store: SessionStore,
  ref: SessionRef,
  options: ReadOptions = {},
): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, options)) records.push(...page.records);
  return records;
}

export async function readSources(store: SessionStore, ref: SessionRef): Promise<SourcedRecord[]> {
  const records: SourcedRecord[] = [];
  for await (const page of store.read(ref, { payload: "source" })) records.push(...page.records);
  return records;
}

/** Reads the texts that `userDraft` created, in reading order. Other records appear as their type. */
export async function readTexts(store: SessionStore, ref: SessionRef, options: ReadOptions = {}): Promise<string[]> {
  return (await readRecords(store, ref, options)).map(({ record }) => {
    const message = record["message"] as { readonly content?: unknown } | undefined;
    return typeof message?.content === "string" ? message.content : `(${record.type})`;
  });
}

export function seqsOf(records: readonly { readonly seq: number }[]): number[] {
  return records.map(({ seq }) => seq);
}

export function numbersTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** Asserts that a write is refused with one of the codes, and that the error states that nothing was applied. */
export async function assertRefused(
  operation: Promise<unknown>,
  ...codes: readonly ErrorCode[]
): Promise<ThroughlineError> {
  const error = await assertFails(operation, ...codes);
  assert.equal(error.outcome, "not-applied", "a refused write says that nothing was applied");
  return error;
}

/** Asserts that an operation fails with a ThroughlineError of one of the codes. */
export async function assertFails(
  operation: Promise<unknown>,
  ...codes: readonly ErrorCode[]
): Promise<ThroughlineError> {
  const error: unknown = await operation.then(
    () => assert.fail(`expected ${codes.join(" or ")}, but it succeeded`),
    (reason: unknown) => reason,
  );
  if (hasErrorCode(error, ...codes)) return error;
  assert.ok(
    ThroughlineError.isInstance(error),
    `expected ${codes.join(" or ")}, got another value than a ThroughlineError: ${String(error)}`,
  );
  return assert.fail(`expected ${codes.join(" or ")}, got ${error.code}: ${error.message}`);
}

/** Returns a member of the store under test. The case must list it in `needs`, or the assertion fails. */
export function abilityOf<Name extends keyof StoreUnderTest>(
  under: StoreUnderTest,
  name: Name,
): NonNullable<StoreUnderTest[Name]> {
  const ability = under[name];
  assert.ok(ability !== undefined, `the store under test offers no ${name}`);
  return (typeof ability === "function" ? ability.bind(under) : ability) as NonNullable<StoreUnderTest[Name]>;
}

export function reopened(under: StoreUnderTest): Promise<SessionStore> {
  return abilityOf(under, "reopen")();
}

export function nowMs(): number {
  return systemClock.nowMs();
}
