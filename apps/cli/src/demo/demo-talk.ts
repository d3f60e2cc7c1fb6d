import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionModel } from "@throughline/core/internal";
import type { ChatRequest, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import type { InterruptedTurn } from "@throughline/session/internal";
import { createWorkspaceTools } from "@throughline/tools";

/** What every request of the demonstration begins with. */
export const demoSystem = "You keep the harbour's books.";

/** Small on purpose: the conversation is several times as long. */
export const demoWindowTokens = 9000;

export interface DemoTalk {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  /** Holds the files the agent works with. */
  readonly workspace: string;
  /** Talks until the session has a number of messages, or for a number of turns. */
  readonly until: { readonly messages: number } | { readonly turns: number };
  readonly wordDelayMs?: number;
  readonly signal: AbortSignal;
  readonly onRecord?: (record: StoredRecord) => void;
  /** Called for each piece of an answer. */
  readonly onDelta?: () => void;
  /** Called with each request as the model gets it. */
  readonly onRequest?: (request: ChatRequest) => void;
}

export interface DemoTalkResult {
  /** What the process before had left open. */
  readonly interrupted: InterruptedTurn | null;
  readonly restoredMessages: number;
  readonly turns: number;
}

const pages = ["arrivals.txt", "quays.txt", "watch.txt", "tides.txt"];

/** The files that are read, one of them much larger than what a window has room for. */
export function writeWorkspace(workspace: string): void {
  mkdirSync(workspace, { recursive: true });
  for (const [index, name] of pages.entries()) {
    const line = `${name.replace(".txt", "")}: all quiet on the water, page ${index}.\n`;
    writeFileSync(join(workspace, name), line.repeat(name === "tides.txt" ? 400 : 20));
  }
}

/** What is asked in a turn; each kind of work comes up again and again. */
function question(turn: number): string {
  const page = pages[turn % pages.length] ?? "";
  const other = pages[(turn + 1) % pages.length] ?? "";
  const questions = [
    `read ${page} and ${other}`,
    `read ${page}`,
    `write log-${turn}.txt: looked at ${page}`,
    "what did I say before",
    `copy ${page} to copy-${turn}.txt`,
  ];
  return questions[turn % questions.length] ?? "";
}

/** Has the offline model talk and use its tools, through the same code that every other model goes through. */
export async function talk(options: DemoTalk): Promise<DemoTalkResult> {
  const { store, ref, workspace, until, signal, onRecord, onDelta } = options;
  await using sessions = createSessions({
    store,
    model: watched(options),
    system: demoSystem,
    tools: createWorkspaceTools({ root: workspace }),
    onEvent: (event) => {
      if (event.name === "record.appended") onRecord?.(event.record);
    },
  });
  const session = await sessions.open(ref);
  const { interruptedTurn, restored } = session;
  let turns = 0;
  const isOver = async (): Promise<boolean> => {
    if ("turns" in until) return turns >= until.turns;
    return ((await store.load(ref))?.messageCount ?? 0) >= until.messages;
  };
  while (!(await isOver())) {
    signal.throwIfAborted();
    const asked = question(restored.turns + turns);
    await session.runTurn(asked, { signal, ...(onDelta === undefined ? {} : { onDelta }) });
    turns += 1;
  }
  return { interrupted: interruptedTurn, restoredMessages: restored.messages, turns };
}

function watched({ wordDelayMs = 0, onRequest }: DemoTalk): SessionModel {
  const model = offline({ wordDelayMs, windowTokens: demoWindowTokens, maxOutputTokens: 1000 });
  const { chat } = model;
  return {
    ...model,
    chat: {
      ...chat,
      chat: (request) => {
        onRequest?.(request);
        return chat.chat(request);
      },
    },
  };
}
