import type { CodecContext } from "@throughline/core/internal";
import type { PartialReply, SessionRef } from "@throughline/core";
import { damagedPartial, isSealIntact, type KeptPartial, readPartial, sealJson } from "@throughline/store-kit/internal";
import type { AgentFolder } from "./agent-folder.ts";
import {
  appendAll,
  fileError,
  flushFolder,
  flushFolderLater,
  flushFolders,
  folderOf,
  makeFolders,
  openIfThere,
  readWhole,
  withFileErrors,
} from "./file-work.ts";
import type { Files } from "./files.ts";
import type { LineCodec } from "./stored-line.ts";

export interface PartialOwner {
  readonly ref: SessionRef;
  readonly sessionId: string;
}

export interface PartialFile {
  readonly name: string;
  readonly sessionId: string;
  readonly fence: number;
}

/** Remembers the last write of this handle to a file, to detect another writer. */
interface Written {
  readonly partial: PartialReply;
  readonly identity: string;
  readonly sizeBytes: number;
}

/**
 * Stores the open replies of an agent's sessions, in one file per session and fence. The first line is the partial at
 * that time, and each further line holds the text added to it. No lock is necessary: a turn that was taken over writes
 * to a file with an old fence, which is never read. A line counts once its line feed is there.
 */
export class PartialFiles {
  readonly #files: Files;
  readonly #folder: AgentFolder;
  readonly #codec: LineCodec;
  readonly #written = new Map<string, Written>();

  constructor(files: Files, folder: AgentFolder, codec: LineCodec) {
    this.#files = files;
    this.#folder = folder;
    this.#codec = codec;
  }

  /**
   * Appends the new text or replaces the file, and resolves when it is on the disk.
   * @throws {ThroughlineError} CODEC_FAILED
   */
  async write(owner: PartialOwner, kept: KeptPartial): Promise<void> {
    flushFolders(this.#files);
    const { partial } = kept;
    const name = fileNameOf(owner.sessionId, partial.fence);
    const path = `${this.#folder.partials}/${name}`;
    const before = this.#written.get(owner.sessionId) ?? null;
    this.#written.delete(owner.sessionId);
    const added =
      before === null || !isContinued(before.partial, partial) ? null : partial.text.slice(before.partial.text.length);
    const line = this.#line(
      owner,
      partial,
      added === null ? kept.text : sealJson(JSON.stringify({ text: added, at: partial.updatedMs })),
    );
    const appended = added === null || before === null ? null : await this.#append(path, before, line);
    // The first write of a handle also removes the files of turns that were taken over. The flush of the new name
    // covers the removal.
    if (before === null) this.remove(owner.sessionId, { toFence: partial.fence - 1, isFlushed: false });
    const written = appended ?? (await this.#replace(name, this.#line(owner, partial, kept.text)));
    this.#written.set(owner.sessionId, { partial, ...written });
  }

  /**
   * Reads the partial of a fence; returns null when there is none.
   * @throws {ThroughlineError} CODEC_FAILED, STORE_CORRUPT, STORE_VERSION_UNSUPPORTED
   */
  read(owner: PartialOwner, { fence, turnId }: Pick<PartialReply, "fence" | "turnId">): PartialReply | null {
    const bytes = readWhole(this.#files, `${this.#folder.partials}/${fileNameOf(owner.sessionId, fence)}`);
    if (bytes === null) return null;
    const lines = Buffer.from(bytes).toString().split("\n");
    // Text behind the last line feed was never acknowledged, unless that line feed is damaged. A file gets its name when
    // its first line is whole.
    const rest = lines.pop() ?? "";
    const [first, ...others] = lines;
    if (first === undefined || isSealIntact(rest.slice(0, -1)) === true) throw damagedPartial(owner.ref);
    const begun = readPartial(this.#plain(owner, turnId, first), owner.ref);
    let { text, updatedMs } = begun;
    for (const line of others) {
      const plain = this.#plain(owner, turnId, line);
      const added = isSealIntact(plain) === false ? null : addedBy(plain);
      if (added === null) throw damagedPartial(owner.ref);
      text += added.text;
      updatedMs = added.at;
    }
    return { ...begun, text, updatedMs };
  }

  has(sessionId: string): boolean {
    return this.#namesOf(sessionId, Infinity).length > 0;
  }

  owners(): readonly PartialFile[] {
    return this.#names().flatMap((name) => partialFile(name) ?? []);
  }

  remove(
    sessionId: string,
    { toFence = Infinity, isFlushed }: { readonly toFence?: number; readonly isFlushed: boolean },
  ): void {
    this.#written.delete(sessionId);
    this.#removeNames(this.#namesOf(sessionId, toFence), isFlushed);
  }

  removeAll(sessionIds: ReadonlySet<string>): void {
    for (const sessionId of sessionIds) this.#written.delete(sessionId);
    const names = this.#names().filter((name) => sessionIds.has(partialFile(name)?.sessionId ?? ""));
    this.#removeNames(names, true);
  }

  #removeNames(names: readonly string[], isFlushed: boolean): void {
    const files = this.#files;
    const { partials } = this.#folder;
    withFileErrors(partials, () => {
      for (const name of names) files.remove(`${partials}/${name}`);
      if (isFlushed && names.length > 0) flushFolder(files, partials);
    });
  }

  #namesOf(sessionId: string, toFence: number): readonly string[] {
    return this.#names().filter((name) => {
      const file = partialFile(name);
      return file !== null && file.sessionId === sessionId && file.fence <= toFence;
    });
  }

  #names(): readonly string[] {
    const files = this.#files;
    const { partials } = this.#folder;
    return withFileErrors(partials, () => (files.facts(partials) === null ? [] : files.names(partials)));
  }

  /** Returns null when another writer has changed the file; the caller then replaces it. */
  async #append(path: string, before: Written, line: string): Promise<Omit<Written, "partial"> | null> {
    const files = this.#files;
    const handle = openIfThere(files, path, "append");
    if (handle === null) return null;
    try {
      const { identity, sizeBytes } = files.factsOf(handle);
      if (identity !== before.identity || sizeBytes !== before.sizeBytes) return null;
      const bytes = Buffer.from(line);
      appendAll(files, handle, bytes, sizeBytes, path);
      await files.flush(handle);
      return { identity, sizeBytes: sizeBytes + bytes.length };
    } catch (error) {
      throw fileError(error, path, "unknown");
    } finally {
      files.close(handle);
    }
  }

  /** Flushes in another thread: the first write of a reply comes while the model's stream is read in this one. */
  async #replace(name: string, line: string): Promise<Omit<Written, "partial">> {
    const { partials } = this.#folder;
    const files = this.#files;
    const path = `${partials}/${name}`;
    const bytes = Buffer.from(line);
    let isNamed = false;
    try {
      if (files.facts(partials) === null) await this.#makeFolder();
      files.remove(`${path}.tmp`);
      const handle = files.open(`${path}.tmp`, "create");
      try {
        appendAll(files, handle, bytes, 0, path);
        await files.flush(handle);
        // A removal during the flush means that the turn has ended. The name must not come back.
        isNamed = files.facts(`${path}.tmp`) !== null;
        if (isNamed) files.rename(`${path}.tmp`, path);
        return { identity: files.factsOf(handle).identity, sizeBytes: bytes.length };
      } finally {
        files.close(handle);
        if (isNamed) await flushFolderLater(files, partials);
      }
    } catch (error) {
      throw fileError(error, path, "unknown");
    }
  }

  async #makeFolder(): Promise<void> {
    const { partials } = this.#folder;
    const parent = folderOf(partials);
    if (this.#files.facts(parent) === null) makeFolders(this.#files, parent);
    this.#files.makeFolder(partials);
    await flushFolderLater(this.#files, parent);
  }

  #line({ ref, sessionId }: PartialOwner, { turnId }: Pick<PartialReply, "turnId">, text: string): string {
    if (!this.#codec.isCoded) return `${text}\n`;
    const coded = this.#codec.coder.encode(text, { ref, sessionId, id: turnId, part });
    return `${Buffer.from(coded).toString("base64")}\n`;
  }

  #plain({ ref, sessionId }: PartialOwner, turnId: string, line: string): string {
    if (!this.#codec.isCoded) return line;
    const coded = new Uint8Array(Buffer.from(line, "base64"));
    return Buffer.from(this.#codec.coder.decode(coded, { ref, sessionId, id: turnId, part })).toString();
  }
}

const part: CodecContext["part"] = "partial";

function fileNameOf(sessionId: string, fence: number): string {
  return `${sessionId}.${fence}.jsonl`;
}

/**
 * Parses a file name, including the unfinished file of a killed process; returns null for any other name. A session id
 * may end in a number too, so the last dot counts.
 */
function partialFile(name: string): PartialFile | null {
  const whole = name.endsWith(".tmp") ? name.slice(0, -".tmp".length) : name;
  if (!whole.endsWith(".jsonl")) return null;
  const stem = whole.slice(0, -".jsonl".length);
  const dot = stem.lastIndexOf(".");
  const fence = stem.slice(dot + 1);
  return dot > 0 && /^\d{1,16}$/.test(fence) ? { name, sessionId: stem.slice(0, dot), fence: Number(fence) } : null;
}

function isContinued(before: PartialReply, partial: PartialReply): boolean {
  const { text, updatedMs: _updatedMs, ...rest } = partial;
  const { text: textBefore, updatedMs: _before, ...restBefore } = before;
  return text.startsWith(textBefore) && JSON.stringify(rest) === JSON.stringify(restBefore);
}

function addedBy(line: string): { readonly text: string; readonly at: number } | null {
  try {
    const { text, at } = JSON.parse(line) as { readonly text?: unknown; readonly at?: unknown };
    return typeof text === "string" && typeof at === "number" ? { text, at } : null;
  } catch {
    return null;
  }
}
