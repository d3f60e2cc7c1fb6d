import type { SessionState, StoredRecord } from "@throughline/core";
import { searchText } from "@throughline/core/internal";
import { lineText } from "@throughline/tools/internal";
import type { z } from "zod";
import { argumentsOf, sessionArguments, wholeNumber } from "./call-arguments.ts";
import type { CallResult, MemoryCall } from "./memory-call.ts";
import { notice, tokensOf, withinTokens, withoutBase64 } from "./result-text.ts";
import { agentBeside, placeOf } from "./session-place.ts";
import { CallRefusal } from "./tool-failure.ts";

/** Limits each of several messages, in characters. A message requested alone may fill the whole result. */
const mostMessageCharacters = 4000;
/** Limits the records of one call, because a session may hold thousands of records without text. */
const mostRecords = 2000;
const mostBytes = 16_777_216;
/** Reserves tokens for the lines around the messages. */
const frameTokens = 150;
const fewestTokens = 100;

interface ReadArguments {
  readonly key: string;
  readonly agent?: string | undefined;
  readonly around?: number | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly maxCharacters?: number | undefined;
}

export const readInput: z.ZodType<ReadArguments> = argumentsOf({
  ...sessionArguments,
  around: wholeNumber(1).optional().describe("Messages before and after this record number."),
  from: wholeNumber(1).optional().describe("Messages from this record number on."),
  to: wholeNumber(1).optional().describe("Messages up to this record number. Without any of the three: the newest."),
  maxCharacters: wholeNumber(200, 1_000_000)
    .optional()
    .describe("The length of the result; it has a limit of its own."),
});

interface Budget {
  tokens: number;
  characters: number;
}

interface Stretch {
  readonly lines: readonly { readonly seq: number; readonly text: string }[];
  /** Holds the record to continue with on this side; null at the end. */
  readonly next: number | null;
}

interface Direction {
  readonly order: "ascending" | "descending";
  readonly first: number;
  readonly last: number;
}

export async function readSession(call: MemoryCall, args: ReadArguments): Promise<CallResult> {
  const { view, scope, signal, options } = call;
  const { around, from, to, maxCharacters = Number.POSITIVE_INFINITY } = args;
  if (around !== undefined && (from !== undefined || to !== undefined))
    throw new CallRefusal("around goes without from and to.");
  if (from !== undefined && to !== undefined && from > to) throw new CallRefusal("from is greater than to.");
  const session = await view.find(args.key, args.agent, signal);
  const { lastSeq } = session.head;
  const budget: Budget = {
    tokens: Math.max(fewestTokens, options.resultTokens - frameTokens),
    characters: maxCharacters,
  };
  const end = Math.min(to ?? lastSeq, lastSeq);
  let before: Stretch = { lines: [], next: null };
  let after: Stretch = { lines: [], next: null };
  if (around !== undefined) {
    const half: Budget = { tokens: budget.tokens / 2, characters: budget.characters / 2 };
    after = await stretch(call, session, { order: "ascending", first: around, last: lastSeq }, half);
    const left: Budget = {
      tokens: budget.tokens / 2 + half.tokens,
      characters: budget.characters / 2 + half.characters,
    };
    before = await stretch(call, session, { order: "descending", first: around - 1, last: 1 }, left);
  } else if (from !== undefined)
    after = await stretch(call, session, { order: "ascending", first: from, last: end }, budget);
  else before = await stretch(call, session, { order: "descending", first: end, last: 1 }, budget);
  const lines = [...before.lines.toReversed(), ...after.lines];
  const agent = agentBeside(session.ref, scope.agentId);
  const place = placeOf({ key: session.ref.key, ...(agent === null ? {} : { agent }) });
  const [oldest] = lines;
  const newest = lines.at(-1);
  const range = oldest === undefined || newest === undefined ? "no message" : `#${oldest.seq} to #${newest.seq}`;
  return {
    text: [
      `[${place}: ${range} of ${lastSeq} records. ${notice}]`,
      ...(before.next === null ? [] : [`[There is more before: ask with to ${before.next}.]`]),
      ...lines.map(({ text }) => text),
      ...(after.next === null ? [] : [`[There is more after: ask with from ${after.next}.]`]),
    ].join("\n"),
  };
}

/** Subtracts its use from the budget, so that the other direction gets the rest. */
async function stretch(
  { view, signal }: MemoryCall,
  session: SessionState,
  { order, first, last }: Direction,
  budget: Budget,
): Promise<Stretch> {
  const lines: { seq: number; text: string }[] = [];
  const isUp = order === "ascending";
  if (isUp ? first > last : first < last) return { lines, next: null };
  const [low, high] = isUp ? [first, last] : [last, first];
  const isAlone = first === last;
  let records = 0;
  let bytes = 0;
  for await (const page of view.read(session, { order, afterSeq: low - 1, beforeSeq: high + 1, signal })) {
    for (const stored of page.records) {
      records += 1;
      bytes += stored.bytes;
      const line = messageLine(stored, budget, { isAlone, isFirst: lines.length === 0 });
      if (line === "full") return { lines, next: stored.seq };
      if (line !== null) lines.push({ seq: stored.seq, text: line });
      const isLast = stored.seq === last;
      if (!isLast && (records >= mostRecords || bytes >= mostBytes))
        return { lines, next: isUp ? stored.seq + 1 : stored.seq - 1 };
    }
  }
  return { lines, next: null };
}

/** Returns null for a record without text, and `full` if the budget has no room for the message. */
function messageLine(
  { seq, id, record }: StoredRecord,
  budget: Budget,
  { isAlone, isFirst }: { readonly isAlone: boolean; readonly isFirst: boolean },
): string | null {
  const found = searchText(record);
  if (found === null) return null;
  const whole = withoutBase64(found.text.trim());
  if (whole === "") return null;
  const role = found.role ?? record.type;
  const show = (text: string): string => lineText({ seq, id, role, text, cut: whole.length - text.length });
  let text = whole.slice(0, isAlone ? whole.length : mostMessageCharacters).toWellFormed();
  let line = show(text);
  const fits = (): boolean => tokensOf(line) <= budget.tokens && line.length <= budget.characters;
  if (!fits() && !isFirst) return "full";
  // The first message is always shown, cut if necessary: an empty result would not tell the client how to continue.
  for (let share = 1; !fits() && text !== ""; share *= 0.8) {
    const room = Math.min(budget.characters, whole.length) * share;
    text = withinTokens(whole.slice(0, Math.floor(room)), budget.tokens * share);
    line = show(text);
  }
  budget.tokens -= tokensOf(line);
  budget.characters -= line.length;
  return line;
}
