import { createHash, type Hash } from "node:crypto";
import type { ListReceipt } from "./receipt-types.ts";
import type { SourceUnit } from "./source-units.ts";

/** Notes where the list of a document begins and ends, while the document is read. */
export class ListEnd {
  #list: Pick<ListReceipt, "sizeBytes" | "sha256"> | null = null;
  #tailId: string | null = null;
  #headId: string | null = null;
  #headBytes = 0;
  /** Of what stands behind the head; null before that. */
  #hash: Hash | null = null;
  #listSha256 = "";

  /** Takes the bytes of the document, in order. */
  update(bytes: Uint8Array): void {
    this.#hash?.update(bytes);
  }

  /** @param hash of all up to the end of the unit */
  takeFinal({ part, endBytes }: SourceUnit, hash: Hash): void {
    if (part === undefined) return;
    if (part === "head") {
      this.#headBytes = endBytes;
      this.#hash = createHash("sha256");
    }
    this.#list = { sizeBytes: endBytes, sha256: hash.copy().digest("hex") };
    this.#listSha256 = this.#hash?.copy().digest("hex") ?? "";
  }

  takeRecord({ part }: SourceUnit, id: string): void {
    if (part === "head") this.#headId = id;
    if (part === "tail") this.#tailId = id;
  }

  /** What the receipt says of it; nothing before all of the document was read. */
  get receipt(): { readonly list?: ListReceipt } {
    if (this.#list === null || this.#tailId === null) return {};
    const [id, sizeBytes, listSha256] = [this.#headId, this.#headBytes, this.#listSha256];
    const head = id === null || listSha256 === "" ? {} : { head: { id, sizeBytes, listSha256 } };
    return { list: { ...this.#list, tailId: this.#tailId, ...head } };
  }
}
