import { quote, resolveSession, sessionName, shellWord, systemClock } from "@throughline/core/internal";
import { decideApproval, listApprovals, withdrawal } from "@throughline/session/internal";
import type { DecideApprovalOptions, PendingApproval } from "@throughline/session/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { counted } from "../counted.ts";
import { usageError } from "../error-report.ts";
import { shownName } from "../session-names.ts";
import { terminalSafeLine } from "../terminal-safe.ts";
import { timeText } from "../time-text.ts";

/** Longer arguments of a call are cut in the list for people. */
const shownChars = 400;

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [key = "", ...words] = input.arguments;
  const decision = decisionOf(input.options, words.join(" ").trim());
  if (decision === null) return list(context, key);
  const { callId, answer } = decision;
  const { output, scope, signal } = context;
  const store = await context.openStore("write");
  const { ref, sessionId } = await resolveSession(store, key, scope, { isExact: true, signal });
  const decided = await decideApproval(store, ref, { callId, answer, clock: systemClock });
  if (output.isJson) await output.object({ kind: "decision", key: ref.key, sessionId, ...decided });
  else await output.line(`${terminalSafeLine(callId)}: ${decided.isAllowed ? "approved" : "refused"}`);
  const left = await listApprovals(store, ref, systemClock);
  output.note(
    left.length > 0
      ? `${counted(left.length, "call")} still waiting.`
      : "Nothing waits any more. The program that resumes the turn runs what was approved.",
  );
  return 0;
}

interface ApprovalOptions {
  readonly approve?: string;
  readonly refuse?: string;
  readonly withdraw?: string;
}

/** Returns null without an option that decides. @throws {ThroughlineError} USAGE */
function decisionOf(options: ApprovalOptions, words: string): Pick<DecideApprovalOptions, "callId" | "answer"> | null {
  const { approve, refuse, withdraw } = options;
  const given = [approve, refuse, withdraw].filter((callId) => callId !== undefined);
  if (given.length > 1) throw usageError("Give one of --approve, --refuse and --withdraw.");
  if (refuse === undefined && withdraw === undefined && words !== "")
    throw usageError("Only --refuse and --withdraw take words: --refuse ID TEXT.");
  if (approve !== undefined) return { callId: approve, answer: { approve: { by: "person" } } };
  if (withdraw !== undefined) return { callId: withdraw, answer: withdrawal(words || undefined) };
  if (refuse === undefined) return null;
  return { callId: refuse, answer: { refuse: words || "The user refused the call.", by: "person" } };
}

async function list(context: CommandContext, key: string): Promise<number> {
  const { output, scope, signal } = context;
  const store = await context.openStore("read");
  const state = await resolveSession(store, key, scope, { signal });
  const { ref, sessionId } = state;
  const approvals = await listApprovals(store, ref, systemClock);
  const name = output.isJson ? sessionName(state) : await shownName(store, state, signal);
  for (const approval of approvals) {
    if (output.isJson) await output.object({ kind: "approval", key: ref.key, sessionId, name, ...approval });
    else await print(context, approval);
  }
  if (output.isJson) await output.end(approvals.length);
  else if (approvals.length === 0) output.note(`No call waits for a decision in ${quote(name)}.`);
  else output.note(`Decide with \`throughline approvals ${shellWord(ref.key)} --approve ID\` or \`--refuse ID TEXT\`.`);
  return 0;
}

async function print(
  { output }: CommandContext,
  { callId, tool, arguments: input, facts, askedAtMs, expiresAtMs }: PendingApproval,
): Promise<void> {
  const until = expiresAtMs === null ? "" : `, refused at ${timeText(expiresAtMs)} without a decision`;
  const asked = askedAtMs === null ? "" : `  asked at ${timeText(askedAtMs)}${until}`;
  await output.line({ text: terminalSafeLine(tool), style: "bold" }, `  ${terminalSafeLine(callId)}${asked}`);
  await output.line(`  ${shortJson(input)}`);
  if (Object.keys(facts).length > 0) await output.line({ text: `  ${shortJson(facts)}`, style: "dim" });
}

function shortJson(value: unknown): string {
  const text = terminalSafeLine(JSON.stringify(value));
  return text.length > shownChars ? `${text.slice(0, shownChars).toWellFormed()}…` : text;
}
