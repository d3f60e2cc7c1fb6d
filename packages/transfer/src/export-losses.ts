import type { ExportRemark } from "./export-types.ts";

/** States what an export does to the records of one kind. */
export interface ExportLoss {
  readonly what: ExportRemark["what"];
  /** Names the kind in a word or two. */
  readonly kind: string;
  readonly records: number;
}

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

/** Counts the losses of an export to another program's format by kind, because a session may have thousands of records. */
export class ExportLosses {
  readonly #kinds = new Map<string, ExportLoss>();

  get isConversationLeftOut(): boolean {
    return [...this.#kinds.values()].some(({ what, kind }) => what === "left-out" && !besideTheConversation.has(kind));
  }

  /** Returns false for a remark about a Throughline format, which has no kind. */
  take({ what, kind, records = 1 }: ExportRemark): boolean {
    if (kind === undefined) return false;
    const name = `${what} ${kind}`;
    const before = this.#kinds.get(name)?.records ?? 0;
    this.#kinds.set(name, { what, kind, records: before + (what === "left-out" ? records : 1) });
    return true;
  }

  losses(): readonly ExportLoss[] {
    return [...this.#kinds.values()];
  }
}
