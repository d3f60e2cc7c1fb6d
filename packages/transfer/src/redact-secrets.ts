import { redactRecords, type SessionStore } from "@throughline/core";
import type { SecretsOfSession } from "./find-secrets.ts";

/** States what a redaction of secrets changed. */
export interface RedactedSecrets {
  /** Lists the seqs of the records that hold none of the secrets any more. */
  readonly seqs: readonly number[];
  /** Names the fields of the entry that hold a secret and must stay. */
  readonly keptFields: readonly string[];
}

/**
 * Replaces the secrets of a session inside of its records, and in every session that shares them. The fields of the
 * entry that hold one are removed if they are texts.
 * @throws {ThroughlineError} what `redactRecords` throws
 */
export async function redactSecrets(
  store: SessionStore,
  { state, secrets }: SecretsOfSession,
  { reason }: { readonly reason: string },
): Promise<RedactedSecrets> {
  const { entry, ref } = state;
  const held = [...new Set(secrets.flatMap(({ field }) => (field === null ? [] : [field])))];
  const fields = held.filter((field) => field !== "sessionId" && typeof entry[field] === "string");
  const keptFields = held.filter((field) => !fields.includes(field));
  const found = secrets.flatMap(({ recordId }) => (recordId === null ? [] : [recordId]));
  // A store removes fields of the entry together with texts of records, also from the earlier versions that it keeps.
  const ids = found.length > 0 ? [...new Set(found)] : await firstRecord(store, state);
  const texts = [...new Set(secrets.map(({ text }) => text))];
  const { seqs } = await redactRecords(store, ref, ids, { reason, texts, entryFields: fields });
  return { seqs: found.length > 0 ? seqs : [], keptFields };
}

async function firstRecord(store: SessionStore, { ref }: SecretsOfSession["state"]): Promise<readonly string[]> {
  for await (const { records } of store.read(ref, { payload: "head", limit: 1 })) return records.map(({ id }) => id);
  return [];
}
