import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { emptyReceipt, readReceipt, receiptOf, type ImportReceipt } from "./import-receipt.ts";
import { sourceIdsOf } from "./imported-from.ts";
import type { SourceFile } from "./node/source-files.ts";
import { firstTimeMs, type TranscriptSource } from "./transcript-source.ts";
import { isAbsolute } from "node:path";
import type { SourceReader } from "./source-reader.ts";

/** More sessions with the same id point to a mistake, so the search for a free id stops here. */
const maxSuffix = 1000;

export function firstReceipt(
  source: TranscriptSource,
  refusedKey: string | null,
  askedKey: string | undefined,
): ImportReceipt {
  const { path, format, sessionId, key, entry, archivedAt } = source;
  const [sourceId] = sourceIdsOf(source);
  const sessionFile = entry?.["sessionFile"];
  const earlier = readReceipt(entry?.["importedFrom"]);
  return emptyReceipt({
    path,
    format,
    sessionId,
    ...(sourceId.toLowerCase() === sessionId.toLowerCase() ? {} : { sourceId }),
    ...(typeof sessionFile === "string" ? { sessionFile } : {}),
    ...(refusedKey === null ? {} : { key: refusedKey }),
    ...(key === null ? {} : { sourceKey: key }),
    ...(askedKey === undefined ? {} : { askedKey }),
    ...(archivedAt === null ? {} : { archivedAt }),
    ...(earlier === null ? {} : { earlier }),
  });
}

interface BegunImport {
  readonly entryFields: Readonly<Record<string, unknown>>;
  readonly receipt: ImportReceipt;
  /** Null when the index names a transcript that does not exist. */
  readonly file: SourceFile | null;
}

function headerTimeMs({ header }: TranscriptSource): number | null {
  const timeMs = Date.parse(header?.timestamp ?? "");
  return Number.isFinite(timeMs) ? timeMs : null;
}

/** Reads the start time from the header, the first lines or the entry; null when none states it. */
async function startOf(source: TranscriptSource, file: SourceFile | null): Promise<number | null> {
  const statedMs = headerTimeMs(source) ?? (file === null ? null : await firstTimeMs(source, file));
  const given = statedMs ?? source.entry?.["sessionStartedAt"];
  return typeof given === "number" && Number.isSafeInteger(given) && given > 0 ? given : null;
}

/**
 * Creates the session of a source with these entry fields. The transcript's path goes into the receipt, because in the
 * entry it would name a file of another store.
 */
export async function createImportedSession(
  store: SessionStore,
  ref: SessionRef,
  source: TranscriptSource,
  { entryFields, receipt, file }: BegunImport,
): Promise<SessionState> {
  const createdAtMs = await startOf(source, file);
  const { sessionFile: _moved, importedFrom: _earlier, ...fields } = entryFields;
  const startedAtMs = headerTimeMs(source) ?? (source.foreign === undefined ? null : createdAtMs);
  const updatedAt = fields["updatedAt"] === undefined && startedAtMs !== null ? { updatedAt: startedAtMs } : {};
  for (let suffix = 1; ; suffix++) {
    const sessionId = suffix === 1 ? source.sessionId : `${source.sessionId.slice(0, 120)}-${suffix}`;
    const entry: SessionEntry = { ...fields, ...updatedAt, sessionId, importedFrom: receipt };
    try {
      return await store.save(ref, entry, { ifRevision: null, ...(createdAtMs === null ? {} : { createdAtMs }) });
    } catch (error) {
      // Another session has the id: the same file under another key, or a topic of the same conversation.
      if (!hasErrorCode(error, "SESSION_EXISTS", "ID_CASE_COLLISION") || suffix >= maxSuffix) throw error;
    }
  }
}

type EntryFields = Readonly<Record<string, unknown>>;

/**
 * Selects the entry fields that a later import may overwrite. A name that a person or a model gave here stays. A name
 * from the source, or one derived by rules, follows the source.
 *
 * @param state session as an earlier import left it; null when this import began it
 * @param earlierNames labels that the source stated before the one in `stated`
 */
function takenOver(stated: EntryFields, state: SessionState | null, earlierNames: ReadonlySet<string>): EntryFields {
  if (state === null) return stated;
  const { entry } = state;
  const isTaken = (field: string): boolean => {
    if (field === "title" || field === "titleBy")
      return entry.title === undefined || entry.titleBy === "import" || entry.titleBy === "rules";
    if (field === "label" && entry.label !== undefined) return earlierNames.has(entry.label);
    return entry[field] === undefined;
  };
  return Object.fromEntries(
    Object.entries(stated).filter(([field, value]) => isTaken(field) && entry[field] !== value),
  );
}

/**
 * Builds the entry fields that a source states, or that rules derive from its words.
 *
 * @param title title that the rules derived; null without one
 * @param session session as this import found or created it
 */
export function statedEntry(
  reader: Pick<SourceReader, "entry" | "earlierNames">,
  title: string | null,
  {
    source,
    state,
    isBegunBefore,
  }: { readonly source: TranscriptSource; readonly state: SessionState | null; readonly isBegunBefore: boolean },
): EntryFields {
  // A session of a Throughline store comes with its title, or without one because a redaction removed it.
  const hasTitle = state?.entry.title !== undefined || source.own !== null;
  const byRules = title === null || hasTitle ? {} : { title, titleBy: "rules" };
  // Lines of another program state more than its index, so they win. An entry that came with Throughline's lines states
  // more than the lines.
  const before = isBegunBefore || source.foreign === undefined ? state : null;
  const stated = { ...byRules, ...takenOver(reader.entry, before, reader.earlierNames) };
  return state !== null && receiptOf(state.entry)?.handOff !== undefined ? withoutNames(stated) : stated;
}

/** The fork of a handed-off session is named after it. The file repeats the name of that session. */
function withoutNames({ title: _title, titleBy: _titleBy, label: _label, ...fields }: EntryFields): EntryFields {
  return fields;
}

export function headerFolder({ header, own }: TranscriptSource): EntryFields {
  const cwd = header?.cwd ?? "";
  // A Throughline store writes the folder of its process if the entry names none, so its header is ignored.
  return own === null && isAbsolute(cwd) ? { cwd } : {};
}

/**
 * States the spawning session by its key here. If that session is not imported yet, the key that it will get is used.
 */
export async function spawnFields(
  store: SessionStore,
  source: TranscriptSource,
  ref: SessionRef,
): Promise<EntryFields> {
  const { spawnedBy, format } = source;
  if (spawnedBy === undefined) return {};
  const { namespace, agentId } = ref;
  const importedFrom = { format, sourceId: spawnedBy };
  const { sessions } = await store.list({ namespace, agentId, importedFrom, sort: "key", limit: 1 });
  const [spawner] = sessions;
  return { spawnedBy: spawner?.ref.key ?? `agent:${agentId}:import:direct:${spawnedBy}`, spawnDepth: 1 };
}
