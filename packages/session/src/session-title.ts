import type { SessionEntry } from "@throughline/core";
import {
  assertArgument,
  Deadline,
  loadExisting,
  optionKinds,
  renameSession,
  untilAborted,
  updateEntry,
} from "@throughline/core/internal";
import { titleOf } from "@throughline/history/internal";
import type { Emit } from "./session-event.ts";
import type { SessionLog } from "./session-log.ts";
import type { TurnHost } from "./turn-host.ts";
import type { TurnSettings } from "./turn-settings.ts";

/** Returns the title that a turn gives its session when it ends; null when the session has one, or gets none. */
export function newTitle(log: SessionLog, { titles }: Pick<TurnSettings, "titles">): string | null {
  return titles === "off" || titleIn(log.entry) !== null ? null : log.facts.titles.title;
}

export function titleIn({ title }: SessionEntry): string | null {
  return typeof title === "string" && title !== "" ? title : null;
}

/** @throws {ThroughlineError} INPUT_INVALID, SESSION_CLOSED, and what the store throws */
export async function labelSession(host: TurnHost, label: string): Promise<void> {
  assertArgument("rename", "label", label, optionKinds.text);
  host.assertOpen();
  const { log, shared } = host;
  await renameSession(log.store, await loadExisting(log.store, log.ref), { clock: shared.clock, label });
  await log.refreshEntry();
}

/**
 * A person may redact the first message while the model answers. The end of the turn then stores a title of the erased
 * text, and the log has read the records again since.
 */
export async function withdrawRedactedTitle(log: SessionLog, title: string): Promise<void> {
  if (log.facts.titles.title === title) return;
  await updateEntry(log.store, log.ref, ({ title: stored, titleBy, ...rest }) =>
    stored === title ? rest : { ...rest, title: stored, titleBy },
  );
  await log.refreshEntry();
}

const mostQuestionChars = 2000;
const mostAnswerChars = 1000;
const mostTitleTokens = 24;
const deadlineMs = 10_000;
/** A longer text is no title. The model did not follow the instruction. */
const mostReplyChars = 200;

const instruction =
  "Write a title of at most eight words for the conversation, in the language of the user. Answer with the title alone.";

interface ModelTitleOptions {
  readonly host: TurnHost;
  /** Holds the title by rules, which stays if the model gives none. */
  readonly title: string;
  readonly answer: string;
  readonly emit: Emit | null;
}

/** Asks a summarizer once for a better title, beside the turn. */
export async function titleByModel({ host, title, answer, emit }: ModelTitleOptions): Promise<void> {
  const { log, shared, closing } = host;
  const { titleSummarizer } = shared;
  const { facts } = log;
  if (titleSummarizer === null) return;
  const question = facts.titles.text ?? "";
  const text = `User: ${cut(question, mostQuestionChars)}\n\nAssistant: ${cut(answer, mostAnswerChars)}`;
  try {
    await using deadline = new Deadline(shared.clock, deadlineMs, closing);
    const { signal } = deadline;
    const request = { text, previousSummary: null, maxOutputTokens: mostTitleTokens, instruction, signal };
    const reply = titleSummarizer.summarize({ ...request, audit: () => null });
    const { summary, source, usage } = await untilAborted(reply, signal);
    // The call costs what it costs, whether its title is used or not.
    if (usage !== null) await log.append([{ type: "usage", kind: "throughline.title", model: source, usage }], {});
    const made = titleOfReply(summary);
    if (made === null) return;
    await log.catchUp();
    // The records were read again, so a redaction may have erased what the model was given.
    if (log.facts !== facts) return;
    await updateEntry(log.store, log.ref, (entry) =>
      entry.title === title && entry.titleBy === "rules" ? { ...entry, title: made, titleBy: "model" } : entry,
    );
    await log.refreshEntry();
  } catch (cause) {
    emit?.({ name: "step.failed", step: "title", cause });
  }
}

function cut(text: string, mostChars: number): string {
  return text.slice(0, mostChars).toWellFormed();
}

/** The rules also shorten the model's title, and take control characters and keys out of it. */
function titleOfReply(reply: string): string | null {
  const text = reply.trim();
  return text.length > mostReplyChars || text.includes("\n") ? null : titleOf([text]);
}
