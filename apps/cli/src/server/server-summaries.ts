import { resolve } from "node:path";
import { sessionSettings } from "@throughline/config";
import { maskSecrets } from "@throughline/config/internal";
import { hasErrorCode } from "@throughline/core";
import type { ServerOptions } from "@throughline/server";
import { homeBreakers } from "../agent/open-agent.ts";
import { summaryModels } from "../agent/summary-models.ts";
import { chooseModel, type ChosenModel, type ModelChoice } from "../chat/choose-model.ts";
import { causeText } from "../chat/event-note.ts";
import type { CommandContext } from "../command.ts";

/** Who writes summaries and checkpoints that requests ask for: the models that conversations of this home ask, in their order. */
export function serverSummaries(context: CommandContext): NonNullable<ServerOptions["summaries"]> {
  const { host, output, settings } = context;
  const valueOf = (key: string): unknown => settings.find((setting) => setting.key === key)?.value ?? null;
  const session = sessionSettings(context.config);
  const note = (message: string): void => output.note(maskSecrets(message));
  const wanted = settings.find(({ key, value }) => key === "model" && value !== null);
  const breakers = homeBreakers(resolve(host.workingDirectory, String(valueOf("home"))), session, (error) =>
    note(`What is known of the summarizers cannot be kept: ${causeText(error)}`),
  );
  const chosen = reachable(
    {
      wanted: wanted === undefined ? null : { name: String(wanted.value), source: wanted.sourceName ?? wanted.source },
      session: null,
      baseUrl: valueOf("modelBaseUrl") as string | null,
      apiKey: valueOf("modelApiKey") as string | null,
      windowTokens: null,
      environment: host.environment,
    },
    note,
  );
  const { summarizers, writers, notes } = summaryModels({
    settings: session,
    chosen,
    breakers,
    environment: host.environment,
    onFailed: (name, cause) => note(`${name} wrote no summary: ${causeText(cause)}`),
  });
  for (const message of notes) note(message);
  const {
    background: _background,
    preferCheckpoint: _prefer,
    deadlineMs: _deadline,
    ...compaction
  } = session.compaction;
  return { summarizers, writers, compaction };
}

/** A server does not answer as a model: without the key of one its summaries are extracted by rules. */
function reachable(choice: ModelChoice, note: (message: string) => void): ChosenModel {
  try {
    return chooseModel(choice);
  } catch (error) {
    if (!hasErrorCode(error, "MODEL_KEY_MISSING")) throw error;
    note(`${choice.wanted?.name ?? "The model"} is asked for no summaries: ${error.message}`);
    return chooseModel({ ...choice, wanted: null, environment: {} });
  }
}
