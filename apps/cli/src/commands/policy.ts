import { sessionSettings } from "@throughline/config";
import {
  compareSendPolicyModes,
  openSendPolicy,
  planSessionReset,
  readQueueSettings,
  resolveGroupActivation,
} from "@throughline/policy/internal";
import { resolveSendPolicy } from "@throughline/policy";
import type { GroupActivation, QueueSettings, ResetPlan, SendPolicyAnswer } from "@throughline/policy/internal";
import type { SendPolicy } from "@throughline/policy";
import { resolveSession, systemClock } from "@throughline/core/internal";
import type { SessionEntry, SessionState } from "@throughline/core";
import { misspeltEntryField } from "../entry-fields.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import type { Output } from "../output.ts";
import { sendPolicyText } from "../chat/send-policy-text.ts";
import { timeText } from "../time-text.ts";

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const { output } = context;
  const found = await findPolicy(context, input);
  await (output.isJson ? output.object(policyObject(found)) : printPolicy(output, found));
  return 0;
}

/** Holds the policies that apply to one session. */
interface SessionPolicy {
  readonly session: SessionState;
  readonly answer: SendPolicyAnswer;
  /** Is null when no rule decides. */
  readonly rule: unknown;
  /** Is true when the two ways of reading the rules give different answers. */
  readonly dependsOnMode: boolean;
  readonly reset: ResetPlan;
  readonly group: ReturnType<typeof resolveGroupActivation>;
  readonly queue: QueueSettings;
}

async function findPolicy(context: CommandContext, input: CommandInput): Promise<SessionPolicy> {
  const { scope, signal, config } = context;
  const { channel, chatType } = input.options as { readonly channel?: string; readonly chatType?: string };
  const store = await context.openStore("read");
  const session = await resolveSession(store, input.arguments[0] ?? "", scope, { signal });
  const { ref, entry } = session;
  noteMisspelt(context, entry);
  const { sendPolicy: policy, reset: resetPolicy } = sessionSettings(config);
  const question = {
    key: ref.key,
    entry,
    policy,
    ...(channel === undefined ? {} : { channel }),
    ...(chatType === undefined ? {} : { chatType }),
  };
  const answer = resolveSendPolicy(question);
  const reset = await planSessionReset(store, session, {
    policy: resetPolicy,
    nowMs: systemClock.nowMs(),
    timeZone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  });
  return {
    session,
    answer,
    rule: ruleOf(policy, answer),
    dependsOnMode: compareSendPolicyModes(question).differ,
    reset,
    group: resolveGroupActivation({ key: ref.key, entry }),
    queue: readQueueSettings(entry),
  };
}

function policyObject({
  session: { ref, sessionId },
  answer,
  rule,
  dependsOnMode,
  reset,
  group,
  queue,
}: SessionPolicy): { readonly kind: "policy"; readonly [field: string]: unknown } {
  return {
    kind: "policy",
    key: ref.key,
    sessionId,
    ...answer,
    rule,
    dependsOnMode,
    groupActivation: group.isGroup ? group.activation : null,
    queue,
    enforcedBy,
    notEnforcedBy,
    reset: { isDue: reset.isDue, reason: reset.reason, dueAtMs: reset.dueAtMs, source: reset.source, ...reset.rule },
  };
}

async function printPolicy(
  output: Output,
  { session: { ref, entry }, answer, rule, dependsOnMode, reset, group, queue }: SessionPolicy,
): Promise<void> {
  await output.line({ text: ref.key, style: "bold" });
  await output.line(
    { text: answer.action, style: answer.action === "allow" ? "green" : "red" },
    `  ${sendPolicyText(answer, entry["sendPolicy"])}`,
  );
  if (rule !== null) await output.line({ text: `  ${JSON.stringify(rule)}`, style: "dim" });
  await output.line({
    text: `  held against: channel ${answer.channel ?? "unknown"}, chat type ${answer.chatType ?? "unknown"}, key ${ref.key}`,
    style: "dim",
  });
  if (answer.action === "deny")
    await output.line("  A turn stores the message and asks no model. Other sessions cannot send to this one.");
  await output.line({ text: `  enforced by: ${enforcedBy.join(", ")}`, style: "dim" });
  await output.line({ text: `  not enforced by: ${notEnforcedBy.join(", ")}`, style: "dim" });
  if (dependsOnMode)
    await output.line({ text: "  first-match and deny-overrides give different answers here", style: "yellow" });
  await output.line(`reset: ${resetText(reset)}`);
  if (group.isGroup) await output.line(`group: ${activationTexts[group.activation]}`);
  if (entry.queueMode !== undefined || queue.cap !== null) await output.line(`queue: ${queueText(queue)}`);
}

/** These callers apply the send policy before they call a model. */
const enforcedBy: readonly string[] = [
  "chat",
  "createSessions",
  "session tools",
  "framework adapters",
  "turns over HTTP",
  "gateway in guard mode",
  "gateway in stateful mode",
];
const notEnforcedBy: readonly string[] = [
  "gateway in record mode",
  "records appended without a turn",
  "Claude session store before the model is asked",
];

function ruleOf(policy: SendPolicy | null, { ruleIndex }: SendPolicyAnswer): unknown {
  return ruleIndex === null ? null : ((policy ?? openSendPolicy).rules[ruleIndex] ?? null);
}

const activationTexts: Readonly<Record<GroupActivation["activation"], string>> = {
  mention: "answers what mentions the agent, and stores the rest (groupActivation)",
  always: "answers every message (groupActivation)",
};

const queueTexts: Readonly<Record<QueueSettings["behavior"], string>> = {
  followup: "a message that arrives while a turn runs has the next turn",
  collect: "messages that arrive while a turn runs have one turn together",
  steer: "a running turn takes a message that arrives before its next model call",
  "steer-backlog":
    "a running turn takes a message that arrives before its next model call, and the next turn takes it too",
  interrupt: "a message that arrives aborts the running turn",
};

function queueText({ behavior, debounceMs, cap, drop }: QueueSettings): string {
  const pause = debounceMs > 0 ? `, ${debounceMs} ms after the last one` : "";
  const most =
    cap === null
      ? ""
      : `; at most ${cap} wait, then ${drop === "summarize" ? "the oldest is shortened" : `the ${drop === "old" ? "oldest" : "newest"} is refused`}`;
  return `${queueTexts[behavior]}${pause}${most}`;
}

function resetText({ rule, source, dueAtMs, isDue, reason }: ResetPlan): string {
  if (rule.mode === "never" || dueAtMs === null) return "never by itself";
  const when = isDue
    ? `due since ${timeText(dueAtMs)} (${reason})`
    : `due at ${timeText(dueAtMs)} without new messages`;
  return `${rule.mode}, by the ${source} rule: ${when}`;
}

/** Reports misspelled fields that would decide here. No code reads them, but their author expects an effect. */
function noteMisspelt({ output }: CommandContext, entry: SessionEntry): void {
  for (const field of Object.keys(entry)) {
    const meant = misspeltEntryField(field);
    if (meant !== null && decisive.has(meant))
      output.note(
        `The entry has a field ${JSON.stringify(field)}, which nothing reads. The field is ${JSON.stringify(meant)}.`,
      );
  }
}

const decisive: ReadonlySet<string> = new Set(["sendPolicy", "chatType", "channel"]);
