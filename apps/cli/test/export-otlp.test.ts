import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory, user, type Run } from "./harness.ts";

const key = "agent:main:cli:direct:work";
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function here(args: readonly string[], stdin?: string): Promise<Run> {
  return runHere(directory.path, args, stdin === undefined ? {} : { stdin });
}

interface Trace {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly {
      readonly schemaUrl: string;
      readonly spans: readonly { readonly name: string }[];
    }[];
  }[];
}

const escape = "\u001b[31m";
const usage = { input: 3, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 8 };
const reply = {
  type: "message",
  message: {
    role: "assistant",
    content: [{ type: "text", text: "The heron." }],
    api: "anthropic-messages",
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    usage,
    stopReason: "stop",
  },
};

async function appended(): Promise<void> {
  const drafts = [user(`Which bird? ${escape}`), reply];
  const run = await here(["append", key], drafts.map((draft) => `${JSON.stringify(draft)}\n`).join(""));
  expect([run.code, run.stderr]).toEqual([0, ""]);
}

describe("export --to otlp-json", () => {
  it("prints a trace for each turn, and content only with --content", async () => {
    await appended();
    const plain = await here(["export", key, "--to", "otlp-json"]);
    expect([plain.code, plain.stderr]).toEqual([0, ""]);
    const [trace] = plain.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Trace);
    const [scope] = trace?.resourceSpans[0]?.scopeSpans ?? [];
    expect(scope?.spans.map(({ name }) => name)).toEqual(["chat claude-sonnet-4-5", "invoke_agent main"]);
    expect(scope?.schemaUrl).toBe("https://opentelemetry.io/schemas/1.45.0");
    expect(plain.stdout).not.toContain("heron");
    const whole = await here(["export", key, "--to", "otlp-json", "--content"]);
    expect(whole.stdout).toContain("heron");
    expect(whole.stdout).not.toContain("\u001b");
  });

  it("writes files, one of them for each session with --all", async () => {
    await appended();
    const one = await here(["export", key, "--to", "otlp-json", "-o", "one.jsonl", "--json"]);
    expect(objects(one.stdout)[0]).toMatchObject({ kind: "export", key, format: "otlp-json" });
    const all = await here(["export", "--all", "--to", "otlp-json", "-o", "out", "--json"]);
    const [file] = objects(all.stdout) as unknown as readonly { readonly path: string }[];
    expect(file?.path).toMatch(/out\/main\/[^/]+\.otlp\.jsonl$/);
    const written = readFileSync(file?.path ?? "", "utf8");
    expect(written).toBe(readFileSync(join(directory.path, "one.jsonl"), "utf8"));
  });

  it("refuses --content for other formats, and a session that is not there", async () => {
    await appended();
    const wrong = await here(["export", key, "--to", "pi", "--content"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("--content is for --to otlp-json.");
    const missing = await here(["export", "nobody", "--to", "otlp-json", "--json"]);
    expect(missing.code).toBe(1);
    expect(objects(missing.stderr)[0]).toMatchObject({ kind: "error", code: "SESSION_NOT_FOUND" });
  });
});
