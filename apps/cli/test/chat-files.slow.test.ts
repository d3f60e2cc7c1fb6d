import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sentBody, temporaryDirectory } from "./harness.ts";
import { rowOf, screenOf } from "./screens.ts";
import { runInTerminal, say, type Terminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
  mkdirSync(join(directory.path, "work/src"), { recursive: true });
});
afterEach(() => directory.remove());

const pdf = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n");
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

function file(name: string, content: string | Uint8Array): void {
  writeFileSync(join(directory.path, name), content);
}

function chat(url: string, args: readonly string[] = [], model = "anthropic/claude-opus-5"): Terminal {
  const own = ["chat", "--key", "k", "--model", model, "--workspace", "work"];
  const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: url, OLLAMA_HOST: url };
  return runInTerminal(directory.path, [...own, ...args], { environment, columns: 100 });
}

async function answering(): Promise<ProviderSimulator> {
  const provider = createProviderSimulator({ fallback: () => "Seen." });
  await provider.start();
  return provider;
}

const sent = (provider: ProviderSimulator): string => JSON.stringify(sentBody(provider.requests.at(-1))["messages"]);
const row = (terminal: Terminal, wanted: RegExp): Promise<string> => rowOf(terminal, wanted, 100);

describe("@file", () => {
  it("is completed with Tab, and sends texts and images as blocks of the message", async () => {
    for (const name of ["login.ts", "logout.ts"]) file(`work/src/${name}`, `// ${name}\n`);
    file("work/two words.png", png);
    await using provider = await answering();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    terminal.write("read @lo\t");
    await row(terminal, /^ {2}@src\/logout\.ts$/);
    expect(await row(terminal, /^> read/)).toBe("> read @src/log");
    terminal.write("\t\t");
    await row(terminal, /^❯ @src\/logout\.ts$/);
    expect(await row(terminal, /^> read/)).toBe("> read @src/logout.ts");
    terminal.write(", and @tw\t");
    await row(terminal, /and @"two words\.png"$/);
    await say(terminal, "and @types/node");
    expect(provider.refusals).toEqual([]);
    expect(sent(provider)).toContain('"text":"[src/logout.ts]\\n// logout.ts\\n"');
    expect(sent(provider)).toContain(png.toString("base64"));
    const shown = (await screenOf(terminal, 100)).join("\n");
    expect(shown).toContain('("@types/node" names no file here, so only the words are sent)');
    expect(shown).toContain("(sent with src/logout.ts, 13 B; two words.png, 70 B)");
    terminal.write("/appr\t");
    await row(terminal, /^> \/approvals$/);
  });

  it("sends a PDF as a file block", async () => {
    file("work/plan.pdf", pdf);
    await using provider = await answering();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    await say(terminal, "sum up @plan.pdf.");
    expect(provider.refusals).toEqual([]);
    expect(sent(provider)).toContain(`"media_type":"application/pdf","data":"${pdf.toString("base64")}"`);
    await row(terminal, /^\(sent with plan\.pdf, \d+ B\)$/);
  });

  it("refuses an image for a model that reads none, with the way out, and sends it to one that is not known", async () => {
    file("work/a.png", png);
    await using provider = await answering();
    await using terminal = chat(provider.url, [], "ollama/qwen3:8b");
    await terminal.waitForPrompt();
    await say(terminal, "look at @a.png");
    await row(terminal, /error: ollama\/qwen3:8b reads no images, so "a\.png" was not sent, nor the words\./);
    await row(terminal, /\/model PROVIDER\/NAME/);
    await row(terminal, /^> look at @a\.png$/);
    expect(provider.requests.filter(({ path }) => path === "/api/chat")).toEqual([]);
    terminal.write("\u0015");
    await say(terminal, "/model anthropic/next-model");
    await say(terminal, "look at @a.png");
    await row(terminal, /^\(it is not known whether anthropic\/next-model reads images\)$/);
  });

  it("asks before it sends a file from outside or a hidden one, and never sends one of Throughline's own", async () => {
    file("secret.txt", "the secret");
    file("work/.env", "KEY=hidden");
    file("config.json", "{}");
    symlinkSync("../secret.txt", join(directory.path, "work/notes.txt"));
    await using provider = await answering();
    await using terminal = chat(provider.url, ["--config", join(directory.path, "config.json")]);
    await terminal.waitForPrompt();
    await say(terminal, "read @notes.txt");
    await row(terminal, /error: "@notes\.txt" lies outside of this folder: /);
    expect(terminal.text().replace(/\s/g, "")).toContain("/secret.txt.Nothingwassent.");
    await row(terminal, /^> read @notes\.txt$/);
    await say(terminal, "");
    expect(sent(provider)).toContain("[notes.txt]\\nthe secret");
    await say(terminal, "read @.env");
    await row(terminal, /"@\.env" is hidden from the model's tools: /);
    terminal.write("\u0003");
    for (const _ of ["asked", "refused"]) {
      terminal.write("\u0015");
      await say(terminal, "read @../config.json");
    }
    await row(terminal, /is not for tools/);
    expect(provider.requests).toHaveLength(1);
  });

  it("refuses what is too large or no text, and gives the words back", async () => {
    file("work/large.txt", "x".repeat(300_000));
    file("work/a.bin", new Uint8Array([1, 0, 2, 255]));
    await using provider = await answering();
    await using terminal = chat(provider.url);
    await terminal.waitForPrompt();
    await say(terminal, "read @large.txt");
    await row(terminal, /error: "large\.txt" has 300 kB, and a message takes 263 kB of it at most\./);
    await row(terminal, /^> read @large\.txt$/);
    terminal.write("\u0015");
    await say(terminal, "read @a.bin");
    await row(terminal, /error: "a\.bin" is no text, image or PDF\./);
    expect(provider.requests).toEqual([]);
  });
});
