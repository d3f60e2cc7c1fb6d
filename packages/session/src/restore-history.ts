import { limitsOf, safePromptTokens } from "@throughline/guard/internal";
import type { WindowCut } from "@throughline/history/internal";
import { estimateContext } from "@throughline/tokens";
import type { AheadCounter } from "@throughline/tokens/internal";
import { isSameCut } from "./call-record.ts";
import { estimatePrompt, measuredSize, prefixOf, prefixTokens, promptOf, type PromptPrefix } from "./prompt.ts";
import type { Emit } from "./session-event.ts";
import type { SessionLearning } from "./session-learning.ts";
import type { SessionLog } from "./session-log.ts";
import type { TurnSettings } from "./turn-settings.ts";

export interface RestoreOptions {
  readonly settings: TurnSettings;
  readonly counter: AheadCounter;
  readonly learning: SessionLearning;
  /** Holds the window that the options or the provider state; null when it is unknown. */
  readonly windowTokens: number | null;
  readonly emit: Emit | null;
}

/**
 * Keeps the cut of earlier calls. A history that is longer than the window is cut at a turn when the settings require
 * it. The decision is made once after the history was read, and again for another window. A cut stands until a
 * compaction, so that later calls begin at the same message, also in another process.
 */
export async function restoreHistory(log: SessionLog, options: RestoreOptions): Promise<void> {
  await log.history.prepare();
  const windowTokens = knownWindow(options);
  if (log.cutForWindow === windowTokens) return;
  log.cutForWindow = windowTokens;
  const recorded = recordedCut(log, windowTokens);
  if (!isSameCut(recorded, log.facts.lastCall?.cut ?? null)) log.facts.forgetPlaces();
  if (recorded !== null || log.cut !== null) await log.limit({ recorded });
  if (options.settings.restore === "cut" && windowTokens !== null)
    await cutToWindow(log, windowTokens, recorded, options);
}

/** A provider's refusals may have stated a smaller window than the options, so the smaller one counts. */
function knownWindow({ settings: { model }, learning, windowTokens }: RestoreOptions): number | null {
  const name = { provider: model.chat.provider, modelId: model.modelId };
  const known = Math.min(windowTokens ?? Infinity, limitsOf(learning.limits, name).windowTokens ?? Infinity);
  return Number.isFinite(known) && known > 0 ? known : null;
}

/**
 * Returns the cut of the newest call. Null when that call asked another model, or when the window has become larger.
 */
function recordedCut({ facts: { lastCall }, target }: SessionLog, windowTokens: number | null): WindowCut | null {
  if (lastCall === null || (windowTokens ?? 0) > (lastCall.windowTokens ?? Infinity)) return null;
  const { api, provider, model } = lastCall;
  const isSameModel = api === target.api && provider === target.provider && model === target.modelId;
  return isSameModel ? lastCall.cut : null;
}

async function cutToWindow(
  log: SessionLog,
  windowTokens: number,
  recorded: WindowCut | null,
  options: RestoreOptions,
): Promise<void> {
  const { settings, counter, emit } = options;
  const { model, system, tools } = settings;
  // A system prompt from a function is not known yet. The free part of the window leaves room for it.
  const prefix = prefixOf(typeof system === "string" ? system : null, tools.definitions);
  const mostTokens = safePromptTokens(windowTokens, model.maxOutputTokens === undefined ? 8192 : model.maxOutputTokens);
  if ((await promptTokens(log, prefix, options)) <= mostTokens) return;
  const maxTokens = mostTokens - prefixTokens(prefix, counter);
  const cut = maxTokens > 0 ? await findCut(log, maxTokens, recorded, options) : null;
  if (cut === null || isSameCut(cut, recorded)) return;
  log.unlimit();
  await log.history.prepare();
  const allMessages = log.history.context().messages.length;
  await log.limit({ recorded: cut });
  log.facts.forgetPlaces();
  const leftOutMessages = allMessages - log.history.context().messages.length;
  emit?.({ name: "history.cut", leftOutMessages, fromSeq: cut.fromSeq, windowTokens });
}

async function promptTokens(
  log: SessionLog,
  prefix: PromptPrefix,
  { counter, learning }: RestoreOptions,
): Promise<number> {
  const prompt = promptOf(log, prefix.system, log.facts.keptChanges);
  const actual = measuredSize(log, prompt.messages, prefix, counter);
  const { tokens } = await estimatePrompt(prompt, prefix.tools, {
    counter,
    calibration: learning.calibration,
    actual,
  });
  return tokens;
}

async function findCut(
  log: SessionLog,
  maxTokens: number,
  recorded: WindowCut | null,
  { counter, learning: { calibration } }: RestoreOptions,
): Promise<WindowCut | null> {
  const cut = await log.limit({
    maxTokens,
    countTokens: (message) => estimateContext({ messages: [message] }, { counter, calibration, actual: null }).tokens,
    recorded,
  });
  const lastSeq = log.history.context().messages.at(-1)?.seq;
  // The whole history was written with the beginning that is cut off now. Therefore `metAtSeq` is the last message, not
  // the one at which the limit was met.
  return cut === null || lastSeq === undefined || isSameCut(cut, recorded) ? cut : { ...cut, metAtSeq: lastSeq };
}
