/** A value of an attribute. */
export type AttributeValue = string | number | readonly string[];

/** What a span says. */
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** Something of a session that took time. */
export interface SessionSpan {
  /** Names it in its session: the same for every reader of the same records. */
  readonly id: string;
  /** The turn that it belongs to; of a turn its own id. */
  readonly turnId: string;
  readonly kind: "turn" | "chat" | "tool";
  readonly name: string;
  /** UTC milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** What was sent and said; only where it was asked for. */
  readonly content: Attributes;
  /** Why it failed; null when it did not. */
  readonly error: string | null;
}

/** What becomes known of a session's spans, in order: a turn begins, its calls end, it ends. */
export type SpanStep =
  | { readonly what: "begin"; readonly turn: Pick<SessionSpan, "id" | "turnId" | "name" | "startMs" | "attributes"> }
  | { readonly what: "end"; readonly span: SessionSpan };
