// Writes the spans of a session with OpenTelemetry's SDK while it runs, and prints them beside the export of the same session.
// node --conditions=@throughline/source live-spans.ts DATABASE TEXT…
import { ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import type { LogRecord } from "@opentelemetry/api-logs";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { argv, stdout } from "node:process";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import { otlpLines } from "../src/otlp-json.ts";
import { writeSpans } from "../src/write-spans.ts";
import { ref, talk } from "./talk.ts";

const [path = "", ...texts] = argv.slice(2);
const exporter = new InMemorySpanExporter();
const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer("test");
const events: LogRecord[] = [];
const logger = { emit: (event: LogRecord): void => void events.push(event) };
const store = createSqliteStore({ path });
await store.save(ref, { sessionId: "s" }, { ifRevision: null });
const ended = new AbortController();
const done = writeSpans({
  store,
  ref,
  tracer,
  contextOf: (span) => trace.setSpan(ROOT_CONTEXT, span),
  logger,
  includeContent: true,
  signal: ended.signal,
});
await talk(store, ...texts);
await until(
  () => exporter.getFinishedSpans().filter(({ name }) => name.startsWith("invoke_agent")).length === texts.length,
);
ended.abort();
await done;
const spans = exporter.getFinishedSpans().map((span) => ({
  name: span.name,
  kind: span.kind,
  isError: span.status.code === SpanStatusCode.ERROR,
  startTimeUnixNano: String(BigInt(span.startTime[0]) * 1_000_000_000n + BigInt(span.startTime[1])),
  spanId: span.spanContext().spanId,
  parentSpanId: span.parentSpanContext?.spanId ?? null,
  attributes: span.attributes,
}));
const lines = await Array.fromAsync(otlpLines(store, ref));
const said = events.map(({ eventName, attributes }) => ({ eventName, attributes }));
await store.close();
stdout.write(JSON.stringify({ spans, events: said, lines }));
