import { createHash } from "node:crypto";
import type { SessionRef, SessionStore } from "@throughline/core";
import { assertKnownOptions, optionKinds, type OptionTable } from "@throughline/core/internal";
import { names, schemaUrl } from "./attribute-names.ts";
import type { AttributeValue, Attributes, SessionSpan } from "./session-span.ts";
import { SpanBuilder } from "./span-builder.ts";

/** Options of `otlpLines`. */
export interface OtlpOptions {
  /** Whether spans have what was sent and said, and what tools were given and gave. @default false */
  readonly includeContent?: boolean;
  /** The `service.name` of the resource. @default "throughline" */
  readonly serviceName?: string;
  /** Ends the reading, which then throws ABORTED. */
  readonly signal?: AbortSignal;
}

/** The kinds of the options of `otlpLines`. */
export const otlpTable: OptionTable<OtlpOptions> = {
  includeContent: optionKinds.flag,
  serviceName: optionKinds.filledText,
  signal: optionKinds.signal,
};

/**
 * The spans of a session as OTLP JSON, a line for each turn: what a collector's `otlpjsonfile` receiver reads, and what the body
 * of a request to `/v1/traces` is. The same records give the same ids, so a second export repeats no trace.
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

/** Numbers of enumerations in OTLP. */
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

/** The last millisecond that 64 bits of nanoseconds hold: in the year 2554. */
const lastMs = 18_446_744_073_709;

/** A record may state any time. A collector refuses the whole line for one that the field cannot hold. */
function nanoseconds(ms: number): string {
  return `${BigInt(Math.round(Math.min(Math.max(ms, 0), lastMs))) * 1_000_000n}`;
}

function attributesOf(attributes: Attributes): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value.toWellFormed() };
  // Beyond 64 bits there is no integer, and JSON has no infinity.
  if (typeof value === "number")
    return Number.isSafeInteger(value)
      ? { intValue: value }
      : { doubleValue: Number.isFinite(value) ? value : String(value) };
  return { arrayValue: { values: value.map((text) => ({ stringValue: text.toWellFormed() })) } };
}
