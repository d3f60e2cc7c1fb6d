import { createHash, type Hash } from "node:crypto";
import type { DocumentBeginning, ListReceipt } from "./import-receipt.ts";
import { createUnitSplitter, type SourceUnit } from "./source-units.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/**
 * Finds the imported elements behind a changed head, because a program may write the time of the last message there.
 * Returns null if the elements differ too.
 */
export async function beginningOfList(
  { open, layout }: TranscriptSource,
  { head, sizeBytes }: ListReceipt,
): Promise<DocumentBeginning | null> {
  if (open === null || head === undefined || layout?.unit !== "document") return null;
  const file = await open();
  try {
    const splitter = createUnitSplitter(1, layout);
    const [whole, list] = [createHash("sha256"), createHash("sha256")];
    let left = sizeBytes - head.sizeBytes;
    let headBytes: number | null = null;
    let at = 0;
    for await (const chunk of file.chunks()) {
      headBytes ??= splitter.push(chunk).find(({ part }) => part === "head")?.endBytes ?? null;
      const from = headBytes === null ? chunk.length : Math.max(0, headBytes - at);
      const elements = chunk.subarray(from, from + left);
      whole.update(chunk.subarray(0, from + elements.length));
      list.update(elements);
      left -= elements.length;
      at += chunk.length;
      if (headBytes !== null && left === 0) break;
    }
    const isSame = headBytes !== null && left === 0 && list.digest("hex") === head.listSha256;
    if (!isSame || headBytes === null) return null;
    return { sizeBytes: headBytes + sizeBytes - head.sizeBytes, sha256: whole.digest("hex") };
  } finally {
    await file.close();
  }
}

/** Records where the list of a document begins and ends, while the document is read. */
export class ListEnd {
  readonly #whole: Hash;
  #list: Pick<ListReceipt, "sizeBytes" | "sha256"> | null = null;
  #tailId: string | null = null;
  #headId: string | null = null;
  #headBytes = 0;
  /** Hashes the bytes behind the head; null until the head was read. */
  #hash: Hash | null = null;
  #listSha256 = "";

  /** @param whole hash of the bytes read so far */
  constructor(whole: Hash) {
    this.#whole = whole;
  }

  update(bytes: Uint8Array): void {
    this.#whole.update(bytes);
    this.#hash?.update(bytes);
  }

  /** Must be called with an item whose bytes were the last passed to `update`. */
  takeFinal({ part, endBytes }: SourceUnit): void {
    if (part === undefined) return;
    if (part === "head") {
      this.#headBytes = endBytes;
      this.#hash = createHash("sha256");
    }
    this.#list = { sizeBytes: endBytes, sha256: this.#whole.copy().digest("hex") };
    this.#listSha256 = this.#hash?.copy().digest("hex") ?? "";
  }

  takeRecord({ part }: SourceUnit, id: string): void {
    if (part === "head") this.#headId = id;
    if (part === "tail") this.#tailId = id;
  }

  /** Returns no list before the whole document was read. */
  get receipt(): { readonly list?: ListReceipt } {
    if (this.#list === null || this.#tailId === null) return {};
    const [id, sizeBytes, listSha256] = [this.#headId, this.#headBytes, this.#listSha256];
    const head = id === null || listSha256 === "" ? {} : { head: { id, sizeBytes, listSha256 } };
    return { list: { ...this.#list, tailId: this.#tailId, ...head } };
  }
}
