import { execFileSync } from "node:child_process";
import { link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { openWorkspace, type TestWorkspace } from "./workspace.ts";

/** Every tool with a path, in a way that would work on a text file that holds "a". */
const uses = (path: unknown): readonly (readonly [string, Readonly<Record<string, unknown>>])[] => [
  ["read", { path }],
  ["list", { path }],
  ["write", { path, content: "overwritten" }],
  ["edit", { path, old_text: "the secret", new_text: "changed" }],
];

async function assertUntouched({ outside }: TestWorkspace): Promise<void> {
  expect(await readdir(outside)).toEqual(["secret.txt"]);
  expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe("the secret\n");
}

describe("a tool stays inside its folder", () => {
  it.each([
    ["../outside/secret.txt", "outside"],
    ["..", "outside"],
    ["sub/../../outside/secret.txt", "outside"],
    ["./../outside/secret.txt", "outside"],
    ["/etc/passwd", "outside"],
    ["//etc/passwd", "outside"],
    ["/proc/self/environ", "outside"],
    ["/dev/null", "outside"],
    ["sub/../../inside-too/x", "outside"],
    ["a\0b", "arguments"],
    ["../outside/secret.txt\0.png", "arguments"],
    ["", "arguments"],
    ["\ud800", "arguments"],
    ["x/".repeat(3000), "arguments"],
    [7, "arguments"],
    [null, "arguments"],
    [["a"], "arguments"],
  ])("with the path %j", async (path, reason) => {
    await using workspace = await openWorkspace({ "sub/a.txt": "a" });
    for (const [name, args] of uses(path)) {
      // No path at all is the workspace itself to list.
      if (name === "list" && path === null) continue;
      expect(await workspace.refusal(name, args)).toBe(reason);
    }
    await assertUntouched(workspace);
  });

  it.each(["~/x", "$HOME/x", "%2e%2e/secret.txt", "x..\\outside\\secret.txt", "file:///etc/passwd", "x....//x"])(
    "and takes %j for a name, not for a way out",
    async (path) => {
      await using workspace = await openWorkspace();
      expect(await workspace.refusal("read", { path })).toBe("missing");
      expect((await workspace.run("write", { path, content: "x" })).isError).toBeUndefined();
      expect(await readFile(join(workspace.root, path.replace("file:///", "file:/")), "utf8")).toBe("x");
      await assertUntouched(workspace);
    },
  );

  it("takes an absolute path that lies inside, and `..` that stays inside", async () => {
    await using workspace = await openWorkspace({ "sub/a.txt": "a" });
    expect((await workspace.run("read", { path: join(workspace.root, "sub/a.txt") })).content).toBe("a");
    expect((await workspace.run("read", { path: "sub/../sub/./a.txt" })).content).toBe("a");
    // The neighbor's name begins with the root's.
    await mkdir(`${workspace.root}-2`);
    await writeFile(`${workspace.root}-2/a.txt`, "neighbour");
    expect(await workspace.refusal("read", { path: `${workspace.root}-2/a.txt` })).toBe("outside");
    expect(await workspace.refusal("read", { path: "../inside-2/a.txt" })).toBe("outside");
  });

  it("follows no link out: of the file, of a folder before it, through a chain, to a file that is to be", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    const { root, outside } = workspace;
    await symlink(join(outside, "secret.txt"), join(root, "file"));
    await symlink(outside, join(root, "folder"));
    await symlink("../outside", join(root, "relative"));
    await symlink("folder", join(root, "chain"));
    await symlink(join(outside, "not-yet.txt"), join(root, "dangling"));
    await symlink("loop", join(root, "loop"));
    await symlink("/proc/self/cwd", join(root, "magic"));
    const paths = ["file", "folder/secret.txt", "relative/secret.txt", "chain/secret.txt", "folder/new.txt", "magic/x"];
    for (const path of [...paths, "dangling", "loop"]) {
      for (const [name, args] of uses(path)) expect(await workspace.refusal(name, args)).toBe("outside");
    }
    expect(await workspace.refusal("list", { path: "folder" })).toBe("outside");
    await assertUntouched(workspace);
    const listed = String((await workspace.run("list", { depth: 5 })).content);
    expect(listed).toContain(`file -> ${join(outside, "secret.txt")}`);
    expect(listed).not.toContain("folder/secret.txt");
  });

  it("follows a link that stays inside, and writes to what it points at", async () => {
    await using workspace = await openWorkspace({ "real/a.txt": "a" });
    await symlink("real", join(workspace.root, "alias"));
    await symlink("real/a.txt", join(workspace.root, "short"));
    expect((await workspace.run("read", { path: "alias/a.txt" })).content).toBe("a");
    await workspace.run("write", { path: "short", content: "b" });
    expect(await readFile(join(workspace.root, "real/a.txt"), "utf8")).toBe("b");
    expect(await readdir(workspace.root)).toEqual(["alias", "real", "short"]);
  });

  it("works where the folder itself is named through a link", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    const alias = join(workspace.outside, "..", "alias");
    await symlink(workspace.root, alias);
    await using other = await openWorkspace({}, { root: alias });
    expect((await other.run("read", { path: join(alias, "a.txt") })).content).toBe("a");
    expect((await other.run("read", { path: join(workspace.root, "a.txt") })).content).toBe("a");
    expect((await other.run("write", { path: "b.txt", content: "b" })).isError).toBeUndefined();
    expect(await other.refusal("read", { path: "../outside/secret.txt" })).toBe("outside");
  });

  it("does not change a file outside that has a second name inside", async () => {
    await using workspace = await openWorkspace();
    await link(join(workspace.outside, "secret.txt"), join(workspace.root, "hard.txt"));
    await workspace.run("write", { path: "hard.txt", content: "overwritten" });
    expect(await readFile(join(workspace.outside, "secret.txt"), "utf8")).toBe("the secret\n");
  });

  it("does not touch what is no regular file, and does not wait for it", async () => {
    await using workspace = await openWorkspace({ "sub/a.txt": "a" });
    const { root } = workspace;
    execFileSync("mkfifo", [join(root, "pipe")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(root, "socket"), resolve));
    try {
      for (const path of ["pipe", "socket", "sub", "."]) {
        for (const [name, args] of uses(path).filter(([name]) => name !== "list"))
          expect(await workspace.refusal(name, args)).toBe("not-a-file");
      }
      expect(await workspace.refusal("list", { path: "pipe" })).toBe("not-a-folder");
      const listed = String((await workspace.run("list", {})).content);
      expect(listed).toContain("pipe  [no regular file]");
      expect(listed).toContain("socket  [no regular file]");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("refuses what is denied, by every name of it, and lists nothing of it", async () => {
    await using workspace = await openWorkspace(
      { "state/sessions.db": "s", "sub/state": "other", "a.txt": "a" },
      { deny: ["state", "/somewhere/else", "../outside"] },
    );
    await symlink("state", join(workspace.root, "alias"));
    for (const path of ["state/sessions.db", "state/new", "alias/sessions.db", "sub/../state/sessions.db"]) {
      for (const [name, args] of uses(path)) expect(await workspace.refusal(name, args)).toBe("denied");
    }
    const listed = String((await workspace.run("list", { depth: 3 })).content);
    expect(listed).toContain("state/  [not for tools]\n");
    expect(listed).not.toContain("sessions.db");
    expect((await workspace.run("read", { path: "sub/state" })).content).toBe("other");
  });

  it("says so when its folder is gone", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    await rename(workspace.root, `${workspace.root}-moved`);
    for (const [name, args] of uses("a.txt")) expect(await workspace.refusal(name, args)).toBe("missing");
    await rm(`${workspace.root}-moved`, { recursive: true });
  });
});

describe("a tool stays inside while somebody exchanges folders for links", () => {
  /** Exchanges `sub` and `link` for each other, without a pause, until it is told to stop. */
  const exchanger = `
    const { renameSync, rmSync } = require("node:fs");
    const { workerData } = require("node:worker_threads");
    const stop = new Int32Array(workerData.stop);
    const [sub, link, aside] = workerData.paths;
    // A write may have made the folder anew in the gap.
    const clear = (path) => {
      try { rmSync(path, { recursive: true, force: true }); } catch { /* written to again: the caller tries anew */ }
    };
    const move = (from, to) => {
      for (;;) {
        try { return renameSync(from, to); } catch { clear(to); }
      }
    };
    while (Atomics.load(stop, 0) === 0) {
      move(sub, aside); move(link, sub);
      move(sub, link); move(aside, sub);
      Atomics.add(stop, 1, 1);
    }
  `;

  it("reads, writes, edits and lists nothing outside", { tags: ["slow"] }, async () => {
    await using workspace = await openWorkspace({ "sub/secret.txt": "harmless\n", "sub/deep/x.txt": "x" });
    const { root, outside, run } = workspace;
    await symlink(outside, join(root, "link"));
    const stop = new SharedArrayBuffer(8);
    const counts = new Int32Array(stop);
    const paths = ["sub", "link", "aside"].map((name) => join(root, name));
    const worker = new Worker(exchanger, { eval: true, workerData: { stop, paths } });
    const done = new Promise((resolve, reject) => worker.on("exit", resolve).on("error", reject));
    const answers = new Map<string, number>();
    try {
      await expect.poll(() => Atomics.load(counts, 1)).toBeGreaterThan(10);
      for (let time = 0; time < 400; time++) {
        const results = await Promise.all([
          run("read", { path: "sub/secret.txt" }),
          run("list", { path: "sub" }),
          run("write", { path: `sub/new-${time % 7}.txt`, content: "written" }),
          run("edit", { path: "sub/secret.txt", old_text: "secret", new_text: "changed" }),
          run("list", { path: ".", depth: 3 }),
        ]);
        for (const { content, details } of results) {
          expect(String(content)).not.toContain("the secret");
          expect(String(content)).not.toMatch(/^secret\.txt {2}11$/m);
          const reason = String((details as { readonly reason?: unknown }).reason ?? "done");
          answers.set(reason, (answers.get(reason) ?? 0) + 1);
        }
      }
    } finally {
      Atomics.store(counts, 0, 1);
      await done;
    }
    // Both happened: calls that met the link, and calls that did not.
    expect(answers.get("done") ?? 0).toBeGreaterThan(100);
    expect((answers.get("outside") ?? 0) + (answers.get("not-a-folder") ?? 0)).toBeGreaterThan(10);
    await assertUntouched(workspace);
    expect((await readdir(join(root, "sub"))).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
