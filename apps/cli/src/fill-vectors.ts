import type { openMeaning } from "@throughline/agent/internal";
import { settingOf } from "@throughline/config/internal";
import type { SessionStore } from "@throughline/core";
import { causeText, systemClock } from "@throughline/core/internal";
import type { CommandContext } from "./command.ts";
import { runBeside } from "./run-beside.ts";

type Meaning = NonNullable<Awaited<ReturnType<typeof openMeaning>>>;

/** Fills vectors until it is disposed, and searches in them. */
export interface VectorFilling extends AsyncDisposable {
  /** Returns the search by meaning of an agent; null for one whose vectors are not filled, and in a store that keeps none. */
  meaningOf(agentId: string): Promise<Meaning | null>;
}

/** Records of other processes and clients are looked for in this interval. */
const lookMs = 10_000;

/**
 * Keeps filling the vectors of some agents beside the work of a command, until it is disposed. It does nothing unless the
 * configuration names an embedder. A failure is printed once and never ends the command.
 */
export function fillVectors(
  context: CommandContext,
  agentIds: readonly string[],
  openStore: () => Promise<SessionStore>,
): VectorFilling | null {
  if (settingOf(context.settings, "memory.search.embedder") === null) return null;
  const indexes = openIndexes(context, agentIds, openStore);
  const running = runBeside(context.signal, (signal) => keepFilling(indexes, signal));
  return {
    meaningOf: async (agentId) => (await indexes.open()).byAgent.get(agentId) ?? null,
    [Symbol.asyncDispose]: () => Promise.resolve(running[Symbol.asyncDispose]()),
  };
}

/** A store that was replaced is opened again, and gets indexes of its own. */
interface Filled {
  readonly store: SessionStore;
  readonly byAgent: ReadonlyMap<string, Meaning>;
}

interface Indexes {
  /** Opens the indexes of the store in force. Calls run one after another. */
  open(): Promise<Filled>;
  close(): Promise<void>;
  readonly onNote: (message: string) => void;
}

function openIndexes(
  context: CommandContext,
  agentIds: readonly string[],
  openStore: () => Promise<SessionStore>,
): Indexes {
  let filled = null as Filled | null;
  let opening: Promise<unknown> = Promise.resolve();
  let lastNote = "";
  const onNote = (message: string): void => {
    // Another agent, or the next look, says the same.
    if (message !== lastNote && !context.signal.aborted) context.output.note(message);
    lastNote = message;
  };
  const openNow = async (): Promise<Filled> => {
    const store = await openStore();
    if (filled?.store === store) return filled;
    await closeAll(filled);
    filled = { store, byAgent: await openAll(context, agentIds, store, onNote) };
    return filled;
  };
  return {
    onNote,
    open() {
      const opened = opening.then(openNow);
      opening = opened.catch(() => undefined);
      return opened;
    },
    async close() {
      await opening;
      await closeAll(filled);
    },
  };
}

async function keepFilling({ open, close, onNote }: Indexes, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      for (const index of (await open()).byAgent.values()) index.poke();
    } catch (error) {
      if (!signal.aborted) onNote(`Vectors for search by meaning are not filled at the moment: ${causeText(error)}`);
    }
    await systemClock.sleep(lookMs, signal).catch(() => undefined);
  }
  await close();
}

async function openAll(
  context: CommandContext,
  agentIds: readonly string[],
  store: SessionStore,
  onNote: (message: string) => void,
): Promise<ReadonlyMap<string, Meaning>> {
  const { openMeaning: open } = await import("@throughline/agent/internal");
  const opened = await Promise.all(
    agentIds.map(async (agentId) => {
      const index = await open({ ...context, scope: { ...context.scope, agentId } }, store, { onNote });
      return [agentId, index] as const;
    }),
  );
  return new Map(opened.flatMap(([agentId, index]) => (index === null ? [] : [[agentId, index] as const])));
}

async function closeAll(filled: Filled | null): Promise<void> {
  for (const index of filled?.byAgent.values() ?? []) await index.close();
}
