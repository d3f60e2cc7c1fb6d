import type { Hash } from "node:crypto";
import type { ListReceipt } from "./receipt-types.ts";
import type { SourceUnit } from "./source-units.ts";

/** Notes where the list of a document ends, while the document is read. */
export class ListEnd {
  #list: Pick<ListReceipt, "sizeBytes" | "sha256"> | null = null;
  #tailId: string | null = null;

  /** @param hash of all up to the end of the unit */
  takeFinal({ part, endBytes }: SourceUnit, hash: Hash): void {
    if (part !== undefined) this.#list = { sizeBytes: endBytes, sha256: hash.copy().digest("hex") };
  }

  takeRecord({ part }: SourceUnit, id: string): void {
    if (part === "tail") this.#tailId = id;
  }

  /** What the receipt says of it; nothing before all of the document was read. */
  get receipt(): { readonly list?: ListReceipt } {
    return this.#list === null || this.#tailId === null ? {} : { list: { ...this.#list, tailId: this.#tailId } };
  }
}
