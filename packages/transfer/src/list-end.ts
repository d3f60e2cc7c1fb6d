import { createHash, type Hash } from "node:crypto";
import type { ListReceipt } from "./receipt-types.ts";
import type { SourceUnit } from "./source-units.ts";

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
