import { sessionSettings } from "@throughline/config";
import type { SessionRef, SessionStore } from "@throughline/core";
import { openConversation } from "../agent/open-conversation.ts";
import type { CommandContext, CommandInput } from "../command.ts";
import type { Conversation } from "../chat/conversation.ts";
import { runOnce } from "../chat/run-once.ts";
import { runRepl } from "../chat/run-repl.ts";
import { usageError } from "../error-report.ts";
import { offerImport } from "../inherit/offer-import.ts";
import { freeRef, isTerminalKey, refsOf, terminalSessionKey } from "@throughline/queries/internal";
import { listSessions, resolveSession } from "@throughline/queries";
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
  const ref = await startingRef(context, store, options.key ?? sessionSettings(context.config).defaultKey);
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

/** The session of the key, given or configured, which may be new; else the one that was used last here; else a new one. */
async function startingRef(context: CommandContext, store: SessionStore, key: string | null): Promise<SessionRef> {
  const { scope, signal } = context;
  const { namespace, agentId } = scope;
  if (key === null)
    return (
      (await lastRef(context, store)) ??
      (await freeRef(store, sessionRef({ key: terminalSessionKey(agentId, "chat"), namespace, agentId })))
    );
  try {
    const state = await resolveSession(store, key, scope, { isExact: true, signal });
    if (!state.archived) return state.ref;
    throw new ThroughlineError("SESSION_ARCHIVED", `${key} is archived.`, {
      details: { ...state.ref },
      remedy: `Restore it first: \`throughline restore --archive ${state.sessionId}\`.`,
    });
  } catch (error) {
    const [ref] = refsOf(key, scope);
    if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    if (ref === undefined)
      throw new ThroughlineError("KEY_INVALID", `The session key ${JSON.stringify(key)} cannot be used.`);
    return ref;
  }
}

/**
 * The newest session of the terminal. Imports may bring newer sessions of channels, groups and jobs. Others would read
 * there what the user writes here, so `chat` resumes them by their key only.
 */
async function lastRef({ output, scope, signal }: CommandContext, store: SessionStore): Promise<SessionRef | null> {
  const { namespace, agentId } = scope;
  let passed: SessionRef | null = null;
  let found: SessionRef | null = null;
  for await (const { ref } of listSessions(store, { namespace, agentId, limit: 20, signal })) {
    if (isTerminalKey(ref.key)) found = ref;
    else passed ??= ref;
    if (found !== null) break;
  }
  if (passed !== null)
    output.note(
      `${passed.key} was used last, but it belongs to a channel or a job. ${found === null ? "A new session is created" : `Resuming ${found.key}`} instead; --key resumes any session.`,
    );
  return found;
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
