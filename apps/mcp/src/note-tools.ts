import { createHash } from "node:crypto";
import { openSession, type SessionRef, type StoredRecord } from "@throughline/core";
import { isFields, refused, systemRandom } from "@throughline/core/internal";
import { quotedText } from "@throughline/tools/internal";
import { z } from "zod";
import { argumentsOf } from "./call-arguments.ts";
import type { CallResult, MemoryCall } from "./memory-call.ts";
import { notice, quotedName, timeText, tokensOf, withinTokens, withoutBase64 } from "./result-text.ts";
import type { MemoryScope } from "./memory-scope.ts";
import { CallRefusal } from "./tool-failure.ts";

const mostTopicCharacters = 100;
const mostNoteCharacters = 8000;
/** Limits the notes that one call reads, newest first. */
const mostNotes = 2000;
const mostFound = 50;
const noteType = "throughline.note";
const frameTokens = 150;

interface MemoryArguments {
  readonly topic?: string | undefined;
  readonly query?: string | undefined;
}

interface NoteArguments {
  readonly text: string;
  readonly topic: string;
}

export const memoryInput: z.ZodType<MemoryArguments> = argumentsOf({
  topic: z.string().min(1).max(mostTopicCharacters).optional().describe("Only notes of this topic."),
  query: z.string().min(1).max(1000).optional().describe("Words to look for, in notes and memory files."),
});

export const noteInput: z.ZodType<NoteArguments> = argumentsOf({
  text: z.string().min(1).max(mostNoteCharacters).describe("What later sessions should know."),
  topic: z.string().min(1).max(mostTopicCharacters).describe("A word or two to find it by."),
});

/** Each folder of a scope has notes of its own, so that those of one customer are not read for another. */
function notesRef({ namespace, agentId, folder }: MemoryScope): SessionRef {
  const part =
    folder === undefined ? "notes" : `notes-${createHash("sha256").update(folder).digest("hex").slice(0, 16)}`;
  return { namespace, agentId, key: `agent:${agentId}:mcp:direct:${part}` };
}

/** A token may cover other agents than the one whose notes the server keeps. */
function seesOwn({ agents, agentId }: MemoryScope): boolean {
  return agents === "*" || agents.includes(agentId);
}

interface Note {
  readonly topic: string;
  readonly text: string;
  readonly atMs: number | null;
}

/** The content hash is the idempotency key, so that a repeated note is stored once. */
export async function addNote({ options, scope }: MemoryCall, args: NoteArguments): Promise<CallResult> {
  if (!seesOwn(scope)) throw refused("FORBIDDEN", "The notes of this agent are out of reach.");
  const text = args.text.toWellFormed().trim();
  const topic = args.topic.toWellFormed().trim();
  if (text === "" || topic === "") throw new CallRefusal("A note needs a text and a topic.");
  const ref = notesRef(scope);
  const store = await options.openStore("write");
  await openSession(store, ref, {
    random: systemRandom,
    entry: { label: "notes", ...(scope.folder === undefined ? {} : { cwd: scope.folder }) },
  });
  const draft = {
    type: "custom_message",
    customType: noteType,
    // The content includes the topic, so that the index finds a note by its topic.
    content: `${topic}\n${text}`,
    display: true,
    details: { topic },
  } as const;
  await store.append(ref, [draft], {
    idempotencyKey: `note:${createHash("sha256").update(`${topic}\n${text}`).digest("hex")}`,
  });
  return { text: `[Stored under ${quotedName(topic, mostTopicCharacters)}.]` };
}

export async function readMemory(call: MemoryCall, args: MemoryArguments): Promise<CallResult> {
  const { options, signal } = call;
  const { topic, query } = args;
  if (!seesOwn(call.scope)) return { text: "[No notes yet.]" };
  const notes = await newestNotes(call);
  if (topic === undefined && query === undefined) return { text: topicsText(notes, options.resultTokens) };
  const words = wordsOf(query ?? "");
  if (query !== undefined && words.length === 0)
    throw new CallRefusal("The query needs a word: it has no letter and no digit.");
  const wanted = topic?.toWellFormed().trim();
  const found = notes
    .filter((note) => wanted === undefined || note.topic === wanted)
    .filter(({ text, topic: of }) => {
      const searched = `${of}\n${text}`.toLowerCase();
      return words.every((word) => searched.includes(word));
    });
  // Memory files have no topic, so a topic excludes them.
  const files = query === undefined || topic !== undefined ? [] : ((await options.searchFiles?.(query, signal)) ?? []);
  const entries = [
    ...found.map(({ topic: of, text, atMs }) => ({
      head: `note ${quotedName(of, mostTopicCharacters)} ${timeText(atMs)}`,
      text,
    })),
    ...files.map(({ path, firstLine, lastLine, snippet }) => ({
      head: `file ${quotedName(path, 200)} lines ${firstLine} to ${lastLine}`,
      text: snippet,
    })),
  ];
  return { text: entriesText(entries, options.resultTokens) };
}

async function newestNotes({ store, scope, signal }: MemoryCall): Promise<readonly Note[]> {
  const ref = notesRef(scope);
  // Key prefixes do not apply here: a client may always read the notes of its agent.
  if ((await store.load(ref, { signal })) === null) return [];
  const notes: Note[] = [];
  for await (const page of store.read(ref, { order: "descending", limit: mostNotes, signal }))
    for (const record of page.records) {
      const note = noteOf(record);
      if (note !== null) notes.push(note);
    }
  return notes;
}

/** Returns null for any other record, and for a note whose content was removed. */
function noteOf({ record, tsMs, storedAtMs }: StoredRecord): Note | null {
  const { customType, content, details } = record as Readonly<Record<string, unknown>>;
  if (record.type !== "custom_message" || customType !== noteType || typeof content !== "string") return null;
  const topic = isFields(details) ? details["topic"] : null;
  if (typeof topic !== "string" || !content.startsWith(`${topic}\n`)) return null;
  return { topic, text: content.slice(topic.length + 1), atMs: tsMs ?? storedAtMs };
}

function wordsOf(query: string): readonly string[] {
  return query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

function topicsText(notes: readonly Note[], most: number): string {
  if (notes.length === 0) return "[No notes yet.]";
  const counts = new Map<string, number>();
  for (const { topic } of notes) counts.set(topic, (counts.get(topic) ?? 0) + 1);
  const lines = [...counts].map(([topic, count]) => `${quotedName(topic, mostTopicCharacters)}: ${count}`);
  const shown = fitting(lines, most - frameTokens);
  const more = shown.length === lines.length ? [] : [`[${lines.length - shown.length} more topics.]`];
  return [`[Topics of notes, the newest first. ${notice}]`, ...shown, ...more].join("\n");
}

function entriesText(entries: readonly { readonly head: string; readonly text: string }[], most: number): string {
  if (entries.length === 0) return "[Nothing found.]";
  const room = most - frameTokens;
  const lines = entries
    .slice(0, mostFound)
    .map(({ head, text }) => `${head}\n${quotedText(withinTokens(withoutBase64(text), Math.floor(room / 2)))}`);
  const shown = fitting(lines, room);
  const more = shown.length === entries.length ? [] : [`[${entries.length - shown.length} more are not shown.]`];
  return [`[${notice}]`, ...shown, ...more].join("\n");
}

/** Keeps at least one line, so that the result is never empty. */
function fitting(lines: readonly string[], most: number): readonly string[] {
  let tokens = 0;
  const count = lines.findIndex((line) => (tokens += tokensOf(line)) > most);
  return count === -1 ? lines : lines.slice(0, Math.max(1, count));
}
