import { isFields } from "@throughline/core/internal";
import type { ModelName } from "@throughline/tokens/internal";
import type { Remedied } from "./apply-remedy.ts";
import { fingerprint } from "./fingerprint.ts";
import type { GuardChange } from "./guard-change.ts";
import type { GuardedRequest } from "./guard-options.ts";
import type { OverflowKind } from "./overflow.ts";
import { bindsThinking, stripThinking, thinkingChange } from "./strip-thinking.ts";

/**
 * Removes the thinking that was signed together with the changed content. The removal is a change of its own, so that
 * later calls repeat it. The provider refuses a signature whose preceding content differs.
 */
export function unbound(
  before: GuardedRequest,
  { request, changes }: Remedied,
  reason: OverflowKind,
  model: ModelName,
): Remedied {
  if (request.messages === before.messages || !bindsThinking(model)) return { request, changes };
  const first = Math.max(0, Math.min(...changes.map(({ index }) => index)));
  const messages = stripThinking(request.messages, first);
  const thinking = thinkingChange(request.messages, messages, reason);
  const named = changes.map((change) => (change.what === "history" ? replacing(before.messages, change) : change));
  return {
    request: { ...request, messages },
    changes: thinking === null ? named : [...named, thinking],
  };
}

function replacing(messages: readonly unknown[], change: GuardChange): GuardChange {
  const [first] = messages;
  return isFields(first) ? { ...change, instead: { messages: messages.length, first: fingerprint(first) } } : change;
}
