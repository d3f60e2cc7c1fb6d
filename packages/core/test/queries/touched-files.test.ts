import { describe, expect, it } from "vitest";
import type { SessionRecord } from "@throughline/core";
import { touchedFiles } from "@throughline/core/internal";
import { isFailedRecord, touchesFile } from "../../src/queries/touched-files.ts";

const frame = { type: "message", id: "r1", parentId: null, timestamp: "2026-01-01T00:00:00.000Z" };
const call = (name: string, args: unknown): SessionRecord => ({
  ...frame,
  message: { role: "assistant", content: [{ type: "toolCall", id: "c1", name, arguments: args }] },
});

const patch =
  "*** Begin Patch\n*** Add File: myapp/hoge.py\n+*** Add File: no\n*** Update File: a b.txt\n*** Move to: c.txt\n*** End Patch";

describe("files that a record writes", () => {
  it.each([
    ["Claude Code", "Write", { file_path: "/app/notes.md", content: "x" }, ["/app/notes.md"]],
    ["Claude Code", "MultiEdit", { file_path: "/app/a.ts", edits: [{ old_string: "a" }] }, ["/app/a.ts"]],
    ["Claude Code", "NotebookEdit", { notebook_path: "/app/n.ipynb" }, ["/app/n.ipynb"]],
    ["Claude Code", "Read", { file_path: "/app/notes.md" }, []],
    ["Codex", "apply_patch", { input: patch }, ["myapp/hoge.py", "a b.txt", "c.txt"]],
    ["Codex", "shell", { command: ["apply_patch", patch] }, ["myapp/hoge.py", "a b.txt", "c.txt"]],
    ["Codex", "shell_command", { command: "cat notes.md" }, []],
    ["Gemini CLI", "replace", { file_path: "/app/b.ts", old_string: "a" }, ["/app/b.ts"]],
    ["opencode", "edit", { filePath: "/app/c.ts" }, ["/app/c.ts"]],
    ["Copilot CLI", "create", { path: "/app/d.ts" }, ["/app/d.ts"]],
    ["Copilot CLI", "str_replace_editor", { command: "view", path: "/app/d.ts" }, []],
    ["Goose", "developer__text_editor", { command: "write", path: "/app/e.ts" }, ["/app/e.ts"]],
    ["Cline", "write_to_file", { path: "src/f.ts" }, ["src/f.ts"]],
    ["pi", "edit", { path: "g.ts" }, ["g.ts"]],
    ["an unknown program", "edit", "no object", []],
    ["an unknown program", "edit", { path: 7, edits: [null, { path: "h.ts" }] }, ["h.ts"]],
  ])("are those of %s, tool %s", (_program, name, args, paths) => {
    expect(touchedFiles(call(name, args)).map(({ path }) => path)).toEqual(paths);
  });

  it.each([
    ["src/login.ts", "login.ts", null, true],
    ["src/login.ts", "src/login.ts", null, true],
    ["src/login.ts", "./src/login.ts", null, true],
    ["src/login.ts", "/app/src/login.ts", "/app", true],
    ["src/login.ts", "/other/src/login.ts", "/app", false],
    ["/app/src/login.ts", "/app/src/login.ts", null, true],
    ["/app/src/login.ts", "/app/src/login.ts", "/elsewhere", true],
    ["src/oldlogin.ts", "login.ts", null, false],
    ["src/login.ts", "", null, false],
  ])("%s is %j in the folder %j: %s", (stated, wanted, cwd, expected) => {
    expect(touchesFile(call("write", { path: stated }), wanted, cwd)).toBe(expected);
  });
});

describe("a failed record", () => {
  it.each([
    [{ role: "toolResult", isError: true, content: "" }, true],
    [{ role: "toolResult", isError: false, content: "error" }, false],
    [{ role: "bashExecution", exitCode: 1 }, true],
    [{ role: "bashExecution", exitCode: 0 }, false],
    [{ role: "assistant", stopReason: "error", content: [] }, true],
    [{ role: "assistant", stopReason: "stop", content: [] }, false],
    [{ role: "user", content: "an error" }, false],
  ])("%j: %s", (fields, expected) => {
    expect(isFailedRecord({ ...frame, message: fields })).toBe(expected);
  });
});
