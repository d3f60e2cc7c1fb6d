export { otlpLines } from "./otlp-json.ts";
export { writeSpans } from "./write-spans.ts";
export type { WriteSpansOptions } from "./write-spans.ts";
