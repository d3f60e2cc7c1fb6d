import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { createFinding } from "@throughline/core";
import type { Finding, FindingCode } from "@throughline/core";
import type { Context, TargetName } from "@throughline/history";
import { historyTargets } from "@throughline/history";

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
  const { provider, model = null, path = null } = options;
  const violations = historyTargets.get(provider)?.validate(messages, model) ?? [];
  return violations.map(({ rule, path: place, text }) =>
    createFinding(pairCodes.get(rule) ?? "MESSAGES_REFUSED", `${provider} refuses ${place}: ${text}`, { path }),
  );
}

/**
 * Renders a context for every provider and says what any of them would still refuse. An empty list means that the
 * session can go on anywhere.
 */
export function inspectReplays(context: Context): readonly Finding[] {
  const model = context.model?.modelId ?? null;
  return [...historyTargets.values()].flatMap(({ name, render }) => {
    const { messages } = render(context);
    return messages.length === 0 ? [] : inspectMessages(messages, { provider: name, model });
  });
}
