import { copyFileSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const cases = join(process.env["THROUGHLINE_CORPUS"] ?? "", "cases");
const hasCases = process.env["THROUGHLINE_CORPUS"] !== undefined && existsSync(cases);

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

interface Source {
  readonly key: string;
}

/** Imports a case, and gives the keys of its sessions. */
async function importCase(path: string): Promise<readonly string[]> {
  const { code, stdout, stderr } = await runHere(directory.path, ["import", join(cases, path), "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  const [{ sources } = {}] = objects(stdout);
  return (sources as readonly Source[]).flatMap(({ key }) => key ?? []);
}

/** Healthy files of other programs, with the name that `doctor` prints. */
const files: readonly (readonly [file: string, program: string])[] = [
  ["cline/tasks/1771111111111/api_conversation_history.json", "Cline"],
  ["anthropic-text/text-only.json", "OpenAI Chat Completions"],
  ["gemini-legacy/before.json", "Gemini CLI"],
  ["head64k/anthropic-bigsystem.json", "Anthropic Messages"],
  ["head64k/anthropic-line.json", "Anthropic Messages"],
  ["head64k/anthropic-ownrows.json", "Anthropic Messages"],
  ["head64k/anthropic-pretty.json", "Anthropic Messages"],
  ["head64k/claude-code-bigimage.jsonl", "Claude Code"],
  ["head64k/claude-code-bigtext.jsonl", "Claude Code"],
  ["head64k/codex-bigmeta.jsonl", "Codex"],
  ["head64k/copilot.jsonl", "GitHub Copilot CLI"],
  ["head64k/gemini.json", "Gemini CLI"],
  ["head64k/openai-line.json", "OpenAI Chat Completions"],
  ["head64k/openai-list.json", "OpenAI Chat Completions"],
  ["head64k/openai-ownrows.json", "OpenAI Chat Completions"],
  ["head64k/openai-pretty.json", "OpenAI Chat Completions"],
  ["head64k/opencode.json", "opencode"],
];

describe.skipIf(!hasCases)("a case of the corpus", () => {
  it.each(files)("doctor --repair names the program of %s and writes no file", async (file, program) => {
    const folder = join(directory.path, "files");
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    copyFileSync(join(cases, file), path);
    const checked = await runHere(directory.path, ["doctor", path, "--repair", "--json"]);
    const findings = objects(checked.stdout).filter(({ kind }) => kind === "finding");
    expect(findings.map(({ code, message }) => [code, message])).toEqual([
      ["TRANSCRIPT_FOREIGN", `The file is a transcript of ${program}.`],
    ]);
    expect(readdirSync(dirname(path))).toEqual([basename(file)]);
  });

  it.each(["b03-impossible-usage.jsonl", "b03-impossible-usage-long.jsonl", "b03-codex-impossible-count.jsonl"])(
    "the gauge does not believe the count of reports/%s",
    async (file) => {
      const [key = ""] = await importCase(`reports/${file}`);
      const { stdout } = await runHere(directory.path, ["context", key, "--json", "--quiet"]);
      const [{ gauge } = {}] = objects(stdout);
      const { tokens } = gauge as { readonly tokens: number };
      expect([tokens > 0, tokens < 10_000, tokens]).toEqual([true, true, tokens]);
    },
  );

  it("chat compacts nothing of 60 short messages with an impossible count", async () => {
    await using provider = createProviderSimulator({ fallback: () => "Fine." });
    await provider.start();
    const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
    const [key = ""] = await importCase("reports/b03-impossible-usage-long.jsonl");
    const model = ["--model", "anthropic/claude-sonnet-4-5"];
    const chat = ["chat", "--key", key, ...model, "--tools", "none", "--once", "And now?", "--quiet"];
    expect(await runHere(directory.path, chat, { environment })).toMatchObject({ code: 0 });
    const { stdout } = await runHere(directory.path, ["sessions", "--json"]);
    expect(stdout).not.toMatch(/"compactionCount":[1-9]/);
    const requests = provider.requests.map(({ body }) => JSON.stringify(body));
    expect(requests).toHaveLength(1);
    expect(requests[0]).toContain("Question 0 about the parser");
  });

  it("import of reports/b12-gemini ends well, with one session", async () => {
    expect(await importCase("reports/b12-gemini")).toHaveLength(1);
  });

  it("show has one line for the thinking of reports/b19-goose", async () => {
    const [key = ""] = await importCase("reports/b19-goose/sessions.db");
    const { stdout } = await runHere(directory.path, ["show", key]);
    const thinking = stdout.split("\n").filter((line) => line.includes("the user wants a list"));
    expect(thinking).toHaveLength(1);
  });

  it("sessions shows the title of reports/b21-summary that stands in the other file", async () => {
    await importCase("reports/b21-summary");
    expect((await runHere(directory.path, ["sessions"])).stdout).toContain("Fix the login bug");
  });
});
