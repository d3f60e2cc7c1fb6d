import { Buffer } from "node:buffer";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openWorkspace } from "./workspace.ts";

const numbered = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");

describe("read", () => {
  it("gives a small file as it is: line ends, a missing last one, a byte order mark", async () => {
    const files = { "a.txt": "one\r\ntwo\r\n", "b.txt": "no end", "c.txt": "\uFEFFmark\n", "d.txt": "Größe 😀\n" };
    await using workspace = await openWorkspace(files);
    for (const [path, text] of Object.entries(files)) {
      const { content, isError } = await workspace.run("read", { path });
      expect([content, isError]).toEqual([text, undefined]);
    }
  });

  it("gives lines from an offset, and says whether the file goes on", async () => {
    await using workspace = await openWorkspace({ "a.txt": numbered(10) });
    const part = await workspace.run("read", { path: "a.txt", offset: 3, limit: 2 });
    expect(part.content).toBe(
      "line 3\nline 4\n[lines 3 to 4 of a file of 71 bytes; it goes on: read it with offset 5]",
    );
    expect(part.details).toMatchObject({ lineCount: 2, isAtEnd: false, sizeBytes: 71 });
    expect((await workspace.run("read", { path: "a.txt", offset: 9, limit: 2 })).content).toBe("line 9\nline 10\n");
    expect((await workspace.run("read", { path: "a.txt", offset: 10 })).content).toBe("line 10\n");
    expect(await workspace.refusal("read", { path: "a.txt", offset: 11 })).toBe("arguments");
    expect((await workspace.run("read", { path: "a.txt", limit: 10 })).content).toBe(numbered(10));
    for (const offset of [0, -1, 1.5, 2 ** 60, "9", "x", true, null, {}])
      expect(await workspace.refusal("read", { path: "a.txt", offset })).toBe("arguments");
  });

  it("reads every line once when it follows what the answers say, at any limit", async () => {
    const text = `${numbered(300)}é😀\r\n${"long ".repeat(30)}\n\n\nlast`;
    for (const maxReadBytes of [160, 200, 333, 1000]) {
      await using workspace = await openWorkspace({ "a.txt": text }, { maxReadBytes });
      let read = "";
      let offset = 1;
      for (;;) {
        const { content, details } = await workspace.run("read", { path: "a.txt", offset });
        const { lineCount, isAtEnd } = details as { readonly lineCount: number; readonly isAtEnd: boolean };
        const [, body = "", next] = /^([\s\S]*?)(?:\[lines .* with offset (\d+)\])?$/.exec(String(content)) ?? [];
        read += body;
        offset += lineCount;
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(maxReadBytes);
        if (isAtEnd) break;
        expect(Number(next)).toBe(offset);
      }
      expect(read).toBe(text);
    }
  });

  it("shows the beginning of a line that is too long, on the border of a character", async () => {
    await using workspace = await openWorkspace({ "a.txt": `${"😀".repeat(100)}\nsecond\n` }, { maxReadBytes: 50 });
    const { content } = await workspace.run("read", { path: "a.txt" });
    expect(content).toMatch(/^(?:😀){12}\n\[line 1 is longer than what is read at once/u);
    expect((await workspace.run("read", { path: "a.txt", offset: 2 })).content).toBe("second\n");
  });

  it("reads no further into a large file than it has to", { tags: ["slow"] }, async () => {
    await using workspace = await openWorkspace({ "a.txt": numbered(600_000) });
    const { content, details } = await workspace.run("read", { path: "a.txt", limit: 1 });
    expect(content).toMatch(/^line 1\n\[lines 1 to 1 of a file of \d+ bytes/);
    expect(details).toMatchObject({ sizeBytes: 7_088_895 });
    expect((await workspace.run("read", { path: "a.txt", offset: 599_999 })).content).toBe(
      "line 599999\nline 600000\n",
    );
  });

  it("says what it cannot show: binary files, bytes that are no text, empty files", async () => {
    await using workspace = await openWorkspace({
      "image.png": Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 1]),
      "latin.txt": Buffer.from("Gr\xf6\xdfe\n", "latin1"),
      "empty.txt": "",
      "mark.txt": "a \uFFFD that stands there\n",
    });
    expect(await workspace.refusal("read", { path: "image.png" })).toBe("binary");
    expect((await workspace.run("read", { path: "image.png" })).content).toContain("a binary file of 8 bytes");
    expect((await workspace.run("read", { path: "latin.txt" })).content).toBe(
      "Gr\uFFFD\uFFFDe\n[some bytes are no UTF-8 and are shown as \uFFFD]",
    );
    expect((await workspace.run("read", { path: "empty.txt" })).content).toBe('["empty.txt" is empty]');
    expect((await workspace.run("read", { path: "mark.txt" })).content).toBe("a \uFFFD that stands there\n");
  });

  it("ends with the turn", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    for (const [name, args] of [
      ["read", {}],
      ["list", {}],
      ["write", { content: "b" }],
      ["edit", { old_text: "a", new_text: "b" }],
    ] as const)
      await expect(workspace.run(name, { path: "a.txt", ...args }, AbortSignal.abort())).rejects.toMatchObject({
        code: "ABORTED",
      });
  });

  it.skipIf(process.getuid?.() === 0)("says so when it has no permission", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    await chmod(join(workspace.root, "a.txt"), 0);
    expect(await workspace.refusal("read", { path: "a.txt" })).toBe("permission");
  });
});

describe("list", () => {
  it("names what is there in order, with sizes, folders and where links point", async () => {
    await using workspace = await openWorkspace({ "b.txt": "12345", "a/x.txt": "x", "a/b/y.txt": "yy", ".hidden": "" });
    await symlink("a/x.txt", join(workspace.root, "link"));
    expect((await workspace.run("list", {})).content).toBe(".hidden  [not for tools]\na/\nb.txt  5\nlink -> a/x.txt");
    expect((await workspace.run("list", { path: "a" })).content).toBe("b/\nx.txt  1");
    expect((await workspace.run("list", { depth: 2 })).content).toBe(
      ".hidden  [not for tools]\na/\na/b/\na/x.txt  1\nb.txt  5\nlink -> a/x.txt",
    );
    expect((await workspace.run("list", { depth: 99 })).content).toContain("a/b/y.txt  2");
    expect(await workspace.refusal("list", { path: "b.txt" })).toBe("not-a-folder");
    expect(await workspace.refusal("list", { path: "none" })).toBe("missing");
  });

  it("opens node_modules only when it is named, and .git never", async () => {
    await using workspace = await openWorkspace({ "node_modules/p/index.js": "1", ".git/HEAD": "ref" });
    expect((await workspace.run("list", { depth: 3 })).content).toBe(".git/  [not for tools]\nnode_modules/");
    expect((await workspace.run("list", { path: "node_modules", depth: 2 })).content).toBe("p/\np/index.js  1");
  });

  it("says when not all is shown, at every limit, and never when all is", async () => {
    const files = Object.fromEntries(["a/1", "a/2", "b/1", "c"].map((path) => [path, ""]));
    // Six lines in all: a/, a/1, a/2, b/, b/1, c.
    for (let maxListEntries = 1; maxListEntries <= 8; maxListEntries++) {
      await using workspace = await openWorkspace(files, { maxListEntries });
      const { content, details } = await workspace.run("list", { depth: 2 });
      const lines = String(content).split("\n");
      const isCut = maxListEntries < 6;
      expect(details).toMatchObject({ entries: Math.min(6, maxListEntries), isWhole: !isCut });
      expect(lines.at(-1)?.startsWith("[not all entries are shown")).toBe(isCut);
    }
  });

  it("shows names that could be taken for something else as what they are", async () => {
    const names = ["two\nlines", "\u001b[31mred", "a  12", "x -> y", "\u202Ereversed", " space"];
    await using workspace = await openWorkspace(Object.fromEntries(names.map((name) => [name, ""])));
    const lines = String((await workspace.run("list", {})).content).split("\n");
    expect(lines).toHaveLength(names.length);
    expect(lines.toSorted()).toEqual(names.map((name) => `${JSON.stringify(name)}  0`).toSorted());
  });

  it("says that a folder is empty", async () => {
    await using workspace = await openWorkspace();
    await mkdir(join(workspace.root, "empty"));
    expect((await workspace.run("list", { path: "empty" })).content).toBe('["empty" is empty]');
  });

  it("goes on where one folder cannot be listed", async () => {
    await using workspace = await openWorkspace({ "a/x": "", "z/x": "" }, { deny: ["a"] });
    await writeFile(join(workspace.root, "b"), "");
    const { content } = await workspace.run("list", { depth: 2 });
    expect(content).toBe("a/  [not for tools]\nb  0\nz/\nz/x  0");
  });
});
