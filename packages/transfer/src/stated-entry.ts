import { isAbsolute } from "node:path";
import type { SessionRef, SessionState } from "@throughline/core";
import type { SourceReader } from "./source-reader.ts";
import type { SourceRegistry } from "./source-registry.ts";
import type { TranscriptSource } from "./transcript-source.ts";

type EntryFields = Readonly<Record<string, unknown>>;

/**
 * What the lines of a source say of its session, as far as the entry takes it over. What the session was called here, by a
 * person or by a model, stays; a name that came from the source, or by rules from its words, follows the source.
 *
 * @param state as an earlier import left the session; null when this import began it
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
 * The fields of the entry that a source states, or that follow from its words.
 *
 * @param title what the rules made of the words; null when they made nothing
 * @param session the session as this import found or created it
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
  // A session of a store of ours comes with the title that it has, or with none because a redaction removed it.
  const hasTitle = state?.entry.title !== undefined || source.own !== null;
  const byRules = title === null || hasTitle ? {} : { title, titleBy: "rules" };
  // The lines of another program know more than its index; an entry that came with our own lines knows more than they do.
  const before = isBegunBefore || source.foreign === undefined ? state : null;
  return { ...byRules, ...takenOver(reader.entry, before, reader.earlierNames) };
}

/** The folder that the header of a transcript states. */
export function headerFolder({ header, own }: TranscriptSource): EntryFields {
  const cwd = header?.cwd ?? "";
  // A store of ours writes the folder of its process where the entry names none.
  return own === null && isAbsolute(cwd) ? { cwd } : {};
}

/** The fields that say which session spawned this one: by its key here, wherever that session went or will go. */
export async function spawnFields(
  registry: SourceRegistry,
  { spawnedBy }: TranscriptSource,
  { agentId }: SessionRef,
): Promise<EntryFields> {
  if (spawnedBy === undefined) return {};
  const made = (await registry.candidates("", spawnedBy)).filter(({ ref }) => ref.agentId === agentId);
  const key = made[0]?.ref.key ?? `agent:${agentId}:import:direct:${spawnedBy}`;
  return { spawnedBy: key, spawnDepth: 1 };
}
