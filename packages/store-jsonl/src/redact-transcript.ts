import { nextUpdatedAtMs } from "@throughline/core/internal";
import { redactedRecord, type RedactionInfo } from "@throughline/store-kit/internal";
import type { RedactOptions, RedactResult } from "@throughline/core";
import type { AgentSessionFiles } from "./agent-session-files.ts";
import type { OpenTranscript } from "./open-transcript.ts";
import { ownHeaderLine } from "./own-header.ts";
import { detachEnvelope } from "@throughline/openclaw-format/internal";
import { afterCommit } from "./file-work.ts";
import type { FramedLine } from "./framed-lines.ts";
import { readFramed } from "./read-line.ts";
import { decodePatch, encodeEntry, patchMembers } from "./session-row.ts";
import type { StoreContext } from "./store-context.ts";
import { sealLine, type StoreEnvelope } from "./store-envelope.ts";
import { removeCopies } from "./session-copies.ts";
import { encodeStoredLine, type ReadLine } from "./stored-line.ts";
import type { TranscriptFile } from "./transcript-file.ts";

const partBytes = 1024 * 1024;
const markText = Buffer.from('"mark":{');

/**
 * Replaces records by tombstones. Only this call rewrites a transcript, and every other line keeps its bytes. Copies of
 * the transcript are deleted, also saved torn lines, because their content is unknown. Call it under the session's
 * lock, with ids that exist.
 */
export function redactTranscript(
  context: StoreContext,
  agent: AgentSessionFiles,
  held: OpenTranscript,
  ids: readonly string[],
  { reason, entryFields = [], texts }: RedactOptions,
): RedactResult {
  const { file, path, owner } = held;
  file.repairTail(path, owner);
  const seqs = [...new Set(ids.map((id) => held.transcript.seqById.get(id) ?? 0))].toSorted(
    (one, other) => one - other,
  );
  if (seqs.length > 0) {
    agent.vectors.erase(held.row.sessionId, seqs);
    const temporary = agent.folder.temporary(held.row.fileName);
    file.rewrite(path, temporary, redactedParts(context, held, new Set(seqs), { reason, entryFields, texts }));
    const names = new Set([`${held.row.sessionId}.jsonl`, held.row.fileName]);
    afterCommit(path, () => removeCopies(context.files, agent.folder, names));
  }
  context.emit({ name: "records-redacted", ref: held.ref, seqs });
  return { seqs };
}

/**
 * Yields the new content of the file. Other lines are not parsed, and overlong ones are copied in parts to save memory.
 */
function* redactedParts(
  context: StoreContext,
  held: OpenTranscript,
  seqs: ReadonlySet<number>,
  { reason, entryFields, texts }: Omit<RedactionInfo, "redactedAtMs"> & { readonly entryFields: readonly string[] },
): Generator<string | Uint8Array> {
  const { file, path, transcript, row } = held;
  const { offsets, endBytes } = transcript;
  const info = { reason, redactedAtMs: context.clock.nowMs(), texts };
  const firstOffset = offsets[0] ?? endBytes;
  if (firstOffset > 0) yield file.readBytes(path, 0, firstOffset);
  // Without a header pi would treat the file as broken and start it anew.
  else if (seqs.has(1) && transcript.options.owner.sessionId !== "") yield `${ownHeaderLine(row, "")}\n`;
  let [seq, messages] = [0, 0];
  for (const lines of file.lines(path, { from: firstOffset, to: endBytes }))
    for (const line of lines) {
      const bytes = line.bytes();
      if (seqs.has(++seq)) {
        const read = readFramed(transcript, seq, line);
        if (texts === undefined && read.type === "message") messages++;
        const redacted = redactedLine(context, held, seq, read, info) ?? bytes;
        yield withFewerMessages(withoutFields(redacted, entryFields, context, held), messages);
      } else if (bytes.length === line.sizeBytes)
        yield withFewerMessages(withoutFields(bytes, entryFields, context, held), messages);
      else yield* bytesOf(file, path, line);
      yield "\n";
    }
}

function* bytesOf(file: TranscriptFile, path: string, { byteOffset, sizeBytes }: FramedLine): Generator<Uint8Array> {
  for (let done = 0; done < sizeBytes; done += partBytes)
    yield file.readBytes(path, byteOffset + done, byteOffset + Math.min(sizeBytes, done + partBytes));
}

/** Lowers the message count of a mark, because some messages before it are tombstones now. */
function withFewerMessages(line: string | Uint8Array, count: number): string | Uint8Array {
  if (count === 0) return line;
  const bytes = typeof line === "string" ? Buffer.from(line) : viewOf(line);
  if (!bytes.includes(markText)) return line;
  const { text, envelope } = detachEnvelope(bytes.toString());
  const mark = (envelope as StoreEnvelope | null)?.mark;
  if (envelope === null || mark === undefined) return line;
  const next: StoreEnvelope = { ...envelope, mark: { ...mark, messages: mark.messages - count } };
  return sealLine(text, next);
}

const patchTexts = [Buffer.from('"entry":{'), Buffer.from('"entryEnc":"')];

function withoutFields(
  line: string | Uint8Array,
  fields: readonly string[],
  { codec }: StoreContext,
  { ref, row }: OpenTranscript,
): string | Uint8Array {
  if (fields.length === 0) return line;
  const bytes = typeof line === "string" ? Buffer.from(line) : viewOf(line);
  if (!patchTexts.some((text) => bytes.includes(text))) return line;
  const { text, envelope } = detachEnvelope(bytes.toString()) as { text: string; envelope: StoreEnvelope | null };
  if (envelope === null || (envelope.entry === undefined && envelope.entryEnc === undefined)) return line;
  const patch = decodePatch(codec.coder, envelope, ref, row.sessionId);
  if (!fields.some((field) => patch[field] !== undefined)) return line;
  const { set, unset } = patchMembers({ ...patch, ...Object.fromEntries(fields.map((field) => [field, undefined])) });
  const { entry: _entry, unset: _unset, entryEnc: _coded, ...others } = envelope;
  const kept = codec.isCoded
    ? { entryEnc: encodeEntry(codec.coder, { set, unset }, ref, row.sessionId) }
    : { entry: set, unset };
  return sealLine(text, { ...others, ...kept });
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function redactedLine(
  context: StoreContext,
  held: OpenTranscript,
  seq: number,
  read: ReadLine,
  info: RedactionInfo,
): string | null {
  const { side, tsMs, bytes } = read;
  const item = redactedRecord({ ...read.payload(), side, tsMs, bytes }, info);
  if (item === null) return null;
  // Another program's line has its time only in its text, which the tombstone drops. The envelope keeps it, so that the
  // activity time does not go back.
  const { updatedAtMs: updated } = nextUpdatedAtMs(0, read.tsMs ?? undefined, info.redactedAtMs);
  const {
    source: _source,
    sourceBase64: _base64,
    isSourceText: _kind,
    ...kept
  } = ("envelope" in read ? read.envelope : { seq, updated }) as StoreEnvelope;
  return encodeStoredLine(item, kept, context.codec, held.owner).line;
}
