import { type SessionRef, type SessionStore, ThroughlineError } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { contentEvent, names } from "./attribute-names.ts";
import type { AttributeValue, SessionSpan } from "./session-span.ts";
import { SpanBuilder } from "./span-builder.ts";

/** What is used of a span of `@opentelemetry/api`. */
export interface OpenSpan {
  /** Adds attributes to the span. */
  setAttributes(attributes: Record<string, string | number | string[]>): unknown;
  /** Sets the status: code 2 and a message for an error. */
  setStatus(status: { readonly code: number; readonly message?: string }): unknown;
  /** Ends the span, at a time in milliseconds since 1970. */
  end(endTime?: number): void;
}

/** What is used of a tracer of `@opentelemetry/api`: a tracer of any version 1 fits. */
export interface SpanTracer<Span extends OpenSpan = OpenSpan, Context = never> {
  /** Begins a span whose parent is the span of the context. */
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

/** What is used of a logger of `@opentelemetry/api-logs`. */
export interface EventLogger<Context = never> {
  /** Writes one event; `timestamp` is in milliseconds since 1970. */
  emit(event: {
    readonly eventName: string;
    readonly timestamp: number;
    readonly attributes: Record<string, string | number | string[]>;
    readonly context?: Context;
  }): void;
}

/** Options of `writeSpans`. */
export interface WriteSpansOptions<Span extends OpenSpan, Context> {
  /** The store of the session. */
  readonly store: SessionStore;
  /** The session whose turns become spans. */
  readonly ref: SessionRef;
  /** Of `trace.getTracer(name)`. */
  readonly tracer: SpanTracer<Span, Context>;
  /** The context in which a span is the parent: `(span) => trace.setSpan(ROOT_CONTEXT, span)`. */
  readonly contextOf: (span: Span) => Context;
  /** Gets the content of calls as events; without one it becomes attributes. @default none */
  readonly logger?: EventLogger<Context>;
  /** Whether what was sent and said is written. @default false */
  readonly includeContent?: boolean;
  /** Records behind this one. @default 0 */
  readonly afterSeq?: number;
  /** Ends it. */
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

/** Numbers of enumerations of `@opentelemetry/api`. */
const [internalKind, clientKind, errorStatus] = [0, 2, 2];

/**
 * Writes the spans of a session as its records come, whoever writes them, until the signal ends it. A turn begins when it begins,
 * and a call is written when it has ended, with the times of the records. Nothing of an SDK is loaded: the tracer is the caller's.
 *
 * @throws {ThroughlineError} INPUT_INVALID; CAPABILITY_UNSUPPORTED for a store that cannot be watched; what the store throws
 * @example
 * const done = writeSpans({ store, ref, tracer, contextOf: (span) => trace.setSpan(ROOT_CONTEXT, span), signal });
 */
export async function writeSpans<Span extends OpenSpan, Context>(
  options: WriteSpansOptions<Span, Context>,
): Promise<void> {
  // A table says nothing of the kinds of spans and contexts, which are the caller's.
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
  /** The last turns: the result of a tool may come when the turn of its call has ended. */
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
