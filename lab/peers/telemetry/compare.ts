// One scripted run of the AI SDK, told by its own OpenTelemetry integration and by ours of the recorded session; and our OTLP JSON
// beside what OpenTelemetry's own serializer makes of spans. Copied into a folder that has the packages.
// Usage: node compare.ts FOLDER_OF_THE_CHECKOUT
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import type * as Telemetry from "../../../packages/telemetry/src/index.ts";
import type * as Core from "../../../packages/core/src/index.ts";
import type * as ForAi from "../../../packages/adapter-ai-sdk/src/index.ts";
import type { SessionStore } from "../../../packages/core/src/index.ts";

type Fields = Readonly<Record<string, unknown>>;
type Make = new (...given: unknown[]) => never;
type Call = (...given: unknown[]) => never;

const [root = ""] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const ours = async (path: string): Promise<unknown> =>
  import(pathToFileURL(join(root, "packages", path, "src/index.ts")).href);
const peer = (name: string): Record<string, never> => require(name) as Record<string, never>;

const core = (await ours("core")) as typeof Core;
const telemetry = (await ours("telemetry")) as typeof Telemetry;
const forAi = (await ours("adapter-ai-sdk")) as typeof ForAi;
const { createMemoryStore } = (await ours("store-memory")) as { createMemoryStore(): SessionStore };
const ai = (await import("ai" as string)) as Record<string, Call>;
const doubles = (await import("ai/test" as string)) as Record<string, Make>;
const integration = (await import("@ai-sdk/otel" as string)) as Record<string, Make>;
const sdk = peer("@opentelemetry/sdk-trace-base") as unknown as Record<string, Make>;
const transformer = peer("@opentelemetry/otlp-transformer") as unknown as {
  readonly JsonTraceSerializer: { serializeRequest(spans: unknown): Uint8Array };
};
const conventions = peer("@opentelemetry/semantic-conventions/incubating") as unknown as Fields;

interface PeerSpan {
  readonly name: string;
  readonly attributes: Fields;
}

const exporter = new (sdk["InMemorySpanExporter"] as Make)() as { getFinishedSpans(): readonly PeerSpan[] };
const processor = new (sdk["SimpleSpanProcessor"] as Make)(exporter) as object;
const provider = new (sdk["BasicTracerProvider"] as Make)({ spanProcessors: [processor] }) as {
  getTracer(name: string): object;
};
const tracer = provider.getTracer("compare");
(ai["registerTelemetry"] as Call)(new (integration["OpenTelemetry"] as Make)({ tracer }));

const store = createMemoryStore();
const ref = core.sessionRef({ key: "agent:main:compare" });
const usage = {
  inputTokens: { total: 90, noCache: 10, cacheRead: 80, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const replies: readonly Fields[][] = [
  [{ type: "tool-call", toolCallId: "call_1", toolName: "clock", input: "{}" }],
  [{ type: "text", text: "It is noon." }],
];
let asked = 0;
const model = new (doubles["MockLanguageModelV4"] as Make)({
  provider: "openai.responses",
  modelId: "acme-1",
  doGenerate: () => {
    const content = replies[asked] ?? [];
    asked += 1;
    const unified = content[0]?.["type"] === "text" ? "stop" : "tool-calls";
    // The middleware stores the model that answered; which one was asked for, it does not.
    const response = { id: `resp_${asked}`, modelId: "acme-1", timestamp: new Date(0) };
    return Promise.resolve({ content, finishReason: { unified, raw: unified }, usage, warnings: [], response });
  },
});
const clock = {
  description: "the time",
  inputSchema: (ai["jsonSchema"] as Call)({ type: "object", properties: {} }),
  execute: () => "noon",
};
const wrapped = (ai["wrapLanguageModel"] as Call)({
  model,
  middleware: forAi.throughlineMiddleware({ store, ref, mode: "record" }),
});
await (ai["generateText"] as (options: Fields) => Promise<unknown>)({
  model: wrapped,
  tools: { clock: (ai["tool"] as Call)(clock) },
  prompt: "What time is it?",
  stopWhen: (ai["isStepCount"] as Call)(5),
});

interface OtlpSpan {
  readonly name: string;
  readonly attributes: readonly { readonly key: string; readonly value: Fields }[];
}

const lines = await Array.fromAsync(telemetry.otlpLines(store, ref, { includeContent: true }));
const documents = lines.map((line) => JSON.parse(line) as Fields);
const own = documents.flatMap(spansIn);
const problems: string[] = [];

function spansIn(document: Fields): readonly OtlpSpan[] {
  const resources = document["resourceSpans"] as readonly { scopeSpans: readonly { spans: readonly OtlpSpan[] }[] }[];
  return resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

function plain(value: Fields | undefined): unknown {
  if (value === undefined) return undefined;
  const [only] = Object.values(value);
  const { values } = (only ?? {}) as { readonly values?: readonly Fields[] };
  return values === undefined ? only : values.map(plain);
}

/** Names that both have must have the same values. */
let shared = 0;
const onlyTheirs = new Set<string>();
const onlyOurs = new Set<string>();
const operation = "gen_ai.operation.name";
for (const kind of ["chat", "execute_tool"]) {
  const theirs = exporter.getFinishedSpans().filter(({ attributes }) => attributes[operation] === kind);
  const mine = own.filter(({ attributes }) => plain(attributes.find(({ key }) => key === operation)?.value) === kind);
  if (theirs.length !== mine.length || mine.length === 0)
    problems.push(`${kind}: ${mine.length} spans of ours, ${theirs.length} of theirs`);
  for (const [at, span] of mine.entries()) {
    const other = theirs[at]?.attributes ?? {};
    const attributes = new Map(span.attributes.map(({ key, value }) => [key, plain(value)]));
    for (const [name, value] of Object.entries(other)) {
      if (!name.startsWith("gen_ai.")) continue;
      if (!attributes.has(name)) onlyTheirs.add(name);
      // Words for the same reason: the conventions have `tool_call` in messages, the SDK its own here.
      else if (name === "gen_ai.response.finish_reasons") shared += 1;
      else if (isSame(attributes.get(name), value)) shared += 1;
      else
        problems.push(`${span.name} ${name}: ${JSON.stringify(attributes.get(name))}, theirs ${JSON.stringify(value)}`);
    }
    for (const name of attributes.keys()) if (!(name in other)) onlyOurs.add(name);
  }
}

/** Texts of JSON are compared as what they say. */
function isSame(one: unknown, other: unknown): boolean {
  const parsed = (value: unknown): unknown => {
    try {
      return typeof value === "string" ? JSON.parse(value) : value;
    } catch {
      return value;
    }
  };
  return JSON.stringify(parsed(one)) === JSON.stringify(parsed(other));
}

// Every name is one of the conventions.
const known = new Set(Object.values(conventions));
const stable = Object.values(peer("@opentelemetry/semantic-conventions") as Fields);
for (const name of stable) known.add(name);
for (const { attributes } of own)
  for (const { key } of attributes) if (!known.has(key)) problems.push(`${key} is no name of the conventions`);

/** Where a document has which kind of value. */
function shapeOf(value: unknown, path: string, shapes: Set<string>): Set<string> {
  if (Array.isArray(value)) for (const one of value as readonly unknown[]) shapeOf(one, `${path}[]`, shapes);
  else if (typeof value === "object" && value !== null)
    for (const [name, one] of Object.entries(value)) shapeOf(one, `${path}.${name}`, shapes);
  else shapes.add(`${path}: ${typeof value}`);
  return shapes;
}

const bytes = transformer.JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans());
const theirShape = shapeOf(JSON.parse(Buffer.from(bytes).toString()), "", new Set());
const ourShape = new Set(documents.flatMap((document) => [...shapeOf(document, "", new Set())]));
// Ours name the conventions that they follow, which the format has a field for; a status has a code only where it failed.
const allowed = new Set([".resourceSpans[].schemaUrl: string", ".resourceSpans[].scopeSpans[].schemaUrl: string"]);
for (const shape of ourShape)
  if (!theirShape.has(shape) && !allowed.has(shape)) problems.push(`OpenTelemetry's serializer writes no ${shape}`);

process.stdout.write(`${problems.join("\n")}${problems.length > 0 ? "\n" : ""}`);
process.stdout.write(`only @ai-sdk/otel: ${[...onlyTheirs].join(", ") || "nothing"}\n`);
process.stdout.write(`only ours: ${[...onlyOurs].join(", ") || "nothing"}\n`);
process.stdout.write(
  `telemetry: ${own.length} spans, ${shared} attributes as @ai-sdk/otel has them, ${ourShape.size} places of OTLP JSON, ${problems.length} problems\n`,
);
process.exitCode = problems.length === 0 && shared > 0 ? 0 : 1;
