import type { SessionRef, SessionStore } from "@throughline/core";
import { openConversation } from "../agent/open-conversation.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import type { Conversation } from "../chat/conversation.ts";
import { runOnce } from "../chat/run-once.ts";
import { runRepl } from "../chat/run-repl.ts";
import { usageError } from "../error-report.ts";
import { offerImport } from "../inherit/offer-import.ts";
import { freeRef, labelKey } from "../new-session-key.ts";
import { refsOf, resolveSession } from "../resolve-session.ts";
import { hasErrorCode, sessionRef, ThroughlineError } from "@throughline/core";

export interface ChatOptions {
  readonly key?: string;
  readonly once?: string;
  readonly whenBusy?: "queue" | "reject" | "branch";
}

/** Talks to an agent: on a terminal turn by turn, else one turn of what stdin says. */
export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const options = input.options as ChatOptions;
  const { output } = context;
  const isInteractive = options.once === undefined && isTerminal(context);
  if (isInteractive && output.isJson)
    throw usageError("--json is for one turn: give its text with --once or on stdin.");
  const text = isInteractive ? null : (options.once ?? (await readInput(context)));
  if (text !== null && text.trim() === "") throw usageError("There is nothing to say: --once TEXT, or text on stdin.");
  const store = await context.openStore("write");
  await offerImport(context, store, { canAsk: isInteractive });
  const ref = await startingRef(context, store, options.key ?? null);
  await using conversation: Conversation = await openConversation(context, store, ref);
  const whenBusy = options.whenBusy ?? null;
  return text === null
    ? await runRepl(context, conversation, { whenBusy })
    : await runOnce(context, conversation, { text, whenBusy });
}

function isTerminal({ host, settings }: CommandContext): boolean {
  const isInputAllowed = settings.find(({ key }) => key === "input")?.value !== false;
  return isInputAllowed && host.stdin.isTTY === true && host.stdout.isTTY === true;
}

/** The session of the key, which may be new; else the one that was used last; else a new one. */
async function startingRef(
  { scope, signal }: CommandContext,
  store: SessionStore,
  key: string | null,
): Promise<SessionRef> {
  const { namespace, agentId } = scope;
  if (key === null) {
    const { sessions } = await store.list({ namespace, agentId, limit: 1, signal });
    return (
      sessions[0]?.ref ?? (await freeRef(store, sessionRef({ key: labelKey(agentId, "chat"), namespace, agentId })))
    );
  }
  try {
    const state = await resolveSession(store, key, scope, { isExact: true, signal });
    if (!state.archived) return state.ref;
    throw new ThroughlineError("SESSION_ARCHIVED", `${key} is archived.`, {
      details: { ...state.ref },
      remedy: `Restore it first: throughline restore --archive ${state.sessionId}`,
    });
  } catch (error) {
    const [ref] = refsOf(key, scope);
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    if (ref === undefined)
      throw new ThroughlineError("KEY_INVALID", `The session key ${JSON.stringify(key)} cannot be used.`);
    return ref;
  }
}

async function readInput({ host, signal }: CommandContext): Promise<string> {
  if (host.stdin.isTTY === true) return "";
  const chunks: Buffer[] = [];
  const stop = (): void => void host.stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of host.stdin) chunks.push(Buffer.from(chunk as Uint8Array));
  } finally {
    signal.removeEventListener("abort", stop);
  }
  return Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
}
