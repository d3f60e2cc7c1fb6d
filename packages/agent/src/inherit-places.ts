import { join } from "node:path";
import { parseStoreUrl, sessionSettings } from "@throughline/config";
import type { SessionSettings } from "@throughline/config/internal";
import type { SessionStore } from "@throughline/core";
import { foreignPlaces, isOwnPlace, placesAt, programTranscripts } from "@throughline/transfer/internal";
import type { ForeignPlace, ImportSource, ProgramTranscripts } from "@throughline/transfer/internal";
import { type AgentContext, homeOf } from "./agent-context.ts";
import { answerFor, isAsBefore, readInheritState, writeInheritState } from "./inherit-state.ts";
import type { InheritState } from "./inherit-state.ts";
import { inheritSources, isSourceNamed } from "./inherited-session.ts";

/** Combines the settings of `session.inherit` with the answers of earlier runs. */
export interface Inheritance {
  readonly inherit: SessionSettings["inherit"];
  readonly state: InheritState;
  readonly statePath: string;
  /** Lists the locations of new sessions. */
  readonly fresh: readonly ForeignPlace[];
  /** Lists the locations that belong to the store itself, and are not inherited. */
  readonly own: readonly ForeignPlace[];
}

/** Finds what `session.inherit` names. If it is switched off, no location is read. */
export async function findInheritance(context: AgentContext): Promise<Inheritance> {
  const { inherit } = sessionSettings(context.config);
  const statePath = join(homeOf(context), "inherited.json");
  if (inherit.enabled === false) return { inherit, state: {}, statePath, fresh: [], own: [] };
  const state = readInheritState(statePath);
  const paths = new Set(inheritSources(context, inherit.source).flatMap((path) => placesAt(path)));
  const isNew = (place: ForeignPlace): boolean =>
    inherit.enabled === true ? !isAsBefore(place, state[place.path]) : state[place.path] === undefined;
  const found = foreignPlaces([...paths]).filter(isNew);
  const own = new Set<ForeignPlace>();
  for (const place of found) if (await isOfStore(context, place.path)) own.add(place);
  return { inherit, state, statePath, fresh: found.filter((place) => !own.has(place)), own: [...own] };
}

async function isOfStore({ workingDirectory, storeUrl }: AgentContext, path: string): Promise<boolean> {
  const address = parseStoreUrl(storeUrl, workingDirectory);
  if (address.scheme === "sqlite") return path === address.path;
  return address.scheme === "jsonl" && (await isOwnPlace(path, address.root));
}

/** Finds transcripts of programs that no setting covers, without those that were answered for. */
export function otherPlaces(
  { config, environment, userHome }: AgentContext,
  { state }: Inheritance,
): readonly ProgramTranscripts[] {
  // A user who configures a source means only that source.
  if (isSourceNamed(config)) return [];
  return programTranscripts({ environment, userHome }, (path) => state[path] === undefined);
}

/** Imports the locations one after the other, and remembers them as imported. The other program's files stay unchanged. */
export async function* inheritPlaces(
  context: AgentContext,
  store: SessionStore,
  places: readonly ForeignPlace[],
  { inherit, state, statePath }: Inheritance,
  options: {
    readonly signal?: AbortSignal;
    readonly onProgress?: (progress: { readonly path: string; readonly records: number }) => void;
  },
): AsyncGenerator<ImportSource, void, void> {
  // Most starts import nothing, so the module loads on demand.
  const { importPaths } = await import("@throughline/transfer");
  const address = parseStoreUrl(context.storeUrl, context.workingDirectory);
  const { namespace, agentId } = context.scope;
  const { readKey, writeKey } = inherit;
  for (const place of places)
    yield* importPaths(store, [place.path], {
      agentId,
      namespace,
      storeRoot: address.scheme === "jsonl" ? address.root : null,
      ...(readKey === null ? {} : { readKey }),
      ...(readKey === null || writeKey === null ? {} : { key: writeKey }),
      ...options,
    });
  const taken = Object.fromEntries(places.map((place) => [place.path, answerFor(place, "yes")]));
  writeInheritState(statePath, { ...state, ...taken });
}
