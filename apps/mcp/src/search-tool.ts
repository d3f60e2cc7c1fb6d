import type { SearchHit } from "@throughline/core";
import { parseSearch } from "@throughline/core/internal";
import { quotedText, roleText } from "@throughline/tools/internal";
import { z } from "zod";
import { argumentsOf, sessionArguments, timeOf, wholeNumber } from "./call-arguments.ts";
import type { CallResult, MemoryCall } from "./memory-call.ts";
import { agentBeside, placeOf } from "./session-place.ts";
import { notice, plainName, timeText, timeValue, tokensOf, withoutBase64 } from "./result-text.ts";
import { CallRefusal } from "./tool-failure.ts";

const usualHits = 10;
const mostHits = 20;
const mostSnippetCharacters = 400;

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
    .describe('Words that must all occur; "words in this order"; beginn* for words that start with these letters.'),
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

export const searchOutput: z.ZodObject = z.object({
  notice: z.string(),
  hits: z.array(hitShape),
  isComplete: z.boolean().describe("False: there may be more places."),
});

export async function searchSessions(call: MemoryCall, args: SearchArguments): Promise<CallResult> {
  const { view, signal, scope, options } = call;
  const { query, limit = usualHits, role, tool } = args;
  const text = query.toWellFormed();
  if (parseSearch(text).clauses.length === 0)
    throw new CallRefusal("The query needs a word: it has no letter and no digit.");
  const sinceMs = timeOf("since", args.since);
  const untilMs = timeOf("until", args.until);
  const session = args.key === undefined ? null : await view.find(args.key, args.agent, signal);
  const found: SearchHit[] = [];
  let isComplete = true;
  try {
    const asked = {
      text,
      session,
      signal,
      // One extra hit shows that there are more.
      limit: limit + 1,
      ...(role === undefined ? {} : { role }),
      ...(tool === undefined ? {} : { tool }),
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(untilMs === undefined ? {} : { untilMs }),
    };
    for await (const hit of view.search(asked)) {
      if (found.length === limit) {
        isComplete = false;
        break;
      }
      found.push(hit);
    }
  } catch (error) {
    // Without an index the store is scanned record by record. On a timeout the hits so far are worth more than a
    // failure.
    if (!call.isLate() || found.length === 0) throw error;
    isComplete = false;
  }
  const hits = found.map((hit) => shownHit(hit, scope.agentId));
  for (;;) {
    const result = resultOf(hits, isComplete);
    if (hits.length <= 1 || tokensOf(result.text) + tokensOf(JSON.stringify(result.structured)) <= options.resultTokens)
      return result;
    hits.pop();
    isComplete = false;
  }
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

function resultOf(hits: readonly ShownHit[], isComplete: boolean): CallResult {
  const structured = { notice, hits: [...hits], isComplete };
  if (hits.length === 0) return { text: "[Nothing found.]", structured };
  const lines = hits.map(({ seq, role, time, snippet, ...ref }) => {
    const who = role === null ? "record" : roleText(role);
    return `${placeOf(ref)} #${seq} ${who} ${timeText(time === null ? null : Date.parse(time))}\n${quotedText(snippet)}`;
  });
  const more = isComplete ? [] : ["[There are more places: narrow the query.]"];
  return {
    text: [`[${notice}]`, ...lines, ...more, "[read_session with around gives the messages there.]"].join("\n"),
    structured,
  };
}
