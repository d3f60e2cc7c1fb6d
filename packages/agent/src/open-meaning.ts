import { join } from "node:path";
import { settingOf } from "@throughline/config/internal";
import type { SessionStore } from "@throughline/core";
import { causeText, systemClock } from "@throughline/core/internal";
import type { EmbedderChoice } from "@throughline/embedders/internal";
import { createSummarizerBreakers } from "@throughline/summarizer-providers";
import type { MeaningIndex } from "@throughline/tools/internal";
import { type AgentContext, homeOf } from "./agent-context.ts";
import { readHomeFile, writeHomeFile } from "./node/home-file.ts";

interface MeaningParts {
  readonly onNote: (message: string) => void;
}

/**
 * An embedder that failed three times in a row is not asked for this time. A summarizer pauses for 30 minutes, because each try costs
 * a model call and the time of a turn. A try of an embedder costs a question 1.5 s at most, and a local server that loads
 * its model or is busy answers again within a minute. For the same reason the next process starts without a pause.
 */
const pauseMs = 60_000;

/**
 * Opens the search by meaning that `memory.search.embedder` names; null without one. What keeps it from working is noted, and words
 * are searched all the same.
 */
export async function openMeaning(
  context: AgentContext,
  store: SessionStore,
  { onNote }: MeaningParts,
): Promise<MeaningIndex | null> {
  const { config, environment, scope } = context;
  const choice = settingOf(config.settings, "memory.search.embedder") as EmbedderChoice | null;
  if (choice === null) return null;
  const { vectors } = store;
  if (vectors === undefined) {
    onNote(`The ${store.capabilities.name} store keeps no vectors, so memory_search compares words only.`);
    return null;
  }
  try {
    const { createEmbedder } = await import("@throughline/embedders/internal");
    const before = settingOf(config.settings, "memory.search.embedderBefore") as EmbedderChoice | null;
    const { createTokenBudget, MeaningIndex: Index } = await import("@throughline/tools/internal");
    const path = join(homeOf(context), "embedded-tokens.json");
    const breakers = createSummarizerBreakers({ resetMs: pauseMs });
    return new Index({
      store,
      vectors,
      scope: { namespace: scope.namespace, agentId: scope.agentId },
      embedder: createEmbedder(choice, environment),
      before: before === null ? null : createEmbedder(before, environment),
      breaker: (name, work, signal) => breakers.run(name, work, signal),
      budget: createTokenBudget({
        maxTokensPerDay: Number(settingOf(config.settings, "memory.search.maxTokensPerDay")),
        clock: systemClock,
        read: () => readHomeFile(path),
        write: (spent) => writeHomeFile(path, spent),
      }),
      onNote,
    });
  } catch (error) {
    onNote(`memory_search compares words only: ${causeText(error)}`);
    return null;
  }
}
