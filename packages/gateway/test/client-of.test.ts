import { describe, expect, it } from "vitest";
import { clientOf } from "../src/session-ids.ts";

describe("the program of a request", () => {
  it.each([
    [{ "x-claude-code-session-id": "s1", "user-agent": "node" }, "claude-code"],
    [{ "user-agent": "claude-cli/2.1.197 (external, cli)" }, "claude-code"],
    [{ "x-codex-turn-metadata": "{}" }, "codex"],
    [{ "user-agent": "codex_cli_rs/0.171.0 (Linux)" }, "codex"],
    [{ "user-agent": "opencode/1.18.33" }, "opencode"],
    [{ "user-agent": "GeminiCLI/0.61.0" }, "gemini"],
    [{ "x-openclaw-session-key": "agent:main:main" }, "openclaw"],
    [{ "user-agent": "OpenAI/JS 6.1.0" }, null],
    [{ "user-agent": "constructor" }, null],
    [{ "user-agent": "" }, null],
    [{}, null],
  ])("with the headers %j is %s", (headers, program) => {
    expect(clientOf(headers)).toBe(program);
  });
});
