import {
  assertKnownOptions,
  createFinding,
  isErasedPayload,
  listSessions,
  optionKinds,
  type OptionTable,
  runInSlices,
} from "@throughline/core/internal";
import { setImmediate as pause } from "node:timers/promises";
import {
  hasErrorCode,
  ThroughlineError,
  type FilesFacet,
  type Finding,
  type ListQuery,
  type MaintenanceFacet,
  type SessionRef,
  type SessionState,
  type SessionStore,
  type StoredRecord,
} from "@throughline/core";
import { recordSteps } from "./inspect-records.ts";
import { lightRecord } from "./light-record.ts";
import { mergeSteps } from "./merge-findings.ts";

/** Holds the options of `inspectStore`. */
export interface InspectStoreOptions {
  /** Selects the sessions to check. @default all sessions, archived ones included */
  readonly query?: ListQuery;
  /** Ends the check with ABORTED. */
  readonly signal?: AbortSignal;
}

const storeTable: OptionTable<InspectStoreOptions> = { query: optionKinds.object, signal: optionKinds.signal };

/**
 * Reads every session of a store and reports problems: the findings of the store's own check, if it has one, and those
 * of the records. A session that cannot be read is a finding; the check continues with the next one.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option, ABORTED, and any error of listing sessions
 */
export async function* inspectStore(
  store: SessionStore,
  options: InspectStoreOptions = {},
): AsyncGenerator<Finding, void, void> {
  assertKnownOptions<InspectStoreOptions>("inspectStore", options, storeTable);
  const { signal } = options;
  const reported = new Set<string>();
  const scopes = new Map<string, SessionRef>();
  if (store.maintenance !== undefined)
    for await (const finding of ownFindings(store.maintenance, signal)) {
      if (finding.code === "RECORD_MISSING" || ofLines.has(finding.code)) reported.add(recordOf(finding));
      yield finding;
    }
  for await (const state of sessionsOf(store, options)) {
    // The store's own check has reported this line with its position, so the record of that line is not reported again.
    const found = await inspectSession(store, state, signal);
    yield* found.filter((finding) => !ofLines.has(finding.code) || !reported.has(recordOf(finding)));
    scopes.set(JSON.stringify([state.ref.namespace, state.ref.agentId]), state.ref);
  }
  if (store.files !== undefined) for (const scope of scopes.values()) yield* inspectFiles(store.files, scope, signal);
}

/** Reports files that records name and the store lacks, and files to which no record refers. */
async function* inspectFiles(
  files: FilesFacet,
  scope: SessionRef,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, void, void> {
  const { agentId, namespace } = scope;
  for await (const page of files.list({ namespace, agentId }, signal === undefined ? {} : { signal }))
    for (const { id, bytes, storedAtMs, references } of page) {
      const [records, refer] = references === 1 ? ["record", "refers"] : ["records", "refer"];
      if (bytes === null)
        yield createFinding(
          "FILE_MISSING",
          `The file ${id}, to which ${references} ${records} of agent ${agentId} ${refer}, is not in the store.`,
          {},
        );
      else if (references === 0) {
        const since = new Date(storedAtMs ?? 0).toISOString();
        const message = `No record of agent ${agentId} refers to the file ${id} (${bytes} bytes, put at ${since}).`;
        yield createFinding("FILE_UNUSED", message, {});
      }
    }
}

/** The default includes archived sessions, because damage in them matters too. */
export function sessionsOf(
  store: SessionStore,
  { query, signal }: InspectStoreOptions,
): AsyncGenerator<SessionState, void, void> {
  const aborted = signal === undefined ? {} : { signal };
  return listSessions(store, { state: "any", sort: "key", limit: 1000, ...query, ...aborted });
}

/** An error that ends the store's own check becomes a finding, because its sessions may still be readable. */
async function* ownFindings(
  maintenance: MaintenanceFacet,
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding, void, void> {
  try {
    yield* maintenance.verify(signal === undefined ? {} : { signal });
  } catch (error) {
    if (!hasErrorCode(error, "STORE_CORRUPT")) throw error;
    yield unreadable(error, null);
  }
}

/** Only written data that cannot be read back is damage. Any other error may be a matter of permissions. */
function unreadable(error: ThroughlineError, key: string | null): Finding {
  const path = error.details["path"];
  const place = { key, path: typeof path === "string" ? path : null };
  return createFinding(error.code === "STORE_CORRUPT" ? "STORE_DAMAGED" : "FILE_UNREADABLE", error.message, place);
}

function erased({ details }: ThroughlineError, key: string): Finding {
  const date = String(details["destroyedAt"]).slice(0, 10);
  return createFinding("SESSION_ERASED", `${key} was erased on ${date}: its key was destroyed.`, { key });
}

/** Checks one session. A session that cannot be read is a finding. @throws {ThroughlineError} ABORTED */
export async function inspectSession(
  store: SessionStore,
  { ref, head }: SessionState,
  signal: AbortSignal | undefined,
): Promise<readonly Finding[]> {
  const records: StoredRecord[] = [];
  const { key } = ref;
  try {
    for await (const page of store.read(ref, signal === undefined ? {} : { signal })) {
      // A store that answers at once never yields to the event loop, so a signal could not arrive before the last page.
      await pause();
      for (const stored of page.records) records.push({ ...stored, record: lightRecord(stored.record, stored.bytes) });
    }
  } catch (error) {
    if (!ThroughlineError.isInstance(error) || error.code === "ABORTED") throw error;
    return [isErasedPayload(error) ? erased(error, key) : unreadable(error, key)];
  }
  const found = await runInSlices(recordSteps(records, head.headId));
  return runInSlices(mergeSteps([gaps(records, key), found.map(asImported)], { key }));
}

function recordOf({ key, recordId }: Finding): string {
  return JSON.stringify([key, recordId]);
}

const ofLines: ReadonlySet<string> = new Set(["LINE_MALFORMED", "LINE_TOO_LONG", "TAIL_TORN"]);

/**
 * A line that was malformed before its import is no damage of the store. The store's own check reports lines that were
 * damaged later.
 */
function asImported(finding: Finding): Finding {
  if (!ofLines.has(finding.code)) return finding;
  const remedy =
    "Nothing to do for the store: the line was imported like this, is kept byte for byte, and is left out of every context.";
  return { ...finding, severity: "warning", remedy };
}

/** Sequence numbers are dense from 1, so a gap means that a record is lost. */
function gaps(records: readonly StoredRecord[], key: string): readonly Finding[] {
  const at = records.findIndex(({ seq }, index) => seq !== index + 1);
  if (at < 0) return [];
  const found = records[at];
  const message = `record ${found?.id} has seq ${found?.seq} where ${at + 1} is due: records are missing`;
  return [createFinding("RECORD_INVALID", message, { key, recordId: found?.id ?? null })];
}
