import { createHash } from "node:crypto";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createChangePlanner, type PlannedChange } from "../../src/workspace/plan-change.ts";
import { openWorkspace } from "./workspace.ts";

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("a planned change", () => {
  it("is what the tool then does, for a new file, an old one and an edit", async () => {
    await using workspace = await openWorkspace({ "a.txt": "one\ntwo\n" });
    const { root } = workspace;
    const plan = createChangePlanner({ root });
    const calls = [
      { name: "write", arguments: { path: "new/b.txt", content: "b" } },
      { name: "write", arguments: { path: "a.txt", content: "three\n" } },
      { name: "edit", arguments: { path: "a.txt", old_text: "three", new_text: "four" } },
    ];
    const before = [null, "one\ntwo\n", "three\n"];
    for (const [at, call] of calls.entries()) {
      const planned = await plan(call);
      const was = before[at] ?? null;
      expect(planned).toMatchObject({ kind: "change", before: was, beforeSha256: was === null ? null : sha256(was) });
      await workspace.run(call.name, call.arguments);
      const { after, afterSha256, path } = planned as PlannedChange;
      expect(await readFile(join(root, path), "utf8")).toBe(after);
      expect(afterSha256).toBe(sha256(after));
    }
  });

  it("of bytes that are no text has no text before, and its size", async () => {
    await using workspace = await openWorkspace({ "a.bin": new Uint8Array([1, 0, 255]), "big.txt": "x".repeat(500) });
    const plan = createChangePlanner({ root: workspace.root, maxWriteBytes: 100 });
    const write = (path: string) => plan({ name: "write", arguments: { path, content: "now" } });
    expect(await write("a.bin")).toMatchObject({ before: null, beforeBytes: 3 });
    expect(await write("big.txt")).toMatchObject({
      before: null,
      beforeBytes: 500,
      beforeSha256: sha256("x".repeat(500)),
    });
  });

  it("is refused with the words of the tool, and null for tools that change no file", async () => {
    await using workspace = await openWorkspace({ "a.txt": "one" });
    const plan = createChangePlanner({ root: workspace.root });
    for (const call of [
      { name: "edit", arguments: { path: "a.txt", old_text: "absent", new_text: "x" } },
      { name: "edit", arguments: { path: "none.txt", old_text: "a", new_text: "x" } },
      { name: "write", arguments: { path: "../outside/secret.txt", content: "x" } },
      { name: "write", arguments: { path: ".env", content: "x" } },
    ]) {
      const { content } = await workspace.run(call.name, call.arguments);
      expect(await plan(call)).toMatchObject({ kind: "refused", reason: content });
    }
    expect(await plan({ name: "read", arguments: { path: "a.txt" } })).toBeNull();
  });

  it("is delicate where other programs obey the file, where it holds keys, and through a link", async () => {
    await using workspace = await openWorkspace({ "real/a.txt": "one" });
    const { root } = workspace;
    await symlink("real", join(root, "link"));
    const plan = createChangePlanner({ root, allow: [".github", ".env"] });
    const isDelicate = async (path: string): Promise<unknown> =>
      ((await plan({ name: "write", arguments: { path, content: "x" } })) as PlannedChange).isDelicate;
    for (const path of [
      "package.json",
      "web/Package.JSON",
      ".github/w.yml",
      ".env",
      "a/server.key",
      "id_rsa",
      "link/a.txt",
    ])
      expect([path, await isDelicate(path)]).toEqual([path, true]);
    for (const path of ["real/a.txt", "./src/index.ts", join(root, "real/a.txt"), "packages.json", "keys.ts"])
      expect([path, await isDelicate(path)]).toEqual([path, false]);
  });
});

describe("the bytes that were approved", () => {
  it("are the only ones that a call changes", async () => {
    const approved: Record<string, string | null | undefined> = { call_1: sha256("one") };
    await using workspace = await openWorkspace(
      { "a.txt": "one", "b.txt": "other" },
      { expectBefore: (callId) => approved[callId] },
    );
    const text = (path: string): Promise<string> => readFile(join(workspace.root, path), "utf8");
    const write = (path: string) => workspace.refusal("write", { path, content: "new" });
    expect(await write("b.txt")).toBe("changed");
    expect(await write("absent.txt")).toBe("changed");
    expect(await workspace.refusal("edit", { path: "b.txt", old_text: "other", new_text: "x" })).toBe("changed");
    expect(await text("b.txt")).toBe("other");
    await workspace.run("edit", { path: "a.txt", old_text: "one", new_text: "two" });
    expect(await text("a.txt")).toBe("two");
    // Approved as a new file: one that another program made meanwhile stays.
    approved["call_1"] = null;
    expect(await write("a.txt")).toBe("changed");
    await workspace.run("write", { path: "fresh.txt", content: "f" });
    expect(await text("fresh.txt")).toBe("f");
    await writeFile(join(workspace.root, "fresh.txt"), "again");
    approved["call_1"] = undefined;
    await workspace.run("write", { path: "fresh.txt", content: "any" });
    expect(await text("fresh.txt")).toBe("any");
  });
});
