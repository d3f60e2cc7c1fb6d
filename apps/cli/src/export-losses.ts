import type { ExportRemark } from "@throughline/transfer/internal";
import { counted } from "./counted.ts";

/** What may be left out without a word of the conversation being lost. */
const besideTheConversation: ReadonlySet<string> = new Set([
  "note of Throughline",
  "details of a result",
  "name of the session",
  "signature of a call",
  "empty text",
  "empty message",
  "second result of a call",
  "call stored twice",
]);

/** Counts what an export to another program's format loses: one line a kind, however many records it is. */
export class ExportLosses {
  readonly #kinds = new Map<string, { readonly what: ExportRemark["what"]; readonly kind: string; count: number }>();

  /** Whether the file lacks a part of the conversation. */
  get isConversationLeftOut(): boolean {
    return [...this.#kinds.values()].some(({ what, kind }) => what === "left-out" && !besideTheConversation.has(kind));
  }

  /** False for a remark of a format of ours, which is printed as it is. */
  take({ what, kind, records = 1 }: ExportRemark): boolean {
    if (kind === undefined) return false;
    const name = `${what} ${kind}`;
    const known = this.#kinds.get(name) ?? { what, kind, count: 0 };
    known.count += what === "left-out" ? records : 1;
    this.#kinds.set(name, known);
    return true;
  }

  /** In the order they were met. */
  *texts(): Generator<string> {
    for (const { what, kind, count } of this.#kinds.values()) yield `${what}: ${kind} (${counted(count, "record")})`;
  }
}
