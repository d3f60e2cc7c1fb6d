import { hasErrorCode, type SearchHit, type SessionState } from "@throughline/core";
import { HitGroups, parseSearch, sessionRow } from "@throughline/core/internal";
import { quotedText, roleText } from "@throughline/tools/internal";
import { z } from "zod";
import { argumentsOf, sessionArguments, timeOf, wholeNumber } from "./call-arguments.ts";
import type { CallResult, MemoryCall } from "./memory-call.ts";
import { folderText, mostNameCharacters, sessionFacts } from "./session-facts.ts";
import { agentBeside, placeOf } from "./session-place.ts";
import { lateMs } from "./memory-view.ts";
import { notice, plainName, quotedName, timeText, timeValue, tokensOf, withoutBase64 } from "./result-text.ts";
import { CallRefusal } from "./tool-failure.ts";

const usualHits = 10;
const mostHits = 20;
const mostSnippetCharacters = 400;
/** The best places of each session are chosen from this many. */
const mostFound = 200;
const shownOfSession = 3;

interface SearchArguments {
  readonly query: string;
  readonly limit?: number | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly role?: string | undefined;
  readonly tool?: string | undefined;
  readonly key?: string | undefined;
  readonly agent?: string | undefined;
}

export const searchInput: z.ZodType<SearchArguments> = argumentsOf({
  query: z
    .string()
    .min(1)
    .max(1000)
    .describe(
      'A question, or words, names and error texts; not all have to occur. "Words in this order" and beginn* must all occur.',
    ),
  limit: wholeNumber(1, mostHits).optional().describe(`How many places. Default: ${usualHits}.`),
  since: z.string().max(40).optional().describe("Not before this date, time or age: 2026-03-01, 30d."),
  until: z.string().max(40).optional().describe("Before this date, time or age."),
  role: z.string().min(1).max(40).optional().describe("user, assistant or toolResult."),
  tool: z.string().min(1).max(200).optional().describe("Calls and results of this tool."),
  key: sessionArguments.key.optional().describe("Only this session."),
  agent: sessionArguments.agent,
});

const hitShape = z.object({
  key: z.string(),
  agent: z.string().optional(),
  seq: z.number(),
  role: z.string().nullable(),
  time: z.string().nullable(),
  snippet: z.string(),
});

type ShownHit = z.infer<typeof hitShape>;

const sessionShape = z.object({
  key: z.string(),
  agent: z.string().optional(),
  name: z.string(),
  program: z.string().optional(),
  folder: z.string().optional(),
  lastActivity: z.string().nullable(),
  more: z.number().describe("Places of the session that are not shown."),
});

type ShownSession = z.infer<typeof sessionShape>;

interface ShownGroup {
  readonly session: ShownSession;
  readonly hits: readonly ShownHit[];
}

export const searchOutput: z.ZodObject = z.object({
  notice: z.string(),
  hits: z.array(hitShape),
  sessions: z.array(sessionShape),
  isComplete: z.boolean().describe("False: there may be more places."),
  notes: z.array(z.string()).describe("What was not compared by meaning."),
});

export async function searchSessions(call: MemoryCall, args: SearchArguments): Promise<CallResult> {
  const { view, signal, options } = call;
  const { query, limit = usualHits } = args;
  if (parseSearch(query.toWellFormed()).clauses.length === 0)
    throw new CallRefusal("The query needs a word: it has no letter and no digit.");
  const session = args.key === undefined ? null : await view.find(args.key, args.agent, signal);
  const { groups, isWhole, notes } = await foundGroups(call, args, session);
  const shown: ShownGroup[] = [];
  let left = limit;
  let isComplete = isWhole;
  for (const { first, best, more } of groups.take()) {
    const state = session ?? (left > 0 ? await sessionOf(call, first) : null);
    const hits = state === null ? [] : best.slice(0, left);
    const hidden = best.length - hits.length + more;
    isComplete &&= hits.length > 0;
    left -= hits.length;
    if (state !== null && hits.length > 0)
      shown.push({
        session: shownSession(state, hidden, call.scope.agentId),
        hits: hits.map((hit) => shownHit(hit, call.scope.agentId)),
      });
  }
  return withinLimit(shown, { isComplete, notes }, options.resultTokens);
}

interface FoundPlaces {
  readonly groups: HitGroups;
  readonly isWhole: boolean;
  readonly notes: readonly string[];
}

/** Groups the places by session. A call for one session gets as many of its places as it asks for. */
async function foundGroups(
  call: MemoryCall,
  args: SearchArguments,
  session: SessionState | null,
): Promise<FoundPlaces> {
  const { view, signal } = call;
  const { query, limit = usualHits, role, tool } = args;
  const sinceMs = timeOf("since", args.since);
  const untilMs = timeOf("until", args.until);
  let isWhole = true;
  const notes: string[] = [];
  const { isRanked, hits } = view.search({
    text: query.toWellFormed(),
    session,
    signal,
    isLate: call.isLate,
    // One extra hit shows that there are more.
    limit: mostFound + 1,
    onCut: () => (isWhole = false),
    onNote: (note) => notes.push(note),
    ...(role === undefined ? {} : { role }),
    ...(tool === undefined ? {} : { tool }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(untilMs === undefined ? {} : { untilMs }),
  });
  const groups = new HitGroups(session === null ? shownOfSession : limit, { isRanked });
  let count = 0;
  for await (const hit of hits) {
    if (count === mostFound) return { groups, isWhole: false, notes };
    count += 1;
    groups.add(hit);
  }
  return { groups, isWhole, notes };
}

/** Returns null if the session was removed or archived meanwhile. */
async function sessionOf({ view, isLate, signal }: MemoryCall, { ref }: SearchHit): Promise<SessionState | null> {
  try {
    return await view.find(ref.key, ref.agentId, isLate() ? AbortSignal.timeout(lateMs) : signal);
  } catch (error) {
    if (hasErrorCode(error, "SESSION_NOT_FOUND")) return null;
    throw error;
  }
}

/** States what the shown places leave out. */
interface LeftOut {
  readonly isComplete: boolean;
  readonly notes: readonly string[];
}

function withinLimit(groups: ShownGroup[], { isComplete: isWhole, notes }: LeftOut, most: number): CallResult {
  let isComplete = isWhole;
  for (;;) {
    const result = resultOf(groups, { isComplete, notes });
    const last = groups.at(-1);
    const isSmallest = groups.length <= 1 && (last?.hits.length ?? 0) <= 1;
    if (isSmallest || tokensOf(result.text) + tokensOf(JSON.stringify(result.structured)) <= most) return result;
    const kept = last?.hits.slice(0, -1) ?? [];
    groups.pop();
    if (last !== undefined && kept.length > 0)
      groups.push({ session: { ...last.session, more: last.session.more + 1 }, hits: kept });
    else isComplete = false;
  }
}

function shownSession(state: SessionState, more: number, ownAgent: string): ShownSession {
  const row = sessionRow(state);
  const agent = agentBeside(state.ref, ownAgent);
  return {
    key: row.key,
    ...(agent === null ? {} : { agent }),
    ...sessionFacts(row),
    lastActivity: timeValue(row.updatedAtMs),
    more,
  };
}

function shownHit({ ref, seq, role, tsMs, snippet }: SearchHit, ownAgent: string): ShownHit {
  const agent = agentBeside(ref, ownAgent);
  return {
    key: ref.key,
    ...(agent === null ? {} : { agent }),
    seq,
    role: role === null ? null : plainName(role, 40),
    time: timeValue(tsMs),
    // The snippet's line breaks are removed, because a hit is one line.
    snippet: plainName(withoutBase64(snippet), mostSnippetCharacters),
  };
}

function resultOf(groups: readonly ShownGroup[], { isComplete, notes }: LeftOut): CallResult {
  const hits = groups.flatMap((group) => group.hits);
  const structured = { notice, hits, sessions: groups.map(({ session }) => session), isComplete, notes };
  const noted = notes.map((note) => `[${note}]`);
  if (hits.length === 0) return { text: ["[Nothing found.]", ...noted].join("\n"), structured };
  const lines = groups.flatMap((group) => [sessionLine(group.session), ...group.hits.map(hitLines)]);
  const more = isComplete ? [] : ["[There are more places: narrow the query.]"];
  return {
    text: [`[${notice}]`, ...lines, ...more, ...noted, "[read_session with around gives the messages there.]"].join(
      "\n",
    ),
    structured,
  };
}

function sessionLine({ name, program, folder, lastActivity, more }: ShownSession): string {
  const from = program === undefined ? "" : `, from ${quotedName(program, mostNameCharacters)}`;
  const rest = more === 0 ? "" : `, ${more} more places`;
  const time = timeText(lastActivity === null ? null : Date.parse(lastActivity));
  return `[session ${quotedName(name, mostNameCharacters)}${from}${folderText(folder)}, ${time}${rest}]`;
}

function hitLines({ seq, role, time, snippet, ...ref }: ShownHit): string {
  const who = role === null ? "record" : roleText(role);
  return `${placeOf(ref)} #${seq} ${who} ${timeText(time === null ? null : Date.parse(time))}\n${quotedText(snippet)}`;
}
