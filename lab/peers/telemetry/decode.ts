// Lines of OTLP JSON on stdin, read as a collector reads the body of /v1/traces: into the messages of OpenTelemetry's protocol
// buffers and back. What these do not know, or hold in another type, is missing behind it. Copied into a folder that has them.
// Usage: node decode.ts < FILE
import { createRequire } from "node:module";
import process from "node:process";
import { isDeepStrictEqual } from "node:util";

type Fields = Readonly<Record<string, unknown>>;
interface MessageType {
  verify(message: Fields): string | null;
  fromObject(message: Fields): object;
  encode(message: object): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: Fields): Fields;
}

const generated = createRequire(import.meta.url)("otlp-proto/build/src/generated/root.js") as {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: { readonly trace: { readonly v1: { readonly ExportTraceServiceRequest: MessageType } } };
    };
  };
};
const request = generated.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const idNames: ReadonlySet<string> = new Set(["traceId", "spanId", "parentSpanId"]);
const int64Names: ReadonlySet<string> = new Set(["startTimeUnixNano", "endTimeUnixNano", "intValue"]);

/** OTLP JSON writes ids in hex, where protocol buffers have bytes, and may write 64 bits as a number. */
function changed(value: unknown, change: (name: string, value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => changed(one, change));
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, changed(change(name, one), change)] as const),
  );
}

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += String(chunk);
const lines = text.split("\n").filter((line) => line !== "");
let spans = 0;
for (const [at, line] of lines.entries()) {
  const plain = changed(JSON.parse(line), (name, value) =>
    int64Names.has(name) ? String(BigInt(value as string)) : value,
  ) as Fields;
  const binary = changed(plain, (name, value) =>
    idNames.has(name) ? Buffer.from(String(value), "hex") : value,
  ) as Fields;
  const read = request.decode(request.encode(request.fromObject(binary)).finish());
  const again = changed(request.toObject(read, { longs: String, bytes: Array }), (name, value) =>
    idNames.has(name) ? Buffer.from(value as number[]).toString("hex") : value,
  );
  if (!isDeepStrictEqual(again, plain))
    throw new Error(`line ${at + 1} is read as ${JSON.stringify(again)}, and is ${JSON.stringify(plain)}`);
  spans += line.split('"spanId"').length - 1;
}
if (spans === 0) throw new Error("there is no span");
process.stdout.write(
  `otlp-json: ${spans} spans in ${lines.length} lines are what OpenTelemetry's protocol buffers hold\n`,
);
