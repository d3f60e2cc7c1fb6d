import type { SessionState } from "@throughline/core";
import { givenName, sessionRow } from "@throughline/core/internal";
import { z } from "zod";
import { argumentsOf, wholeNumber } from "./call-arguments.ts";
import type { CallResult, MemoryCall } from "./memory-call.ts";
import { notice, plainName, quotedName, timeText, timeValue, tokensOf } from "./result-text.ts";
import { folderText, mostNameCharacters, sessionFacts } from "./session-facts.ts";
import { agentBeside, placeOf } from "./session-place.ts";
import { CallRefusal } from "./tool-failure.ts";

const usualSessions = 20;
const mostSessions = 50;

interface ListArguments {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly prefix?: string | undefined;
}

export const listInput: z.ZodType<ListArguments> = argumentsOf({
  limit: wholeNumber(1, mostSessions).optional().describe(`How many. Default: ${usualSessions}.`),
  cursor: z.string().max(4000).optional().describe("nextCursor of the list before."),
  prefix: z.string().max(512).optional().describe("Only keys that begin with this."),
});

const sessionShape = z.object({
  key: z.string(),
  agent: z.string().optional(),
  label: z.string().nullable(),
  name: z.string(),
  program: z.string().optional(),
  folder: z.string().optional(),
  messages: z.number(),
  lastActivity: z.string().nullable(),
});

export const listOutput: z.ZodObject = z.object({
  notice: z.string(),
  sessions: z.array(sessionShape),
  nextCursor: z.string().nullable(),
});

type ShownSession = z.infer<typeof sessionShape>;

/** Lists the newest sessions first, within each agent and each allowed key prefix. */
export async function listSessions(call: MemoryCall, args: ListArguments): Promise<CallResult> {
  const { prefix = "", cursor } = args;
  for (let limit = args.limit ?? usualSessions; ; limit = Math.max(1, Math.floor(limit / 2))) {
    const page = await listPage(call, { prefix: prefix.toWellFormed(), cursor, limit });
    const result = resultOf(
      page.sessions.map((state) => shownSession(state, call.scope.agentId)),
      page.nextCursor,
    );
    const tokens = tokensOf(result.text) + tokensOf(JSON.stringify(result.structured));
    // A smaller page is requested again, because a cursor names the end of a page.
    if (limit === 1 || tokens <= call.options.resultTokens) return result;
  }
}

/** Combines the parts of the view, because the store lists one agent and one key prefix at a time. */
export async function listPage(
  { view, signal }: MemoryCall,
  { prefix, cursor, limit }: { readonly prefix: string; readonly cursor: string | undefined; readonly limit: number },
): Promise<{ readonly sessions: readonly SessionState[]; readonly nextCursor: string | null }> {
  const parts = view.parts(prefix);
  let at = cursor === undefined ? { part: 0, inPart: null as string | null } : placeOfCursor(cursor);
  const sessions: SessionState[] = [];
  for (;;) {
    const part = parts[at.part];
    if (part === undefined) return { sessions, nextCursor: null };
    const page = await view.list(part, {
      limit: limit - sessions.length,
      signal,
      ...(at.inPart === null ? {} : { cursor: at.inPart }),
    });
    sessions.push(...page.sessions);
    at = page.nextCursor === null ? { part: at.part + 1, inPart: null } : { ...at, inPart: page.nextCursor };
    if (at.part === parts.length) return { sessions, nextCursor: null };
    if (sessions.length >= limit) return { sessions, nextCursor: cursorOf(at) };
  }
}

/**
 * Encodes the part's number and the store's cursor. A part outside the view has no number, so a client cannot name it.
 */
function cursorOf(place: { readonly part: number; readonly inPart: string | null }): string {
  return Buffer.from(JSON.stringify([place.part, place.inPart])).toString("base64url");
}

const cursorShape = z.tuple([z.int().min(0), z.string().nullable()]);

function placeOfCursor(cursor: string): { part: number; inPart: string | null } {
  try {
    const [part, inPart] = cursorShape.parse(JSON.parse(Buffer.from(cursor, "base64url").toString()));
    return { part, inPart };
  } catch (cause) {
    throw new CallRefusal("The cursor cannot be read. Start the list again without one.", { cause });
  }
}

function shownSession(state: SessionState, ownAgent: string): ShownSession {
  const row = sessionRow(state);
  const label = givenName(state.entry);
  const agent = agentBeside(state.ref, ownAgent);
  return {
    key: row.key,
    ...(agent === null ? {} : { agent }),
    label: label === null ? null : plainName(label, mostNameCharacters),
    ...sessionFacts(row),
    messages: row.messageCount,
    lastActivity: timeValue(row.updatedAtMs),
  };
}

function resultOf(sessions: readonly ShownSession[], nextCursor: string | null): CallResult {
  const structured = { notice, sessions: [...sessions], nextCursor };
  if (sessions.length === 0) return { text: "[No sessions.]", structured };
  const lines = sessions.map(({ label, name: _name, program, folder, messages, lastActivity, ...ref }) => {
    const name = label === null ? "" : ` ${quotedName(label, mostNameCharacters)}`;
    const from = program === undefined ? "" : `, from ${program}`;
    const time = timeText(lastActivity === null ? null : Date.parse(lastActivity));
    return `${placeOf(ref)}${name}${from}${folderText(folder)}, ${messages} messages, ${time}`;
  });
  const more = nextCursor === null ? [] : [`[There are more: ask with cursor ${nextCursor}.]`];
  return { text: [`[${notice}]`, ...lines, ...more].join("\n"), structured };
}
