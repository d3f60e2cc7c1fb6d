import { resolve } from "node:path";
import { sessionSettings } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { ServerOptions } from "@throughline/server";
import { modelSettings } from "../agent/model-settings.ts";
import { homeBreakers } from "../agent/open-agent.ts";
import { summaryModels } from "../agent/summary-models.ts";
import { chooseModel, type ChosenModel, type ModelChoice } from "../chat/choose-model.ts";
import { causeText } from "../chat/event-note.ts";
import type { CommandContext } from "../command.ts";

/**
 * Uses the summary models of this home's conversations, in their order, for summaries and checkpoints that requests ask
 * for.
 */
export function serverSummaries(context: CommandContext): NonNullable<ServerOptions["summaries"]> {
  const { host, output, settings } = context;
  const home = String(settings.find(({ key }) => key === "home")?.value ?? "");
  const session = sessionSettings(context.config);
  const note = (message: string): void => output.note(maskSecrets(message));
  const breakers = homeBreakers(resolve(host.workingDirectory, home), session, (error) =>
    note(`What is known of the summarizers cannot be kept: ${causeText(error)}`),
  );
  const chosen = reachable({ ...modelSettings(context), session: null, windowTokens: null }, note);
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
