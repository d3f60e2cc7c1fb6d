import { Buffer } from "node:buffer";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { chmod, readdir, readFile, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { createWorkspaceTools } from "../../src/workspace/create-workspace-tools.ts";
import { openWorkspace, type TestWorkspace } from "./workspace.ts";

const text = ({ root }: TestWorkspace, path: string): Promise<string> => readFile(join(root, path), "utf8");
const mode = async ({ root }: TestWorkspace, path: string): Promise<number> =>
  (await stat(join(root, path))).mode & 0o777;

describe("write", () => {
  it("makes a file with its folders, and puts a new content in place of an old one", async () => {
    await using workspace = await openWorkspace();
    const made = await workspace.run("write", { path: "a/b/c.txt", content: "Größe" });
    expect(made.content).toBe('Wrote "a/b/c.txt": 7 bytes, a new file.');
    expect(await text(workspace, "a/b/c.txt")).toBe("Größe");
    const again = await workspace.run("write", { path: "a/b/c.txt", content: "" });
    expect(again.content).toBe('Wrote "a/b/c.txt": 0 bytes, in place of 7 bytes.');
    expect(await text(workspace, "a/b/c.txt")).toBe("");
    expect(await readdir(join(workspace.root, "a/b"))).toEqual(["c.txt"]);
  });

  it("keeps the mode of a file, and never gives a new one more than the umask leaves", async () => {
    await using workspace = await openWorkspace({ "script.sh": "#!/bin/sh\n", "private.txt": "p" });
    await chmod(join(workspace.root, "script.sh"), 0o755);
    await chmod(join(workspace.root, "private.txt"), 0o600);
    for (const path of ["script.sh", "private.txt", "new.txt"]) await workspace.run("write", { path, content: "x" });
    await workspace.run("edit", { path: "script.sh", old_text: "x", new_text: "y" });
    expect(await mode(workspace, "script.sh")).toBe(0o755);
    expect(await mode(workspace, "private.txt")).toBe(0o600);
    expect(await mode(workspace, "new.txt")).toBe(0o666 & ~process.umask());
  });

  it("leaves a file alone that is read-only", async () => {
    await using workspace = await openWorkspace({ "a.txt": "one" });
    await chmod(join(workspace.root, "a.txt"), 0o444);
    expect(await workspace.refusal("write", { path: "a.txt", content: "x" })).toBe("permission");
    expect(await workspace.refusal("edit", { path: "a.txt", old_text: "one", new_text: "x" })).toBe("permission");
    expect(await text(workspace, "a.txt")).toBe("one");
  });

  it("refuses what is too much or no text, and changes nothing", async () => {
    await using workspace = await openWorkspace({ "a.txt": "one", b: "file" }, { maxWriteBytes: 10 });
    expect(await workspace.refusal("write", { path: "a.txt", content: "é".repeat(6) })).toBe("too-large");
    expect(await workspace.refusal("write", { path: "a.txt", content: "\ud800" })).toBe("arguments");
    expect(await workspace.refusal("write", { path: "a.txt" })).toBe("arguments");
    expect(await workspace.refusal("write", { path: "a.txt", content: { a: 1 } })).toBe("arguments");
    expect(await workspace.refusal("write", { path: "b/c.txt", content: "x" })).toBe("not-a-folder");
    expect(await workspace.refusal("write", { path: "n".repeat(300), content: "x" })).toBe("arguments");
    expect((await workspace.run("write", { path: "a.txt", content: "é".repeat(5) })).isError).toBeUndefined();
    expect((await readdir(workspace.root)).toSorted()).toEqual(["a.txt", "b"]);
  });

  it("is never read half written, and calls for one file follow each other", { tags: ["slow"] }, async () => {
    await using workspace = await openWorkspace({ "a.txt": "0" });
    const contents = Array.from({ length: 20 }, (_, index) => `${index} `.repeat(50_000));
    const seen = new Set<string>();
    const writing = Promise.all(contents.map((content) => workspace.run("write", { path: "a.txt", content })));
    let isDone = false;
    void writing.finally(() => (isDone = true));
    while (!isDone) seen.add(await text(workspace, "a.txt"));
    const results = await writing;
    expect(results.every(({ isError }) => isError === undefined)).toBe(true);
    for (const one of seen) expect(["0", ...contents]).toContain(one);
    expect(await text(workspace, "a.txt")).toBe(contents.at(-1));
    expect(await readdir(workspace.root)).toEqual(["a.txt"]);
  });

  it("is not there for who may only read", async () => {
    const names = (readOnly: boolean): readonly string[] =>
      createWorkspaceTools({ root: ".", readOnly }).map(({ definition }) => definition.name);
    expect(names(false)).toEqual(["read", "list", "write", "edit"]);
    expect(names(true)).toEqual(["read", "list"]);
  });
});

describe("edit", () => {
  it("replaces the one place, whatever the texts hold", async () => {
    await using workspace = await openWorkspace({ "a.ts": "one\ntwo (.*) $&\nthree\n" });
    const { content, details } = await workspace.run("edit", {
      path: "a.ts",
      old_text: "two (.*) $&",
      new_text: "2 $& $1 $$ \\n",
    });
    expect(content).toBe('Edited "a.ts" at line 2; it is 24 bytes now.');
    expect(details).toMatchObject({ lines: [2], beforeBytes: 22 });
    expect(await text(workspace, "a.ts")).toBe("one\n2 $& $1 $$ \\n\nthree\n");
    await workspace.run("edit", { path: "a.ts", old_text: "\nthree\n", new_text: "" });
    expect(await text(workspace, "a.ts")).toBe("one\n2 $& $1 $$ \\n");
  });

  it("names the lines when the text stands in several places, and replaces all when asked", async () => {
    await using workspace = await openWorkspace({ "a.txt": "x\ny\nx x\n" });
    const { content, isError } = await workspace.run("edit", { path: "a.txt", old_text: "x", new_text: "z" });
    expect(isError).toBe(true);
    expect(content).toContain("3 times, at lines 1, 3, 3.");
    expect(await text(workspace, "a.txt")).toBe("x\ny\nx x\n");
    await workspace.run("edit", { path: "a.txt", old_text: "x", new_text: "xx", replace_all: true });
    expect(await text(workspace, "a.txt")).toBe("xx\ny\nxx xx\n");
  });

  it("says what is wrong with a text that does not stand there", async () => {
    await using workspace = await openWorkspace({ "a.txt": "if (a) {\n\treturn b;\n}\n" });
    const edit = async (old_text: string, new_text = "n"): Promise<string> =>
      String((await workspace.run("edit", { path: "a.txt", old_text, new_text })).content);
    expect(await edit("if (a) {\n  return b;\n}")).toContain("it does with other white space");
    expect(await edit("while")).toBe('The old text does not stand in "a.txt".');
    expect(await edit("")).toContain("is empty");
    expect(await edit("if", "if")).toContain("the same");
    expect(await workspace.refusal("edit", { path: "none.txt", old_text: "a", new_text: "b" })).toBe("missing");
    expect(await workspace.refusal("edit", { path: "a.txt", old_text: "if", new_text: "x", replace_all: "yes" })).toBe(
      "arguments",
    );
  });

  it("keeps the line ends of a file that has the other ones", async () => {
    await using workspace = await openWorkspace({ "a.txt": "one\r\ntwo\r\nthree\r\n" });
    await workspace.run("edit", { path: "a.txt", old_text: "one\ntwo", new_text: "1\n2" });
    expect(await text(workspace, "a.txt")).toBe("1\r\n2\r\nthree\r\n");
  });

  it("keeps every byte beside the place: a byte order mark, odd characters, no last line end", async () => {
    const before = "\uFEFFa\u2028b\u00AD e\u0301 \uFFFD end";
    await using workspace = await openWorkspace({ "a.txt": before });
    await workspace.run("edit", { path: "a.txt", old_text: " end", new_text: "!" });
    expect(await text(workspace, "a.txt")).toBe(before.replace(" end", "!"));
  });

  it("refuses what would not survive it: binary files, other encodings, files that are too large", async () => {
    await using workspace = await openWorkspace(
      { "b.bin": Buffer.from([1, 0, 97]), "l.txt": Buffer.from("Gr\xf6\xdfe", "latin1"), "big.txt": "a".repeat(101) },
      { maxWriteBytes: 100 },
    );
    expect(await workspace.refusal("edit", { path: "b.bin", old_text: "a", new_text: "b" })).toBe("binary");
    expect(await workspace.refusal("edit", { path: "l.txt", old_text: "e", new_text: "b" })).toBe("binary");
    expect(await workspace.refusal("edit", { path: "big.txt", old_text: "a", new_text: "b" })).toBe("too-large");
    expect(await readFile(join(workspace.root, "l.txt"), "latin1")).toBe("Größe");
  });

  it("makes every one of many changes to one file that are asked for at once", async () => {
    const words = Array.from({ length: 25 }, (_, index) => `word${index};`);
    await using workspace = await openWorkspace({ "a.txt": words.join("\n") });
    await Promise.all(
      words.map((word, index) => workspace.run("edit", { path: "a.txt", old_text: word, new_text: `done${index};` })),
    );
    expect(await text(workspace, "a.txt")).toBe(words.map((_, index) => `done${index};`).join("\n"));
  });

  it("writes nothing over a change somebody else made between reading and writing", async () => {
    let meanwhile: ((root: string) => void) | null = null;
    let root = "";
    const random = {
      uint32: () => 0,
      // Asked for when the new content is ready to be written.
      uuid(): string {
        meanwhile?.(root);
        return "00000000-0000-4000-8000-000000000000";
      },
    };
    await using workspace = await openWorkspace({ "a.txt": "one\n" }, { random });
    root = workspace.root;
    const path = join(root, "a.txt");
    const edit = { path: "a.txt", old_text: "one", new_text: "ONE" };
    meanwhile = () => writeFileSync(path, "one of theirs\n");
    expect(await workspace.refusal("edit", edit)).toBe("changed");
    expect(await text(workspace, "a.txt")).toBe("one of theirs\n");
    // As long as before, and within the same millisecond.
    meanwhile = () => writeFileSync(path, "one of THEIRS\n");
    expect(await workspace.refusal("edit", edit)).toBe("changed");
    meanwhile = () => rmSync(path);
    expect(await workspace.refusal("edit", edit)).toBe("changed");
    meanwhile = () => writeFileSync(path, "theirs\n");
    expect(await workspace.refusal("write", { path: "a.txt", content: "ours" })).toBe("changed");
    expect(await text(workspace, "a.txt")).toBe("theirs\n");
    meanwhile = () => {
      rmSync(path);
      symlinkSync("../outside/secret.txt", path);
    };
    expect(await workspace.refusal("write", { path: "a.txt", content: "ours" })).toBe("changed");
    expect(await readdir(root)).toEqual(["a.txt"]);
    meanwhile = () => undefined;
    expect(await workspace.refusal("write", { path: "a.txt", content: "ours" })).toBe("outside");
    expect(await readFile(join(workspace.outside, "secret.txt"), "utf8")).toBe("the secret\n");
  });
});

describe("folders that are writable", () => {
  it("are the only ones that write and edit change, whatever links lead elsewhere", async () => {
    await using workspace = await openWorkspace(
      { "src/a.ts": "one\n", "memory/old.md": "one\n", "memory-2/x.md": "one\n" },
      { writable: ["memory"] },
    );
    const { root } = workspace;
    await symlink("../src", join(root, "memory/src"));
    for (const path of ["src/a.ts", "memory/src/a.ts", "memory/../src/a.ts", "memory-2/x.md", "memory", "new.md"])
      expect(await workspace.refusal("write", { path, content: "two\n" }), path).toMatch(/^(denied|not-a-file)$/);
    expect(await workspace.refusal("edit", { path: "src/a.ts", old_text: "one", new_text: "two" })).toBe("denied");
    expect(await readFile(join(root, "src/a.ts"), "utf8")).toBe("one\n");
    expect(await workspace.run("read", { path: "src/a.ts" })).toMatchObject({ content: "one\n" });
    for (const path of ["memory/old.md", "memory/2026-01-01.md", "memory/deep/b.md"])
      expect((await workspace.run("write", { path, content: "two\n" })).isError, path).toBeUndefined();
  });
});
