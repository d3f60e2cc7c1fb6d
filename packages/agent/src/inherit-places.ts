import { sessionSettings } from "@throughline/config";
import type { SessionStore } from "@throughline/core";
import { placesAt, type SourceSync, surveyPlaces } from "@throughline/transfer/internal";
import type { AgentContext } from "./agent-context.ts";
import { inheritSources } from "./inherited-session.ts";
import { isOfStore, openSync, type OpenSyncOptions } from "./sync-home.ts";

/** Lists the places that `session.inherit` names: those to read, and those that belong to the store itself. */
export interface InheritedPlaces {
  readonly source: string;
  readonly fresh: readonly string[];
  readonly own: readonly string[];
}

/** Finds the places with sessions. If the setting is false, no place is read. */
export async function findInheritance(context: AgentContext): Promise<InheritedPlaces> {
  const { enabled, source } = sessionSettings(context.config).inherit;
  const [fresh, own]: [string[], string[]] = [[], []];
  const paths = enabled === false ? [] : inheritSources(context, source).flatMap((path) => placesAt(path));
  for (const path of new Set(paths)) {
    const { files, databases } = await surveyPlaces([path], null);
    if (files + databases > 0) ((await isOfStore(context, path)) ? own : fresh).push(path);
  }
  return { source, fresh, own };
}

/** Opens a sync of the inherited places. What an earlier one has read is not opened again. */
export function openInheritance(
  context: AgentContext,
  store: SessionStore,
  { fresh }: InheritedPlaces,
  given: Pick<OpenSyncOptions, "onNote" | "progress">,
): SourceSync {
  const { readKey, writeKey } = sessionSettings(context.config).inherit;
  return openSync(context, {
    ...given,
    openStore: () => Promise.resolve(store),
    purpose: "inherit",
    places: () => Promise.resolve(fresh),
    options: {
      ...(readKey === null ? {} : { readKey }),
      ...(readKey === null || writeKey === null ? {} : { key: writeKey }),
    },
  });
}
