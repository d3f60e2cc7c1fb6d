import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { assistant, objects, runHere, sentBody, temporaryDirectory, user } from "./harness.ts";
import type { Run } from "./harness.ts";

const key = "agent:main:cli:direct:work";
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

const folder = (): string => join(directory.path, "store", "agents", "main", "sessions");

async function run(
  args: readonly string[],
  {
    stdin = "",
    environment = {},
    code = 0,
    stderr = "",
  }: Partial<Omit<Run, "stdout">> & {
    readonly stdin?: string;
    readonly environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<Run> {
  const done = await runHere(directory.path, [...args, "--store", `jsonl:${join(directory.path, "store")}`], {
    stdin,
    environment,
  });
  expect([args[0], done.code, done.code === code ? "" : done.stderr]).toEqual([args[0], code, ""]);
  expect(done.stderr).toContain(stderr);
  return done;
}

/** The transcripts in the store's folder, archived ones too, by name. */
function transcripts(): ReadonlyMap<string, Buffer> {
  const names = readdirSync(folder()).filter((name) => name.includes(".jsonl"));
  return new Map(names.map((name) => [name, readFileSync(join(folder(), name))]));
}

const exchanges = (count: number): string =>
  Array.from({ length: count }, (_, at) => [user(`Question ${at}: ${"w ".repeat(60)}`), assistant(`Answer ${at}.`)])
    .flat()
    .map((draft) => `${JSON.stringify(draft)}\n`)
    .join("");

const summary = "Topics:\n- questions\nDecisions:\n- none\nCurrent state:\n- answered\nOpen items:\n- none";

/** Every command that writes records, on one session and its branches. */
async function* everyWritingCommand(): AsyncGenerator<string> {
  await using provider = createProviderSimulator({
    fallback: (request) =>
      JSON.stringify(sentBody(request)["system"] ?? "").includes("JSON object")
        ? '{"summary":"Questions were asked.","topics":["questions"],"keyDecisions":[],"openQuestions":[]}'
        : summary,
  });
  await provider.start();
  const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
  const model = ["--model", "anthropic/claude-opus-5"];
  const commands: readonly (readonly [readonly string[], string?])[] = [
    [["append", key], exchanges(20)],
    [["chat", "--key", key, "--once", "hello", ...model]],
    [["checkpoint", key, ...model]],
    [["compact", key, ...model]],
    [["entry", key, "set", "label", "Work"]],
    [["append", key], `${JSON.stringify({ type: "model_change", provider: "openai", modelId: "gpt-5" })}\n`],
    [["rename", key, `${key}-2`]],
    [["fork", `${key}-2`, "--key", `${key}-fork`]],
    [["append", `${key}-fork`], exchanges(1)],
    [["rewind", `${key}-2`, "--to", "4"]],
    [["chat", "--key", `${key}-2`, "--once", "again", ...model]],
    [["reset", `${key}-2`]],
    [["append", `${key}-2`], exchanges(2)],
    [["delete", `${key}-fork`]],
  ];
  for (const [args, stdin] of commands) {
    await run(args, { stdin: stdin ?? "", environment });
    yield args.slice(0, 2).join(" ");
  }
  expect(provider.refusals).toEqual([]);
}

describe("a transcript that the commands write", () => {
  it("begins with a version 3 header that names its session and key, whatever made the file [REC-09, REC-10, REC-19, REC-20, C10]", async () => {
    for await (const _ of everyWritingCommand());
    const written = transcripts();
    expect([...written.keys()].filter((name) => name.includes(".reset.") || name.includes(".deleted."))).toHaveLength(
      2,
    );
    expect(written.size).toBe(3);
    for (const [name, bytes] of written) {
      const lines = bytes.toString("utf8").trimEnd().split("\n");
      const [header, ...others] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      expect(header).toMatchObject({ type: "session", version: 3, id: expect.stringMatching(uuid) });
      expect(name.startsWith(`${String(header?.["id"])}.jsonl`)).toBe(true);
      expect(header?.["timestamp"]).toMatch(isoTime);
      expect(typeof header?.["cwd"]).toBe("string");
      expect(String(header?.["key"])).toContain(key);
      expect(others.map(({ type }) => type)).not.toContain("session");
      const ids = new Set<unknown>([null]);
      for (const { id, parentId, timestamp } of others) {
        expect(ids.has(parentId)).toBe(true);
        expect(timestamp).toMatch(isoTime);
        ids.add(id);
      }
    }
  });

  it("keeps every byte it has, whatever is written after it", async () => {
    let before: ReadonlyMap<string, Buffer> = new Map();
    const grown: string[] = [];
    for await (const command of everyWritingCommand()) {
      const after = transcripts();
      for (const [name, bytes] of before) {
        // An archived file has another ending.
        const found = [...after].find(([now]) => now === name || now.startsWith(`${name}.`));
        const now = found?.[1].subarray(0, bytes.length) ?? Buffer.alloc(0);
        expect([command, name, now.equals(bytes)]).toEqual([command, name, true]);
        if ((found?.[1].length ?? 0) > bytes.length) grown.push(command.split(" ")[0] ?? "");
      }
      before = after;
    }
    expect(new Set(grown)).toEqual(new Set(["append", "chat", "checkpoint", "compact", "rewind"]));
  });

  it("is read without a header, and not emptied by the next append [REC-31, C10]", async () => {
    await run(["append", key], { stdin: exchanges(3) });
    const [name = ""] = transcripts().keys();
    const whole = readFileSync(join(folder(), name), "utf8");
    const headless = whole.slice(whole.indexOf("\n") + 1);
    writeFileSync(join(folder(), name), headless);
    const shown = objects((await run(["show", key, "--json", "--quiet"])).stdout);
    expect(shown.filter(({ kind }) => kind === "record")).toHaveLength(6);
    await run(["append", key], { stdin: exchanges(1) });
    expect(readFileSync(join(folder(), name), "utf8").startsWith(headless)).toBe(true);
    const again = objects((await run(["show", key, "--json", "--quiet"])).stdout);
    expect(again.filter(({ kind }) => kind === "record")).toHaveLength(8);
  });

  it("of another program is imported without a header, and its file stays as it is [REC-31, C10]", async () => {
    const source = join(directory.path, "source");
    mkdirSync(source);
    const text = `${JSON.stringify({ type: "message", id: "a", parentId: null, timestamp: "2026-01-02T03:04:05.006Z", message: { role: "user", content: "without a header" } })}\n`;
    writeFileSync(join(source, "a.jsonl"), text);
    await run(["import", join(source, "a.jsonl"), "--key", key], { code: 3, stderr: "HEADER_MISSING" });
    expect((await run(["show", key])).stdout).toContain("without a header");
    expect(readFileSync(join(source, "a.jsonl"), "utf8")).toBe(text);
    expect((await run(["export", key])).stdout).toBe(text);
  });
});
