import { chooseModel, homeBreakers, modelChoice, summaryModels } from "@throughline/agent/internal";
import type { ChosenModel, ModelChoice } from "@throughline/agent/internal";
import { sessionSettings } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { ServerOptions } from "@throughline/server";
import { causeText } from "@throughline/core/internal";
import type { CommandContext } from "../command.ts";

/**
 * Uses the summary models of this home's conversations, in their order, for summaries and checkpoints that requests ask
 * for.
 */
export function serverSummaries(context: CommandContext): NonNullable<ServerOptions["summaries"]> {
  const { host, output } = context;
  const session = sessionSettings(context.config);
  const note = (message: string): void => output.note(maskSecrets(message));
  const breakers = homeBreakers(context, session, note);
  const chosen = reachable({ ...modelChoice(context), session: null, windowTokens: null }, note);
  const { summarizers, writers, notes } = summaryModels({
    settings: session,
    chosen,
    breakers,
    environment: host.environment,
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
