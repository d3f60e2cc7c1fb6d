import { createHash } from "node:crypto";
import type { SessionRef, SessionStore } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { names, schemaUrl } from "./attribute-names.ts";
import type { AttributeValue, Attributes, SessionSpan } from "./session-span.ts";
import { SpanBuilder } from "./span-builder.ts";

/** Sets the content, the resource and the abort signal of `otlpLines`. */
export interface OtlpOptions {
  /** Adds messages, tool arguments and tool results to the spans. @default false */
  readonly includeContent?: boolean | undefined;
  /** Sets the `service.name` of the resource. @default "throughline" */
  readonly serviceName?: string | undefined;
  /** Aborts the export, which then throws ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Holds the option kinds of `otlpLines`, for callers that validate the options themselves. */
const otlpTable: OptionTable<OtlpOptions> = {
  includeContent: optionKinds.flag,
  serviceName: optionKinds.filledText,
  signal: optionKinds.signal,
};

/**
 * Exports the spans of a session as OTLP JSON, one line per turn. A collector's `otlpjsonfile` receiver reads such
 * lines, and `/v1/traces` accepts each line as a body. Equal records give equal ids, so a repeated export creates no
 * new traces.
 *
 * @throws {ThroughlineError} INPUT_INVALID, SESSION_NOT_FOUND, ABORTED, and what the store throws
 * @example
 * for await (const line of otlpLines(store, ref)) await fetch(url, { method: "POST", headers, body: line });
 */
export async function* otlpLines(
  store: SessionStore,
  ref: SessionRef,
  options: OtlpOptions = {},
): AsyncGenerator<string> {
  assertKnownOptions<OtlpOptions>("otlpLines", options, otlpTable);
  const { includeContent = false, serviceName = "throughline", signal } = options;
  const builder = new SpanBuilder(ref, { hasContent: includeContent });
  const read = signal === undefined ? {} : { signal };
  let spans: SessionSpan[] = [];
  let sessionId = ref.key;
  const state = await store.load(ref, read);
  if (state !== null) ({ sessionId } = state);
  for await (const page of store.read(ref, read))
    for (const stored of page.records)
      for (const step of builder.take(stored)) {
        if (step.what !== "end") continue;
        spans.push(step.span);
        if (step.span.kind !== "turn") continue;
        yield documentOf(spans, sessionId, serviceName);
        spans = [];
      }
  for (const step of builder.finish()) if (step.what === "end") spans.push(step.span);
  if (spans.length > 0) yield documentOf(spans, sessionId, serviceName);
}

function documentOf(spans: readonly SessionSpan[], sessionId: string, serviceName: string): string {
  const resource = { attributes: attributesOf({ "service.name": serviceName }) };
  const scopeSpans = [
    { scope: { name: "throughline" }, spans: spans.map((span) => otlpSpan(span, sessionId)), schemaUrl },
  ];
  return `${JSON.stringify({ resourceSpans: [{ resource, scopeSpans, schemaUrl }] })}\n`;
}

/** OTLP JSON encodes these enumerations as numbers. */
const [internalKind, clientKind, errorStatus] = [1, 3, 2];

function otlpSpan(span: SessionSpan, sessionId: string): object {
  const { id, turnId, kind, name, startMs, endMs, attributes, content, error } = span;
  const failed = error === null ? {} : { [names.error]: error };
  return {
    traceId: hashOf([sessionId, turnId]).slice(0, 32),
    spanId: spanIdOf(sessionId, id),
    ...(kind === "turn" ? {} : { parentSpanId: spanIdOf(sessionId, turnId) }),
    name: name.toWellFormed(),
    kind: kind === "chat" ? clientKind : internalKind,
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf({ ...attributes, ...content, ...failed }),
    status: error === null ? {} : { code: errorStatus, message: error },
  };
}

function spanIdOf(sessionId: string, id: string): string {
  return hashOf([sessionId, "span", id]).slice(0, 16);
}

function hashOf(parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** Limits a time in milliseconds to the largest one whose nanoseconds fit into 64 bits, in the year 2554. */
const lastMs = 18_446_744_073_709;

/** Clamps a time, because a record may state any time. A collector rejects the whole line for a time out of range. */
function nanoseconds(ms: number): string {
  return `${BigInt(Math.round(Math.min(Math.max(ms, 0), lastMs))) * 1_000_000n}`;
}

function attributesOf(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  // An OTLP integer has 64 bits, and JSON has no infinity.
  if (typeof value === "number")
    return Number.isSafeInteger(value)
      ? { intValue: value }
      : { doubleValue: Number.isFinite(value) ? value : String(value) };
  return { arrayValue: { values: value.map((text) => ({ stringValue: text.toWellFormed() })) } };
}
