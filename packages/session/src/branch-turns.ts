import { assertArgument, assertKnownOptions, optionKinds } from "@throughline/core/internal";
import { isGone } from "./begin-turn.ts";
import { messageDraft } from "./message-parts.ts";
import { assertContent, assertFiles } from "./content-problem.ts";
import { branchTable } from "./option-tables.ts";
import {
  beforeMessage,
  type BranchChoice,
  type BranchPlace,
  lastMessage,
  listSiblings,
  moveHead,
  planBranch,
  rewound,
  type SessionBranch,
  switched,
} from "./session-branches.ts";
import type { SessionContent } from "./session-options.ts";
import { takeTurn } from "./take-turn.ts";
import type { TurnHost } from "./turn-host.ts";
import type { TurnOutputSchema } from "./output-schema.ts";
import type { BranchTurnOptions, TurnResult } from "./turn.ts";

/** Runs a turn at the last message of the user. */
export async function regenerate<Schema extends TurnOutputSchema>(
  host: TurnHost,
  options: BranchTurnOptions<Schema>,
): Promise<TurnResult<Schema>> {
  checkBranchTurn(host, "regenerate", options);
  return branchTurn(host, lastMessage, [], options);
}

/** Runs a turn with another version of a message. */
export async function edit<Schema extends TurnOutputSchema>(
  host: TurnHost,
  recordId: string,
  content: SessionContent,
  options: BranchTurnOptions<Schema>,
): Promise<TurnResult<Schema>> {
  checkBranchTurn(host, "edit", options);
  assertArgument("edit", "recordId", recordId, optionKinds.filledText);
  assertContent(content);
  await assertFiles(host.log, content);
  return branchTurn(host, beforeMessage(recordId), [content], options);
}

/** @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED */
export function checkBranchTurn(host: TurnHost, call: string, options: BranchTurnOptions): void {
  assertKnownOptions<BranchTurnOptions>(call, options, branchTable);
  host.assertOpen();
}

export async function rewind(host: TurnHost, recordId: string | null): Promise<void> {
  assertArgument("rewind", "recordId", recordId, optionKinds.orNull(optionKinds.filledText));
  await moveHeadOf(host, rewound(recordId));
}

export async function switchTo(host: TurnHost, recordId: string): Promise<void> {
  assertArgument("switchTo", "recordId", recordId, optionKinds.filledText);
  await moveHeadOf(host, switched(recordId));
}

export async function branches(host: TurnHost, recordId: string): Promise<readonly SessionBranch[]> {
  assertArgument("branches", "recordId", recordId, optionKinds.filledText);
  return listSiblings(await placeOf(host), recordId);
}

/** A new message follows the place to which the branch goes back, so the head moves to the message itself. */
async function branchTurn<Schema extends TurnOutputSchema>(
  host: TurnHost,
  choice: BranchChoice,
  contents: readonly SessionContent[],
  options: BranchTurnOptions<Schema>,
): Promise<TurnResult<Schema>> {
  const plan = await planBranch(await placeOf(host, options.signal), choice);
  const { expect, rewindTo, ...move } = plan.options;
  const messages = contents.map((content) => ({
    ...messageDraft({ role: "user", content }),
    parentId: rewindTo,
  }));
  const input = {
    drafts: () => [...plan.drafts, ...messages],
    idempotencyKey: null,
    isMentioned: true,
    branch: {
      expect,
      leftResults: () => plan.leftResults,
      move: messages.length > 0 ? move : { ...move, rewindTo },
    },
  };
  return takeTurn(host, input, { ...options, whenBusy: "reject" });
}

async function moveHeadOf(host: TurnHost, choice: BranchChoice): Promise<void> {
  await moveHead(await placeOf(host), choice, (drafts, options) => host.log.append(drafts, options));
}

async function placeOf(host: TurnHost, signal: AbortSignal = host.closing): Promise<BranchPlace> {
  host.assertOpen();
  const { log, shared } = host;
  await log.catchUp();
  const { store, ref, head } = log;
  return { store, ref, head, signal, nowMs: shared.clock.nowMs(), isGone: (turn) => isGone(turn, shared) };
}
