import { isAbsolute } from "node:path";
import type { SessionRef, SessionState, SessionStore } from "@throughline/core";
import { sessionsFrom } from "./imported-from.ts";
import type { SourceReader } from "./source-reader.ts";
import type { TranscriptSource } from "./transcript-source.ts";

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
  return { ...byRules, ...takenOver(reader.entry, before, reader.earlierNames) };
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
  const { agentId } = ref;
  const made = await sessionsFrom(store, { format, sourceId: spawnedBy }, ref);
  const spawner = made.sessions.find((state) => state.ref.agentId === agentId);
  return { spawnedBy: spawner?.ref.key ?? `agent:${agentId}:import:direct:${spawnedBy}`, spawnDepth: 1 };
}
