import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createProviderSimulator } from "@throughline/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runChild, sentBody, temporaryDirectory } from "./harness.ts";
import { rowOf } from "./screens.ts";
import { runInTerminal } from "./terminal.ts";

let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

function file(name: string, content: string): void {
  writeFileSync(join(directory.path, name), content);
}

it("sends AGENTS.md, else CLAUDE.md, up to the root of the repository, and says when one changed", async () => {
  mkdirSync(join(directory.path, "repository/.git"), { recursive: true });
  mkdirSync(join(directory.path, "repository/packages/app"), { recursive: true });
  file("AGENTS.md", "outside of the repository");
  file("secret.md", "the secret");
  file("repository/AGENTS.md", "Rule of the root.");
  file("repository/CLAUDE.md", "not read beside the other");
  symlinkSync("../../secret.md", join(directory.path, "repository/packages/AGENTS.md"));
  file("repository/packages/app/CLAUDE.md", `Rule of the app. ${"x".repeat(1_000_000)}`);
  await using provider = createProviderSimulator({ fallback: () => "Seen." });
  await provider.start();
  const args = ["chat", "--key", "k", "--model", "anthropic/claude-opus-5", "--workspace", "repository/packages/app"];
  const environment = { ANTHROPIC_API_KEY: "sk-test", ANTHROPIC_BASE_URL: provider.url };
  const system = (): string => JSON.stringify(sentBody(provider.requests.at(-1))["system"] ?? null);

  // A script sends them only where the setting says so.
  await runChild(directory.path, [...args, "--once", "hi"], { environment });
  expect(provider.requests).toHaveLength(1);
  expect(system()).not.toContain("Rule of");

  await using terminal = runInTerminal(directory.path, args, { environment, columns: 120 });
  await terminal.waitForPrompt();
  terminal.write("hi\r");
  await terminal.waitForPrompt();
  const sent = system();
  expect(sent).toMatch(/Instructions from [^ ]+\/repository\/AGENTS\.md\\n\\nRule of the root\..+Rule of the app\./);
  expect(sent).toContain("[The rest of this file is left out.]");
  expect(sent.length).toBeLessThan(40_000);
  for (const unread of ["outside of", "the secret", "not read beside"]) expect(sent).not.toContain(unread);

  file("repository/AGENTS.md", "Another rule.");
  terminal.write("/context\r");
  await terminal.waitForPrompt();
  await rowOf(terminal, /^AGENTS\.md changed: \/reload · /, 120);
  terminal.write("/reload\r");
  await terminal.waitForPrompt();
  terminal.write("again\r");
  await terminal.waitForPrompt();
  expect(system()).toContain("Another rule.");
});
