import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionModel } from "@throughline/core/internal";
import type { ChatRequest, SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { offline } from "@throughline/models/offline";
import { createSessions } from "@throughline/session";
import type { InterruptedTurn } from "@throughline/session/internal";
import { createWorkspaceTools } from "@throughline/tools";

export const demoSystem = "You keep the harbour's books.";

/** The window is small on purpose, so that the conversation is several times as long. */
export const demoWindowTokens = 9000;

export interface DemoTalk {
  readonly store: SessionStore;
  readonly ref: SessionRef;
  readonly workspace: string;
  /** Ends at a number of messages in the session, or after a number of turns. */
  readonly until: { readonly messages: number } | { readonly turns: number };
  readonly wordDelayMs?: number;
  readonly signal: AbortSignal;
  readonly onRecord?: (record: StoredRecord) => void;
  readonly onDelta?: () => void;
  readonly onRequest?: (request: ChatRequest) => void;
}

export interface DemoTalkResult {
  readonly interrupted: InterruptedTurn | null;
  readonly restoredMessages: number;
  readonly turns: number;
}

const pages = ["arrivals.txt", "quays.txt", "watch.txt", "tides.txt"];

/** One file exceeds the window, so that a tool result must be shortened. */
export function writeWorkspace(workspace: string): void {
  mkdirSync(workspace, { recursive: true });
  for (const [index, name] of pages.entries()) {
    const line = `${name.replace(".txt", "")}: all quiet on the water, page ${index}.\n`;
    writeFileSync(join(workspace, name), line.repeat(name === "tides.txt" ? 400 : 20));
  }
}

/** Cycles through the kinds of work, so that each occurs repeatedly. */
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

/** The offline model runs through the same code as every other model, so the demonstration needs no key. */
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
