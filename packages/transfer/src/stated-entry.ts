import type { SessionRef, SessionState } from "@throughline/core";
import type { SourceRegistry } from "./source-registry.ts";
import type { TranscriptSource } from "./transcript-source.ts";

type EntryFields = Readonly<Record<string, unknown>>;

/**
 * What the lines of a source say of its session, as far as the entry takes it over. What the session was called here, by a
 * person or by a model, stays; a title that came from the source follows the source.
 *
 * @param state as an earlier import left the session; null when this import began it
 */
export function takenOver(stated: EntryFields, state: SessionState | null): EntryFields {
  if (state === null) return stated;
  const { entry } = state;
  const isTaken = (field: string): boolean => {
    if (field === "title" || field === "titleBy") return entry["title"] === undefined || entry["titleBy"] === "import";
    return entry[field] === undefined;
  };
  return Object.fromEntries(
    Object.entries(stated).filter(([field, value]) => isTaken(field) && entry[field] !== value),
  );
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
