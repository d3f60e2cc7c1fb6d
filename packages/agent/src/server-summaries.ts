import type { CheckpointWriter } from "@throughline/checkpoint";
import { sessionSettings } from "@throughline/config";
import type { SessionSettings } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { Summarizer } from "@throughline/core";
import { causeText } from "@throughline/core/internal";
import type { AgentContext } from "./agent-context.ts";
import { chooseModel, modelChoice } from "./choose-model.ts";
import type { ChosenModel, ModelChoice } from "./choose-model.ts";
import { homeBreakers } from "./home-breakers.ts";
import { summaryModels } from "./summary-models.ts";

/** Holds what a server needs for the summaries and checkpoints that its requests ask for. */
export interface ServerSummaries {
  readonly summarizers: readonly Summarizer[];
  readonly writers: readonly CheckpointWriter[];
  readonly compaction: Omit<SessionSettings["compaction"], "background">;
  /** Null if summaries are never repeated. */
  readonly retry: Omit<SessionSettings["retry"], "intervalSeconds"> | null;
}

/** Uses the summary models of the agent's conversations, in their order. `note` receives sentences for people. */
export function serverSummaries(context: AgentContext, note: (message: string) => void): ServerSummaries {
  const session = sessionSettings(context.config);
  const breakers = homeBreakers(context, session, note);
  const chosen = reachable({ ...modelChoice(context), session: null, windowTokens: null }, note);
  const { summarizers, writers, notes } = summaryModels({
    settings: session,
    chosen,
    breakers,
    environment: context.environment,
    onFailed: (name, cause) => note(`${name} wrote no summary: ${causeText(cause)}`),
  });
  for (const message of notes) note(message);
  const { background: _background, ...compaction } = session.compaction;
  const { intervalSeconds, ...retry } = session.retry;
  return { summarizers, writers, compaction, retry: intervalSeconds === 0 ? null : retry };
}

/** A server needs no model for answers. Without the model's key its summaries are extracted by rules. */
function reachable(choice: ModelChoice, note: (message: string) => void): ChosenModel {
  try {
    return chooseModel(choice);
  } catch (error) {
    if (!hasErrorCode(error, "MODEL_KEY_MISSING")) throw error;
    note(`${choice.wanted?.name ?? "The model"} is asked for no summaries: ${error.message}`);
    return chooseModel({ ...choice, wanted: null, environment: {} });
  }
}
