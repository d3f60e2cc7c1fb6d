import type { ExportRemark } from "@throughline/transfer/internal";
import { counted } from "./counted.ts";

/** Omitting these kinds loses no part of the conversation. */
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

/**
 * Counts the losses of an export to another program's format. It prints one line for each kind, because a session may
 * have thousands of records.
 */
export class ExportLosses {
  readonly #kinds = new Map<string, { readonly what: ExportRemark["what"]; readonly kind: string; count: number }>();

  get isConversationLeftOut(): boolean {
    return [...this.#kinds.values()].some(({ what, kind }) => what === "left-out" && !besideTheConversation.has(kind));
  }

  /** Returns false for a remark about a Throughline format, which is printed as is. */
  take({ what, kind, records = 1 }: ExportRemark): boolean {
    if (kind === undefined) return false;
    const name = `${what} ${kind}`;
    const known = this.#kinds.get(name) ?? { what, kind, count: 0 };
    known.count += what === "left-out" ? records : 1;
    this.#kinds.set(name, known);
    return true;
  }

  *texts(): Generator<string> {
    for (const { what, kind, count } of this.#kinds.values()) yield `${what}: ${kind} (${counted(count, "record")})`;
  }
}
