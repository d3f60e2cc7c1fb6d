export { otlpLines, otlpTable } from "./otlp-json.ts";
export type { OtlpOptions } from "./otlp-json.ts";
export { writeSpans } from "./write-spans.ts";
export type { EventLogger, OpenSpan, SpanTracer, WriteSpansOptions } from "./write-spans.ts";
