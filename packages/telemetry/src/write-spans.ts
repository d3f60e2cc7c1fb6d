import { type SessionRef, type SessionStore, ThroughlineError } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { contentEvent, names } from "./attribute-names.ts";
import type { AttributeValue, SessionSpan } from "./session-span.ts";
import { SpanBuilder } from "./span-builder.ts";

/** Declares the methods of an `@opentelemetry/api` span that this package uses. */
export interface OpenSpan {
  /** Adds attributes to the span. */
  setAttributes(attributes: Record<string, string | number | string[]>): unknown;
  /** Sets the status: code 2 and a message for an error. */
  setStatus(status: { readonly code: number; readonly message?: string }): unknown;
  /** Ends the span, at a time in milliseconds since 1970. */
  end(endTime?: number): void;
}

/** Declares the methods of an `@opentelemetry/api` tracer that this package uses. A tracer of any version 1 fits. */
interface SpanTracer<Span extends OpenSpan = OpenSpan, Context = never> {
  /** Starts a span whose parent is the span of the context. */
  startSpan(
    name: string,
    options: {
      readonly kind: number;
      readonly startTime: number;
      readonly root?: boolean;
      readonly attributes: Record<string, string | number | string[]>;
    },
    context?: Context,
  ): Span;
}

/** Declares the methods of an `@opentelemetry/api-logs` logger that this package uses. */
interface EventLogger<Context = never> {
  /** Writes one event; `timestamp` is in milliseconds since 1970. */
  emit(event: {
    readonly eventName: string;
    readonly timestamp: number;
    readonly attributes: Record<string, string | number | string[]>;
    readonly context?: Context;
  }): void;
}

/** Sets the session, the tracer and the content of `writeSpans`. */
export interface WriteSpansOptions<Span extends OpenSpan, Context> {
  /** Provides the session's records; the store must support watching. */
  readonly store: SessionStore;
  /** Names the session whose turns become spans. */
  readonly ref: SessionRef;
  /** Creates the spans. Pass the result of `trace.getTracer(name)`. */
  readonly tracer: SpanTracer<Span, Context>;
  /** Returns the context in which a span is the parent: `(span) => trace.setSpan(ROOT_CONTEXT, span)`. */
  readonly contextOf: (span: Span) => Context;
  /** Receives the content of calls as events; without a logger the content becomes attributes. @default none */
  readonly logger?: EventLogger<Context> | undefined;
  /** Writes messages, tool arguments and tool results. @default false */
  readonly includeContent?: boolean | undefined;
  /** Starts after the record with this seq. @default 0 */
  readonly afterSeq?: number | undefined;
  /** Ends the writing when it is aborted. */
  readonly signal: AbortSignal;
}

const { callback, flag, integer, object, objectWith, required, signal: signalKind } = optionKinds;
const table: OptionTable<WriteSpansOptions<OpenSpan, unknown>> = {
  store: required(objectWith("load", "read")),
  ref: required(object),
  tracer: required(objectWith("startSpan")),
  contextOf: required(callback),
  logger: objectWith("emit"),
  includeContent: flag,
  afterSeq: integer({ min: 0 }),
  signal: required(signalKind),
};

/** The enumerations of `@opentelemetry/api` have these numbers. */
const [internalKind, clientKind, errorStatus] = [0, 2, 2];

/**
 * Writes the spans of a session while its records arrive from any process, until the signal is aborted. The span of a
 * turn starts with the turn. The span of a call is written when the call has ended, with the times of the records. The
 * function loads no SDK: the tracer belongs to the caller.
 *
 * @throws {ThroughlineError} INPUT_INVALID; CAPABILITY_UNSUPPORTED for a store that cannot be watched; what the store
 *   throws
 * @example
 * const done = writeSpans({ store, ref, tracer, contextOf: (span) => trace.setSpan(ROOT_CONTEXT, span), signal });
 */
export async function writeSpans<Span extends OpenSpan, Context>(
  options: WriteSpansOptions<Span, Context>,
): Promise<void> {
  // The cast is safe, because the table does not check the caller's span and context types.
  assertKnownOptions("writeSpans", options as unknown as WriteSpansOptions<OpenSpan, unknown>, table);
  const { store, ref, afterSeq = 0, includeContent = false, signal } = options;
  if (store.watch === undefined)
    throw new ThroughlineError("CAPABILITY_UNSUPPORTED", `Store ${store.capabilities.name} cannot be watched.`, {
      outcome: "not-applied",
      remedy: "Export the spans afterwards: otlpLines(store, ref).",
    });
  const writer = new SpanWriter(options);
  const builder = new SpanBuilder(ref, { hasContent: includeContent });
  try {
    for await (const page of store.watch.watch(ref, { afterSeq, signal }))
      for (const stored of page.records)
        for (const step of builder.take(stored)) {
          if (step.what === "begin") writer.begin(step.turn);
          else writer.end(step.span);
        }
  } finally {
    for (const step of builder.finish()) if (step.what === "end") writer.end(step.span);
  }
}

const mostTurns = 100;

class SpanWriter<Span extends OpenSpan, Context> {
  readonly #options: WriteSpansOptions<Span, Context>;
  /** Keeps the last turns, because the result of a tool may arrive after the turn of its call has ended. */
  readonly #turns = new Map<string, { readonly span: Span; readonly context: Context }>();

  constructor(options: WriteSpansOptions<Span, Context>) {
    this.#options = options;
  }

  begin({ id, name, startMs, attributes }: Pick<SessionSpan, "id" | "name" | "startMs" | "attributes">): void {
    const { tracer, contextOf } = this.#options;
    const given = { kind: internalKind, startTime: startMs, root: true, attributes: mutable(attributes) };
    const span = tracer.startSpan(name, given);
    this.#turns.set(id, { span, context: contextOf(span) });
    if (this.#turns.size > mostTurns) this.#turns.delete(this.#turns.keys().next().value as string);
  }

  end({ turnId, kind, name, startMs, endMs, attributes, content, error }: SessionSpan): void {
    const { tracer, logger, contextOf } = this.#options;
    const turn = this.#turns.get(turnId);
    if (turn === undefined) return;
    const started = { kind: kind === "chat" ? clientKind : internalKind, startTime: startMs };
    const span =
      kind === "turn"
        ? turn.span
        : tracer.startSpan(name, { ...started, attributes: mutable(attributes) }, turn.context);
    if (Object.keys(content).length > 0) {
      const asEvent = kind === "chat" ? logger : undefined;
      if (asEvent === undefined) span.setAttributes(mutable(content));
      else {
        const event = { eventName: contentEvent, timestamp: endMs, attributes: mutable({ ...attributes, ...content }) };
        asEvent.emit({ ...event, context: contextOf(span) });
      }
    }
    if (error !== null) {
      span.setAttributes({ [names.error]: error });
      span.setStatus({ code: errorStatus, message: error });
    }
    span.end(endMs);
  }
}

function mutable(attributes: Readonly<Record<string, AttributeValue>>): Record<string, string | number | string[]> {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === "object" ? [...value] : value]),
  );
}
