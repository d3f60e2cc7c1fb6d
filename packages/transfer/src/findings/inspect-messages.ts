import {
  assertKnownOptions,
  createFinding,
  optionKinds,
  type OptionTable,
  runSteps,
  type Steps,
} from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import type { FindingCode } from "@throughline/core/internal";
import type { Context } from "@throughline/history";
import type { TargetName } from "@throughline/history/internal";
import { historyTargets, renderSteps, validationSteps } from "@throughline/history/internal";

/** Options of `inspectMessages`. */
interface InspectMessagesOptions {
  /** The provider they are for. */
  readonly provider: TargetName;
  /** The model that gets them; what only some models refuse is judged by it. @default the strictest */
  readonly model?: string | null;
  /** Named in the findings. */
  readonly path?: string | null;
}

/** Findings about a pair of call and result have names of their own. */
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
 * What a provider would refuse about messages that somebody else put together, such as a captured request: each broken
 * rule in the provider's words.
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
 * Renders a context for every provider and says what any of them would still refuse. An empty list means that the
 * session can go on anywhere.
 */
export function inspectReplays(context: Context): readonly Finding[] {
  return runSteps(replaySteps(context));
}

/** What `inspectReplays` gives, a message a step for each provider. */
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
