import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execPath } from "node:process";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { openSession, redactRecords, type SessionStore } from "@throughline/core";
import { createMemoryStore } from "@throughline/store-memory";
import { createSqliteStore } from "@throughline/store-sqlite";
import { until } from "@throughline/test-kit";
import { otlpLines } from "../src/otlp-json.ts";
import { writeSpans } from "../src/write-spans.ts";
import { key, ref, talk } from "./talk.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-telemetry-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

async function spansOf(store: SessionStore, options: Parameters<typeof otlpLines>[2] = {}): Promise<readonly Span[]> {
  const lines = await Array.fromAsync(otlpLines(store, ref, options));
  return lines.flatMap(spansIn);
}

function spansIn(line: string): readonly Span[] {
  const { resourceSpans } = JSON.parse(line) as {
    readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[];
  };
  return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

function attribute(span: Span | undefined, name: string): unknown {
  const value = span?.attributes.find((one) => one.key === name)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}

describe("otlpLines", () => {
  it(
    "gives a trace for each turn, with its calls and tools below it, in the time they took",
    { tags: ["slow"] },
    async () => {
      const store = createMemoryStore();
      await talk(store, "Read a.txt", "Read missing.txt");
      const lines = await Array.fromAsync(otlpLines(store, ref));
      expect(lines.length).toBe(2);
      const spans = await spansOf(store);
      const names = ["chat offline-rules", "execute_tool read", "chat offline-rules", "invoke_agent main"];
      expect(spans.map(({ name }) => name)).toEqual([...names, ...names]);
      for (const turn of [spans.slice(0, 4), spans.slice(4)]) {
        const root = turn.at(-1);
        for (const span of turn.slice(0, -1)) {
          expect([span.traceId, span.parentSpanId]).toEqual([root?.traceId, root?.spanId]);
          expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(root?.startTimeUnixNano ?? 0));
          expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
          expect(BigInt(span.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(root?.endTimeUnixNano ?? 0));
        }
        expect(root?.parentSpanId).toBeUndefined();
      }
      expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(8);
      expect(spans[0]?.traceId).toMatch(/^[0-9a-f]{32}$/);
      expect(spans[0]?.spanId).toMatch(/^[0-9a-f]{16}$/);
      expect(attribute(spans[0], "gen_ai.operation.name")).toBe("chat");
      expect(attribute(spans[0], "gen_ai.provider.name")).toBe("offline");
      expect(attribute(spans[0], "gen_ai.conversation.id")).toBe(key);
      expect(attribute(spans[0], "gen_ai.response.finish_reasons")).toEqual({ values: [{ stringValue: "tool_call" }] });
      expect(attribute(spans[1], "gen_ai.tool.name")).toBe("read");
      expect([spans[1]?.status, spans[5]?.status]).toEqual([{}, { code: 2, message: "tool_error" }]);
      expect(lines).toEqual(await Array.fromAsync(otlpLines(store, ref)));
    },
  );

  it("counts what was cached as input, and has a span for a call that failed", async () => {
    const store = createMemoryStore();
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    const usage = { input: 10, output: 5, cacheRead: 80, cacheWrite: 7, totalTokens: 102 };
    const reply = {
      role: "assistant",
      content: [{ type: "text", text: "Hi" }],
      api: "anthropic-messages",
      provider: "google",
      model: "g-1",
    };
    await store.append(ref, [
      { type: "message", message: { role: "user", content: "Hello" } },
      { type: "message", message: { ...reply, usage, stopReason: "stop", responseId: "msg_1" } },
      { type: "message", message: { role: "user", content: "Again" } },
      { type: "message", message: { ...reply, content: [], stopReason: "error" } },
    ]);
    const [chat, first, failed, second] = await spansOf(store);
    expect([first?.name, second?.name]).toEqual(["invoke_agent main", "invoke_agent main"]);
    expect(attribute(chat, "gen_ai.usage.input_tokens")).toBe(97);
    expect(attribute(chat, "gen_ai.usage.cache_read.input_tokens")).toBe(80);
    expect(attribute(chat, "gen_ai.usage.cache_creation.input_tokens")).toBe(7);
    expect(attribute(chat, "gen_ai.response.id")).toBe("msg_1");
    expect(attribute(chat, "gen_ai.provider.name")).toBe("gcp.gemini");
    expect([failed?.status.code, attribute(failed, "error.type")]).toEqual([2, "error"]);
  });

  it("has content only where it is asked for, and nothing of what was redacted", async () => {
    const store = createMemoryStore();
    await talk(store, "Read a.txt");
    expect((await Array.fromAsync(otlpLines(store, ref))).join("")).not.toContain("heron");
    const [first, tool, last] = await spansOf(store, { includeContent: true });
    expect(JSON.parse(String(attribute(first, "gen_ai.input.messages")))).toEqual([
      { role: "user", parts: [{ type: "text", content: "Read a.txt" }] },
    ]);
    expect(attribute(tool, "gen_ai.tool.call.arguments")).toBe('{"path":"a.txt"}');
    expect(attribute(tool, "gen_ai.tool.call.result")).toBe("heron in a.txt");
    const input = JSON.parse(String(attribute(last, "gen_ai.input.messages"))) as readonly { role: string }[];
    expect(input.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    const [output] = JSON.parse(String(attribute(last, "gen_ai.output.messages"))) as readonly {
      finish_reason: string;
    }[];
    expect(output?.finish_reason).toBe("stop");
    const ids: string[] = [];
    for await (const { records } of store.read(ref))
      for (const { id, record } of records) if (JSON.stringify(record).includes("heron")) ids.push(id);
    await redactRecords(store, ref, ids, { reason: "a secret" });
    expect((await Array.fromAsync(otlpLines(store, ref, { includeContent: true }))).join("")).not.toContain("heron");
  });

  it("holds every value of a record in the types of OTLP, whatever it is", async () => {
    const store = createMemoryStore();
    const usage = { input: 1e300, output: 0.5, cacheRead: 7, cacheWrite: 0 };
    const reply = { role: "assistant", content: "No.", model: "half \ud83e", usage, stopReason: "stop" };
    const say = (timestamp: string, message: object): object => ({ type: "message", timestamp, message });
    await openSession(store, ref);
    await store.append(ref, [
      say("1901-01-01T00:00:00.000Z", { role: "user", content: "When?" }) as never,
      say("+275760-09-13T00:00:00.000Z", reply) as never,
      say("2026-01-01T00:00:00.000Z", { role: "user", content: "And now?" }) as never,
    ]);
    const spans = await spansOf(store);
    expect(spans.map(({ name }) => name)).toEqual(["chat half \ufffd", "invoke_agent main", "invoke_agent main"]);
    for (const { startTimeUnixNano, endTimeUnixNano, attributes } of spans) {
      for (const time of [startTimeUnixNano, endTimeUnixNano])
        expect(BigInt.asUintN(64, BigInt(time))).toBe(BigInt(time));
      for (const { value } of attributes)
        if ("intValue" in value) expect(Number.isSafeInteger(value["intValue"])).toBe(true);
    }
    expect(JSON.stringify(spans)).not.toMatch(/null|\\ud83e/);
  });

  it("names what is wrong", async () => {
    const store = createMemoryStore();
    await expect(Array.fromAsync(otlpLines(store, ref))).rejects.toThrow(/no session/);
    await expect(Array.fromAsync(otlpLines(store, ref, { content: true } as never))).rejects.toThrow(/content/);
  });
});

interface LiveSpan {
  readonly name: string;
  readonly kind: number;
  readonly isError: boolean;
  readonly startTimeUnixNano: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Live {
  readonly spans: readonly LiveSpan[];
  readonly events: readonly { readonly eventName: string; readonly attributes: object }[];
  readonly lines: readonly string[];
}

/** In a process of its own: the module of OpenTelemetry's API for bundlers names files that Node does not find. */
async function live(...texts: readonly string[]): Promise<Live> {
  const args = [
    "--conditions=@throughline/source",
    join(import.meta.dirname, "live-spans.ts"),
    join(folder, "live.db"),
    ...texts,
  ];
  const { stdout } = await promisify(execFile)(execPath, args);
  return JSON.parse(stdout) as Live;
}

describe("writeSpans", () => {
  it(
    "writes the spans of a session with a real SDK while it runs, the same ones as the export has",
    { tags: ["slow"] },
    async () => {
      const { spans, events, lines } = await live("Read a.txt", "Read missing.txt");
      const past = lines.flatMap(spansIn);
      expect(spans.map(({ name }) => name)).toEqual(past.map(({ name }) => name));
      expect(spans.length).toBe(8);
      // Numbers of the API and of OTLP.
      expect(spans.map(({ kind }) => kind === 2)).toEqual(past.map(({ kind }) => kind === 3));
      expect(spans.map(({ isError }) => isError)).toEqual(past.map(({ status }) => status.code === 2));
      expect(spans.map((span) => span.startTimeUnixNano)).toEqual(past.map((span) => span.startTimeUnixNano));
      const [chat, , , root] = spans;
      expect(chat?.parentSpanId).toBe(root?.spanId);
      expect(root?.parentSpanId).toBeNull();
      const names = Array.from({ length: 4 }, () => "gen_ai.client.inference.operation.details");
      expect(events.map(({ eventName }) => eventName)).toEqual(names);
      expect(JSON.stringify(events)).toContain("Read a.txt");
      expect(JSON.stringify(chat?.attributes)).not.toContain("Read a.txt");
    },
  );

  it("ends an open turn with its signal, and refuses a store that cannot be watched", { tags: ["slow"] }, async () => {
    await using store = createSqliteStore({ path: join(folder, "open.db") });
    await store.save(ref, { sessionId: "s" }, { ifRevision: null });
    const ended = new AbortController();
    const log: string[] = [];
    const span = { setAttributes: () => {}, setStatus: () => {}, end: () => void log.push("end") };
    const tracer = { startSpan: (name: string) => (log.push(name), span) };
    const options = { ref, tracer, contextOf: () => null as never, signal: ended.signal };
    const done = writeSpans({ store, ...options });
    await store.append(ref, [{ type: "message", message: { role: "user", content: "Hello" } }]);
    await until(() => log.length === 1);
    ended.abort();
    await done;
    expect(log).toEqual(["invoke_agent main", "end"]);
    const blind = createMemoryStore();
    await expect(writeSpans({ store: blind, ...options })).rejects.toThrow("Store memory cannot be watched.");
    await expect(writeSpans({ store, ...options, logger: {} } as never)).rejects.toThrow(/logger/);
  });
});
