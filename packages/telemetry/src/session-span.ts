export type AttributeValue = string | number | readonly string[];

export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface SessionSpan {
  /** The id is derived from the records, so that every reader of the same records gets the same id. */
  readonly id: string;
  /** Links the span to its turn. For a turn it equals the span's own id. */
  readonly turnId: string;
  readonly kind: "turn" | "chat" | "tool";
  readonly name: string;
  /** Counts UTC milliseconds, like `endMs`. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Holds messages, arguments and results; empty unless the caller asked for content. */
  readonly content: Attributes;
  /** States why the span failed. Null means success. */
  readonly error: string | null;
}

/**
 * Reports spans in order: a turn begins, its calls end, the turn ends. A turn is reported early, because its calls need
 * it as their parent.
 */
export type SpanStep =
  | { readonly what: "begin"; readonly turn: Pick<SessionSpan, "id" | "turnId" | "name" | "startMs" | "attributes"> }
  | { readonly what: "end"; readonly span: SessionSpan };
