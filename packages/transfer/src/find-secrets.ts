import type { SessionState, SessionStore } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { receiptOf } from "./import-receipt.ts";
import { createSecretFinder, type SecretFinder, textsIn } from "./secret-texts.ts";

/** States a secret in a session. */
export interface FoundSecret {
  /** Holds the seq of the record; null for a field of the entry. */
  readonly seq: number | null;
  /** Holds the id of the record; null for a field of the entry. */
  readonly recordId: string | null;
  /** Names the field of the entry; null for a record. */
  readonly field: string | null;
  /** Names the rule that found the secret. */
  readonly rule: string;
  /** Holds the secret itself. Print `maskedSecret` of it instead. */
  readonly text: string;
}

/** Holds a session and the secrets in it. */
export interface SecretsOfSession {
  readonly state: SessionState;
  readonly secrets: readonly FoundSecret[];
  /** Names the file of another program that the session was imported from, which still holds them; null for none. */
  readonly sourcePath: string | null;
}

/** Sets hooks of the search for secrets. */
export interface FindSecretsOptions {
  /** Receives each session before its records are read. */
  readonly onSession?: (state: SessionState) => void;
  /** Skips records with an earlier time, in milliseconds since 1970. A record without a time is not skipped. */
  readonly sinceMs?: number;
  /** Ends the search with ABORTED. */
  readonly signal?: AbortSignal;
}

/** Yields the sessions with secrets in their records or entries. */
export async function* findSecrets(
  store: SessionStore,
  sessions: AsyncIterable<SessionState> | Iterable<SessionState>,
  { onSession, sinceMs = 0, signal }: FindSecretsOptions = {},
): AsyncGenerator<SecretsOfSession, void, void> {
  const finder = await createSecretFinder();
  for await (const state of sessions) {
    onSession?.(state);
    const secrets = await secretsOfEntry(finder, state);
    const page = { payload: "source", ...(signal === undefined ? {} : { signal }) } as const;
    for await (const { records } of store.read(state.ref, page))
      secrets.push(
        ...(await secretsOfRecords(
          finder,
          records.filter(({ tsMs }) => tsMs === null || tsMs >= sinceMs),
        )),
      );
    if (secrets.length > 0) yield { state, secrets, sourcePath: receiptOf(state.entry)?.path ?? null };
  }
}

async function secretsOfEntry(finder: SecretFinder, { entry }: SessionState): Promise<FoundSecret[]> {
  const fields = Object.entries(entry);
  const found = await finder.find(fields.map(([, value]) => textsIn(value).join("\n")));
  return fields.flatMap(([field], index) =>
    (found[index] ?? []).map((secret) => ({ seq: null, recordId: null, field, ...secret })),
  );
}

async function secretsOfRecords(finder: SecretFinder, records: readonly SourcedRecord[]): Promise<FoundSecret[]> {
  const owned = records.flatMap((record) => textsOf(record).map((text) => ({ record, text })));
  const found = await finder.find(owned.map(({ text }) => text));
  const secrets = new Map<string, FoundSecret>();
  for (const [index, { record }] of owned.entries())
    for (const { rule, text } of found[index] ?? [])
      secrets.set(JSON.stringify([record.seq, rule, text]), {
        seq: record.seq,
        recordId: record.id,
        field: null,
        rule,
        text,
      });
  return [...secrets.values()];
}

/** The line of another program may hold fields that its record lacks. */
function textsOf({ record, source, isSourceCanonical }: SourcedRecord): readonly string[] {
  const texts = textsIn(record);
  return isSourceCanonical ? texts : [...new Set([...texts, ...sourceTexts(source)])];
}

function sourceTexts(source: string | Uint8Array): readonly string[] {
  const text = typeof source === "string" ? source : Buffer.from(source).toString();
  try {
    return textsIn(JSON.parse(text));
  } catch {
    // The line is no JSON, so it is a text itself.
    return [text];
  }
}

const shownCharacters = 4;
const mostMaskCharacters = 12;

/** Returns the first characters of a secret and asterisks, on one line. */
export function maskedSecret(text: string): string {
  const shown = text.length > 4 * shownCharacters ? text.slice(0, shownCharacters) : "";
  return `${shown}${"*".repeat(Math.min(text.length, mostMaskCharacters))}`;
}
