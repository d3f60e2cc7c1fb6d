import type { AgentTool, SessionRef, StoredRecord } from "../../packages/core/src/index.ts";
import { buildContext } from "../../packages/history/src/index.ts";
import type { NeutralMessage } from "../../packages/history/src/neutral-message.ts";
import type { MemoryHit } from "../../packages/tools/src/workspace/memory-search-tool.ts";
import { canonical, kinds, said, textOf, type Kind } from "../compaction-recall.ts";

/** What the user said, or the command that failed, and what was needed from then on until the next of these. */
interface Occasion {
  readonly kind: "user" | "command";
  readonly question: string;
  readonly needed: Map<string, Kind>;
}

/** Counts what was looked for, and how much of it was found. */
export interface SearchTally {
  asked: number;
  found: number;
}

export interface SearchRecall {
  /**
   * Counts the first occasion after each cut that needed something, a user message or a command that failed. It is found
   * when a place with some of what it needed is among the best five.
   */
  readonly next: SearchTally;
  /** Counts every user message behind every cut in the same way. */
  readonly user: SearchTally;
  /** Counts every command that failed in the same way. */
  readonly command: SearchTally;
  /** Counts both, each once, after the nearest cut: a message behind twenty cuts is one. */
  readonly once: SearchTally;
  /** Counts every thing that was needed. It is found when a place that holds it is among the best five. */
  readonly things: SearchTally;
  /** Counts the same things. They are found when the answer itself shows them. */
  readonly shown: SearchTally;
  /**
   * Counts every path. It is found in the summary with its details, in the part that was kept, or in its place among the
   * best five.
   */
  readonly paths: SearchTally;
  /** Counts what is no path in the same way. */
  readonly others: SearchTally;
  /** Counts every path. It is found in the summary, in the part that was kept, or when the answer itself shows it. */
  readonly pathsRead: SearchTally;
  /** Counts what is no path in the same way. */
  readonly othersRead: SearchTally;
  /** Counts every path. It is found in the summary or in the part that was kept, without a search. */
  readonly pathsInFront: SearchTally;
  /** Counts what is no path in the same way. */
  readonly othersInFront: SearchTally;
  /** Counts the occasions once more as a control, with the five newest places of the same size instead of the best. */
  readonly newest: SearchTally;
}

export function emptyRecall(): SearchRecall {
  const none = (): SearchTally => ({ asked: 0, found: 0 });
  return {
    next: none(),
    user: none(),
    command: none(),
    once: none(),
    things: none(),
    shown: none(),
    paths: none(),
    others: none(),
    pathsRead: none(),
    othersRead: none(),
    pathsInFront: none(),
    othersInFront: none(),
    newest: none(),
  };
}

/** Quoted values and wishes are found like everything else; commands are what is asked with. */
const looked: readonly Kind[] = ["paths", "symbols", "quoted values"];

export interface Measuring {
  readonly recall: SearchRecall;
  readonly nearest: Map<string, boolean>;
  readonly missed: ((miss: Miss) => void) | null;
}

/** States what was neither in front of the assistant nor found. */
export interface Miss {
  readonly point: string;
  readonly kind: Kind;
  readonly thing: string;
  readonly question: string;
}

/** Holds a session whose older part was compacted. */
export interface AskedSession {
  readonly name: string;
  readonly ref: SessionRef;
  readonly tool: AgentTool;
  /** The texts of the records before the cut, in the order of their seq from 1 on. */
  readonly texts: readonly string[];
  readonly inFront: string;
  readonly after: readonly StoredRecord[];
  /** The request that was being worked on at the cut. Without it only what follows the next occasion is counted. */
  readonly request?: string;
}

/** Asks with every occasion behind a cut, and counts what was needed then. */
export async function askOccasions(
  { name, ref, tool, texts, inFront, after, request }: AskedSession,
  { recall, nearest, missed }: Measuring,
): Promise<void> {
  const occasions = occasionsOf(after, texts.join("\n"), request).filter(({ needed }) => needed.size > 0);
  for (const [index, { kind, question, needed }] of occasions.entries()) {
    const answer = await tool.run({ query: question }, { ref, callId: "c", signal: new AbortController().signal });
    if (typeof answer === "string") throw new Error("A result with details was expected.");
    const { hits } = answer.details as { readonly hits: readonly MemoryHit[] };
    const spans = hits.flatMap((hit) => (hit.kind === "session" ? [[hit.firstSeq, hit.lastSeq] as const] : []));
    const held = spans.map(([first, last]) => texts.slice(first - 1, last).join("\n")).join("\n");
    const size = spans.reduce((sum, [first, last]) => sum + last - first + 1, 0);
    const newest = texts.slice(-size).join("\n");
    const isFound = [...needed.keys()].some((thing) => held.includes(thing));
    count(recall[kind], isFound);
    if (index === 0) count(recall.next, isFound);
    // Cuts come in their order, so that the last one to tell is the nearest.
    nearest.set(`${name.split(",")[0]} ${question} ${[...needed.keys()].join(" ")}`, isFound);
    count(recall.newest, size > 0 && [...needed.keys()].some((thing) => newest.includes(thing)));
    for (const [thing, what] of needed) {
      const [isHeld, isInFront] = [held.includes(thing), inFront.includes(thing)];
      const isPath = what === "paths";
      count(recall.things, isHeld);
      count(isPath ? recall.paths : recall.others, isHeld || isInFront);
      count(isPath ? recall.pathsInFront : recall.othersInFront, isInFront);
      if (missed !== null && !isHeld && !isInFront) missed({ point: name, kind: what, thing, question });
      const isShown = String(answer.content).includes(thing);
      count(isPath ? recall.pathsRead : recall.othersRead, isShown || isInFront);
      count(recall.shown, isShown);
    }
  }
}

export function count(tally: SearchTally, isFound: boolean): void {
  tally.asked++;
  if (isFound) tally.found++;
}

function occasionsOf(after: readonly StoredRecord[], before: string, request = ""): readonly Occasion[] {
  const messages = buildContext(after, { headId: after.at(-1)?.id ?? null }).messages;
  const occasions: Occasion[] = request === "" ? [] : [{ kind: "user", question: request, needed: new Map() }];
  const commands = new Map<string, string>();
  const seen = new Set<string>();
  let shown = "";
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const [id, command] of commandsOf(message)) commands.set(id, command);
      addNeeded(message, occasions.at(-1), { before, shown, seen });
      continue;
    }
    const text = message.role === "user" ? said(message) : textOf(message);
    const failed = message.role === "toolResult" && message.isError ? commands.get(message.toolCallId) : undefined;
    const question = message.role === "user" ? text.trim() : (failed ?? "");
    if (question !== "") {
      const kind = message.role === "user" ? "user" : "command";
      occasions.push({ kind, question, needed: new Map() });
    }
    shown += `${text}\n`;
  }
  return occasions;
}

function commandsOf(message: NeutralMessage): readonly (readonly [string, string])[] {
  return message.content.flatMap((block) => {
    const command = block.type === "toolCall" ? block.arguments["command"] : null;
    return block.type === "toolCall" && typeof command === "string" ? [[block.id, command] as const] : [];
  });
}

/** What is named now, was named before the cut, and was shown by nobody since, the question included. */
function addNeeded(
  message: NeutralMessage,
  occasion: Occasion | undefined,
  { before, shown, seen }: { readonly before: string; readonly shown: string; readonly seen: Set<string> },
): void {
  for (const kind of looked) {
    const body = kind === "quoted values" ? said(message) : textOf(message);
    for (const match of body.matchAll(kinds[kind])) {
      const thing = canonical(kind, match[1] ?? match[2] ?? match[0]);
      if (seen.has(thing)) continue;
      seen.add(thing);
      const isNeeded = before.includes(thing) && !shown.includes(thing) && occasion?.question.includes(thing) === false;
      if (isNeeded) occasion.needed.set(thing, kind);
    }
  }
}
