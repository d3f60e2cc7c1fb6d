import type { StoredRecord } from "@throughline/core";
import { type Fields, isFields, type Steps } from "@throughline/core/internal";
import { blocksOf, textOf } from "./block-nodes.ts";
import { countLines } from "./count-lines.ts";
import { changedLines } from "./diff-lines.ts";
import { unifiedPatchOf } from "./file-change.ts";
import { type FileEdit, fileEditsOf } from "./file-edits.ts";
import { shortPath } from "./short-path.ts";

/** Adds up the changes of one file. */
export interface ChangedFile {
  /** States the path below the folder of the session, or as the calls state it. */
  readonly path: string;
  /** Counts the changes that did not fail, and those that did. */
  readonly changes: number;
  readonly failed: number;
  /** Counts lines as far as the calls say them. A write counts as new lines unless its result has a patch. */
  readonly added: number;
  readonly removed: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
}

/** Names a call that changed a file, without the texts. */
export interface FileCall {
  readonly seq: number;
  /** Holds the place of the call's block in the content of its message. */
  readonly block: number;
  /** States the record of its result; null while there is none. */
  resultSeq: number | null;
  /** Null while there is no result. */
  isError: boolean | null;
}

interface CountedCall extends FileCall {
  readonly paths: Map<string, { changes: number; added: number; removed: number }>;
}

interface ChangingCall extends Pick<FileCall, "block"> {
  readonly id: unknown;
  readonly edits: readonly FileEdit[];
}

/**
 * Counts the changes of files in the records of a session, which come in the order of their seq. It holds paths and
 * counts, no texts. After a redaction the session must be read again from its first record.
 */
export class FileChanges {
  readonly #folder: string | null;
  readonly #calls: CountedCall[] = [];
  readonly #open = new Map<string, CountedCall>();
  #lastSeq = 0;

  /** @param folder the folder of the session, which paths leave out */
  constructor(folder: string | null) {
    this.#folder = folder;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Returns the work that a record with changes of files takes; null for any other record, which takes none. */
  take({ record, seq, side }: StoredRecord): Steps<void> | null {
    this.#lastSeq = seq;
    const message = record.type === "message" && !side && isFields(record["message"]) ? record["message"] : null;
    if (message?.["role"] === "toolResult") this.#result(seq, message);
    if (message?.["role"] !== "assistant") return null;
    const changes: ChangingCall[] = [];
    for (const [block, fields] of blocksOf(message["content"]).entries()) {
      if (fields["type"] !== "toolCall") continue;
      const edits = fileEditsOf(textOf(fields["name"]), argumentsOf(fields));
      if (edits.length > 0) changes.push({ block, id: fields["id"], edits });
    }
    // Most calls change no file, and a generator for each would take longer than the rest.
    return changes.length === 0 ? null : this.#takeCalls(seq, changes);
  }

  *#takeCalls(seq: number, changes: readonly ChangingCall[]): Steps<void> {
    for (const { block, id, edits } of changes) {
      const paths: CountedCall["paths"] = new Map();
      for (const edit of edits) {
        const path = shortPath(edit.path, this.#folder);
        const sum = paths.get(path) ?? { changes: 0, added: 0, removed: 0 };
        const { added, removed } = yield* countOf(edit);
        paths.set(path, { changes: sum.changes + 1, added: sum.added + added, removed: sum.removed + removed });
      }
      const call = { seq, block, resultSeq: null, isError: null, paths };
      this.#calls.push(call);
      if (typeof id === "string") this.#open.set(id, call);
    }
  }

  #result(seq: number, { toolCallId, isError, details }: Fields): void {
    const call = typeof toolCallId === "string" ? this.#open.get(toolCallId) : undefined;
    if (call === undefined) return;
    this.#open.delete(toolCallId as string);
    call.resultSeq = seq;
    call.isError = isError === true;
    const patch = unifiedPatchOf(details);
    const [only] = call.paths.size === 1 ? call.paths.values() : [];
    if (patch !== null && only !== undefined) Object.assign(only, changedLines(patch.split("\n")));
  }

  /** Lists the files, by the place of their first change. */
  *files(): Steps<readonly ChangedFile[]> {
    const files = new Map<string, ChangedFile>();
    for (const { seq, isError, paths } of this.#calls) {
      yield;
      for (const [path, { changes, added, removed }] of paths) {
        const file = files.get(path) ?? {
          path,
          changes: 0,
          failed: 0,
          added: 0,
          removed: 0,
          firstSeq: seq,
          lastSeq: seq,
        };
        const sums =
          isError === true
            ? { changes: 0, failed: changes, added: 0, removed: 0 }
            : { changes, failed: 0, added, removed };
        files.set(path, {
          ...file,
          changes: file.changes + sums.changes,
          failed: file.failed + sums.failed,
          added: file.added + sums.added,
          removed: file.removed + sums.removed,
          lastSeq: seq,
        });
      }
    }
    return [...files.values()];
  }

  /** Lists the calls that changed a file, in their order. @param path as `files` states it */
  callsOf(path: string): readonly FileCall[] {
    return this.#calls.filter(({ paths }) => paths.has(path));
  }

  /** Returns the changes of one file in a record that has the call. */
  editsIn({ record }: Pick<StoredRecord, "record">, { block }: FileCall, path: string): readonly CallEdit[] {
    const message = isFields(record["message"]) ? record["message"] : {};
    const fields = blocksOf(message["content"])[block];
    if (fields?.["type"] !== "toolCall") return [];
    const tool = textOf(fields["name"]);
    const callId = typeof fields["id"] === "string" ? fields["id"] : null;
    const edits = fileEditsOf(tool, argumentsOf(fields)).filter((edit) => shortPath(edit.path, this.#folder) === path);
    return edits.map((edit) => ({ ...edit, tool, callId }));
  }
}

interface CallEdit extends FileEdit {
  readonly tool: string;
  readonly callId: string | null;
}

/** A call whose arguments are no JSON has them as text. */
function argumentsOf({ arguments: args, partialJson }: Fields): unknown {
  return typeof partialJson === "string" && partialJson !== "" ? partialJson : args;
}

function* countOf({ before, after, patch }: FileEdit): Steps<{ readonly added: number; readonly removed: number }> {
  if (after !== null && (before !== null || patch === null)) return yield* countLines(before ?? "", after);
  return patch === null ? { added: 0, removed: 0 } : changedLines(patch.split("\n"));
}
