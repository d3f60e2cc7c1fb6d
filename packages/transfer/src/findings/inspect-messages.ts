import {
  assertKnownOptions,
  createFinding,
  optionKinds,
  type OptionTable,
  runSteps,
  type Steps,
  type FindingCode,
} from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { Context } from "@throughline/history";
import { type TargetName, historyTargets, renderSteps, validationSteps } from "@throughline/history/internal";

/** Holds the options of `inspectMessages`. */
interface InspectMessagesOptions {
  /** Names the provider that the messages are for. */
  readonly provider: TargetName;
  /**
   * Names the model that gets the messages, because some rules hold for some models only.
   * @default the strictest model
   */
  readonly model?: string | null;
  /** States the path that the findings name. @default null */
  readonly path?: string | null;
}

/** The check of records reports broken pairs of a tool call and its result under these codes, so both checks agree. */
const pairCodes: ReadonlyMap<string, FindingCode> = new Map<string, FindingCode>([
  ["call-answered", "TOOL_CALL_UNANSWERED"],
  ["result-asked-for", "TOOL_RESULT_ORPHAN"],
  ["single-result", "DUPLICATE_TOOL_RESULT"],
  ["id-unique", "DUPLICATE_TOOL_CALL"],
]);

const { orNull, required, text } = optionKinds;
const messagesTable: OptionTable<InspectMessagesOptions> = {
  provider: required(text),
  model: orNull(text),
  path: orNull(text),
};

/**
 * Returns a finding for each rule of a provider that messages break, in the provider's words. Use it for messages that
 * another program built, such as a captured request.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option
 */
export function inspectMessages(messages: readonly unknown[], options: InspectMessagesOptions): readonly Finding[] {
  assertKnownOptions<InspectMessagesOptions>("inspectMessages", options, messagesTable);
  return runSteps(messageSteps(messages, options));
}

function* messageSteps(
  messages: readonly unknown[],
  { provider, model = null, path = null }: InspectMessagesOptions,
): Steps<readonly Finding[]> {
  const violations = historyTargets.has(provider) ? yield* validationSteps[provider](messages, model) : [];
  return violations.map(({ rule, path: place, text }) =>
    createFinding(pairCodes.get(rule) ?? "MESSAGES_REFUSED", `${provider} refuses ${place}: ${text}`, { path }),
  );
}

/**
 * Renders a context for every provider and returns a finding for each rule that the result would break. An empty list
 * means that the session can continue with any provider.
 */
export function inspectReplays(context: Context): readonly Finding[] {
  return runSteps(replaySteps(context));
}

/** Does the work of `inspectReplays` in steps of one message per provider, so that a caller can pause in between. */
export function* replaySteps(context: Context): Steps<readonly Finding[]> {
  const model = context.model?.modelId ?? null;
  const findings: Finding[] = [];
  for (const { name, mapping } of historyTargets.values()) {
    const { messages } = yield* renderSteps(context, mapping, {});
    if (messages.length === 0) continue;
    for (const finding of yield* messageSteps(messages, { provider: name, model })) findings.push(finding);
  }
  return findings;
}
