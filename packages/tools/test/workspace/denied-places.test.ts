import { execFileSync } from "node:child_process";
import { link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemRandom } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { createMemorySearchTool } from "../../src/workspace/memory-search-tool.ts";
import { createWorkspaceFolder } from "../../src/workspace/workspace-folder.ts";
import { openWorkspace, type TestWorkspace } from "./workspace.ts";

/** Every tool with a path, in a way that would work on a text file that holds "the secret". */
const uses = (path: string): readonly (readonly [string, Readonly<Record<string, unknown>>])[] => [
  ["read", { path }],
  ["list", { path }],
  ["write", { path, content: "overwritten" }],
  ["edit", { path, old_text: "the secret", new_text: "changed" }],
];

async function expectDenied(workspace: TestWorkspace, paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    for (const [name, args] of uses(path))
      expect([name, path, await workspace.refusal(name, args)]).toContain("denied");
  }
}

describe("what is denied is a file or folder, not a path", () => {
  it("through links to it, from it, and in the denied path itself", async () => {
    await using workspace = await openWorkspace({ "real/key": "the secret\n", "a.txt": "a" });
    const { root, outside } = workspace;
    await symlink(join(root, "real"), join(outside, "home"));
    await symlink("home", join(outside, "home-2"));
    await symlink("real", join(root, "alias"));
    await using denying = await openWorkspace({}, { root, deny: [join(outside, "home-2")] });
    await expectDenied(denying, ["real/key", "alias/key", "real", "alias", "real/new/x", join(root, "real/key")]);
    expect((await denying.run("read", { path: "a.txt" })).content).toBe("a");
    expect(await readdir(join(root, "real"))).toEqual(["key"]);
    expect(await readFile(join(root, "real/key"), "utf8")).toBe("the secret\n");
  });

  it("under its other names: a hard link of a file in it, and of a file that is denied by itself", async () => {
    await using workspace = await openWorkspace({ "free.txt": "free" });
    const { root, outside } = workspace;
    await mkdir(join(outside, "home/deep"), { recursive: true });
    await writeFile(join(outside, "home/deep/key"), "the secret\n");
    await writeFile(join(outside, "s.db-wal"), "the secret\n");
    await link(join(outside, "home/deep/key"), join(root, "one.txt"));
    await link(join(outside, "s.db-wal"), join(root, "two.txt"));
    await link(join(root, "free.txt"), join(root, "free-2.txt"));
    const denied = { deny: [join(outside, "home")], denyFiles: [join(outside, "s.db")] };
    await using denying = await openWorkspace({}, { root, ...denied });
    for (const path of ["one.txt", "two.txt"]) {
      for (const [name, args] of uses(path).filter(([name]) => name !== "list"))
        expect(await denying.refusal(name, args)).toBe("denied");
    }
    expect((await denying.run("read", { path: "free-2.txt" })).content).toBe("free");
    expect(await readFile(join(outside, "home/deep/key"), "utf8")).toBe("the secret\n");
  });

  it("says nothing of what is in it: files, folders, links and nothing are refused in the same words", async () => {
    await using workspace = await openWorkspace({
      "home/file": "x",
      "home/folder/file": "x",
      "db/s.db": "x",
      ".env": "x",
    });
    const { root, outside } = workspace;
    await writeFile(join(root, "free.txt"), "free");
    const links = { out: join(outside, "secret.txt"), dangling: "nowhere", loop: "loop", free: "../free.txt" };
    for (const [name, target] of Object.entries(links)) await symlink(target, join(root, "home", name));
    await symlink("home", join(root, "alias"));
    await using denying = await openWorkspace({}, { root, deny: ["home"], denyFiles: ["db/s.db"] });
    for (const folder of ["home", "alias"])
      for (const name of ["file", "folder", "absent", ...Object.keys(links)])
        await expectDenied(denying, [`${folder}/${name}`, `${folder}/${name}/x`]);
    await expectDenied(denying, ["db/s.db/x", "db/s.db-wal/x", ".env/x", ".absent/x", "home/folder/file/x"]);
    expect(await readFile(join(root, "free.txt"), "utf8")).toBe("free");
  });

  it("before it exists, so that nothing is planted where it will be", async () => {
    await using workspace = await openWorkspace({ "a.txt": "a" });
    const { root, outside } = workspace;
    await symlink(join(root, "later/home"), join(outside, "link"));
    const deny = ["data/store", join(outside, "link"), "db/s.db"];
    await using denying = await openWorkspace({}, { root, deny, denyFiles: ["files/s.db"] });
    await expectDenied(denying, ["data/store/x", "data/store", "later/home/config.json", "db/s.db"]);
    for (const path of ["files/s.db-journal", "files/s.db", "files/s.db.v3.backup"])
      expect(await denying.refusal("write", { path, content: "x" })).toBe("denied");
    expect(await readdir(root)).toEqual(["a.txt"]);
    // What lies above or beside it is free, and it stays denied once its folder is there.
    for (const path of ["data/notes.txt", "later/notes.txt", "files/notes.txt"])
      expect((await denying.run("write", { path, content: "x" })).isError).toBeUndefined();
    await expectDenied(denying, ["data/store/x", "later/home/config.json"]);
  });

  it.each([
    "s.db",
    "s.db-journal",
    "s.db-wal",
    "s.db-shm",
    "s.db.2026.auto.backup",
    "s.db~",
    "S.DB-Journal",
    "ſ.db-wal",
  ])("beside a database under its name and more: %s", async (name) => {
    await using workspace = await openWorkspace(
      { "s.db": "x", "s.dbx": "free", "as.db": "free" },
      { denyFiles: ["s.db"] },
    );
    expect(await workspace.refusal("write", { path: name, content: "planted" })).toBe("denied");
    expect(await readdir(workspace.root)).toEqual(["as.db", "s.db", "s.dbx"]);
    for (const free of ["s.dbx", "as.db"]) expect((await workspace.run("read", { path: free })).content).toBe("free");
    const listed = String((await workspace.run("list", {})).content);
    expect(listed).toBe("as.db  4\ns.db  [not for tools]\ns.dbx  4");
  });

  it("beside the file a database's link leads to, where its journal will be", async () => {
    await using workspace = await openWorkspace({ "data/real.db": "x" });
    const { root, outside } = workspace;
    await symlink(join(root, "data/real.db"), join(outside, "s.db"));
    await using denying = await openWorkspace({}, { root, denyFiles: [join(outside, "s.db")] });
    for (const path of ["data/real.db", "data/real.db-journal", "data/REAL.DB-wal"])
      expect(await denying.refusal("write", { path, content: "x" })).toBe("denied");
    expect(await readdir(join(root, "data"))).toEqual(["real.db"]);
  });

  it("with names that some file system takes for the same, composed or not", async () => {
    const composed = "caf\u00e9";
    await using workspace = await openWorkspace({}, { deny: [composed], denyFiles: [`${composed}.db`] });
    for (const path of ["cafe\u0301/x", "CAFE\u0301/x", "CAF\u00c9/x", "ca\u200bf\u00e9/x", "Cafe\u0301.db-journal"])
      expect(await workspace.refusal("write", { path, content: "x" })).toBe("denied");
    expect(await readdir(workspace.root)).toEqual([]);
  });

  it("when the workspace itself lies in it, or is it", async () => {
    await using workspace = await openWorkspace({ "home/agents/work/a.txt": "the secret\n" });
    const { root } = workspace;
    for (const inner of ["home/agents/work", "home"]) {
      await using denying = await openWorkspace({}, { root: join(root, inner), deny: [join(root, "home")] });
      await expectDenied(denying, ["a.txt", "new/a.txt"]);
      expect(await readdir(join(root, "home/agents/work"))).toEqual(["a.txt"]);
      expect(await readdir(join(root, "home"))).toEqual(["agents"]);
    }
  });

  it("also after a link to it was moved", async () => {
    await using workspace = await openWorkspace({ "one/key": "the secret\n", "two/key": "the secret\n" });
    const { root, outside } = workspace;
    await symlink(join(root, "one"), join(outside, "home"));
    await using denying = await openWorkspace({}, { root, deny: [join(outside, "home")] });
    await expectDenied(denying, ["one/key"]);
    await rm(join(outside, "home"));
    await symlink(join(root, "two"), join(outside, "home"));
    await expectDenied(denying, ["one/key", "two/key"]);
  });

  it("where a folder of the way was moved into it, or out of the workspace, while it was open", async () => {
    await using workspace = await openWorkspace({ "sub/deep/a.txt": "a", "home/key": "k" });
    const { root, outside } = workspace;
    const moved = { to: "" };
    // The system's random source is asked between opening the folder and writing to it.
    const random = {
      ...systemRandom,
      uuid: () => {
        execFileSync("mv", [join(root, "sub"), moved.to]);
        return systemRandom.uuid();
      },
    };
    const folder = createWorkspaceFolder({ root, deny: ["home"], random });
    for (const [to, reason] of [
      [join(root, "home/sub"), "denied"],
      [join(outside, "sub"), "changed"],
    ] as const) {
      moved.to = to;
      const place = await folder.locate("sub/deep/new.txt");
      await expect(folder.replace(place, Buffer.from("x"), null)).rejects.toMatchObject({ reason });
      expect(await readdir(join(to, "deep"))).toEqual(["a.txt"]);
      await rename(to, join(root, "sub"));
    }
  });

  it("and never what the kernel shows as files", async () => {
    await using workspace = await openWorkspace({}, { root: "/" });
    for (const path of ["proc/self/environ", "proc/self/maps", "/proc/self/mem", "sys/kernel/mm/ksm/run", "proc"])
      for (const name of ["read", "list"]) expect(await workspace.refusal(name, { path })).toBe("denied");
    expect(String((await workspace.run("list", {})).content)).toContain("proc/  [not for tools]");
  });
});

describe("hidden names", () => {
  const secret = { ".env": "the secret\n", ".git/config": "the secret\n", "sub/.ssh/id": "the secret\n" };

  it("are not read, written, listed or searched, and named in a list", async () => {
    await using workspace = await openWorkspace({
      ...secret,
      "memory/.x.md": "the secret\n",
      "memory/y.md": "a heron\n",
    });
    const { root } = workspace;
    await symlink(".env", join(root, "alias"));
    await symlink(".git", join(root, "repository"));
    const paths = [".env", "alias", ".git/config", "repository/config", ".git/hooks/post-checkout", "sub/.ssh/id"];
    await expectDenied(workspace, [
      ...paths,
      ".envrc",
      ".bashrc",
      ".npmrc",
      ".vscode/tasks.json",
      ".GIT/config",
      "\u200b.git/config",
    ]);
    expect(await readdir(join(root, ".git"))).toEqual(["config"]);
    const search = createMemorySearchTool({ root, places: ["memory", "alias", "sub"] });
    const call = { signal: new AbortController().signal, callId: "call_1" };
    const found = JSON.stringify(await search.run({ query: "the secret heron" }, call));
    expect(found).toContain("a heron");
    expect(found).not.toContain("the secret");
    expect(found).toContain("what is hidden or not for tools was not searched");
  });

  it("are allowed by name, and nothing hidden below with them", async () => {
    const files = { ...secret, ".github/workflows/ci.yml": "ci\n", ".github/.env": "the secret\n" };
    await using workspace = await openWorkspace(files, { allow: [".git/hooks", ".github", ".env"] });
    for (const path of [".git/hooks/pre-commit", ".github/workflows/ci.yml", ".env"])
      expect((await workspace.run("write", { path, content: "x" })).isError).toBeUndefined();
    await expectDenied(workspace, [".git/config", ".git/hooks-2/x", ".github/.env", "sub/.ssh/id", ".env.local"]);
    // Nothing is allowed that is denied, or lies outside.
    await using denying = await openWorkspace(files, { allow: [".github", "../outside/.env"], deny: [".github"] });
    await expectDenied(denying, [".github/workflows/ci.yml"]);
  });

  it("that a project says of itself are read, and written where nothing runs for them", async () => {
    const both = [".gitignore", ".dockerignore", ".gitattributes", ".editorconfig", ".env.example", ".changeset/a.md"];
    const read = [".github/workflows/ci.yml", ".eslintrc.json", ".gitlab-ci.yml", ".gitmodules", ".husky/pre-commit"];
    await using workspace = await openWorkspace(Object.fromEntries([...both, ...read].map((path) => [path, "text"])));
    for (const path of [...both, ...read]) expect((await workspace.run("read", { path })).content).toBe("text");
    for (const path of both) expect((await workspace.run("write", { path, content: "x" })).isError).toBeUndefined();
    for (const path of read) expect(await workspace.refusal("write", { path, content: "x" })).toBe("denied");
  });
});

describe("what git obeys", () => {
  it("is not written in a repository of any name, nor is one made", async () => {
    const bare = { "repo/HEAD": "ref: refs/heads/main\n", "repo/objects/x": "", "repo/config": "[core]\n" };
    await using workspace = await openWorkspace({ ...bare, "src/HEAD.txt": "a" });
    for (const path of ["repo/config", "repo/hooks/post-receive", "repo/new/deep/x", "src/HEAD", "src/head"])
      expect(await workspace.refusal("write", { path, content: "x" })).toBe("denied");
    expect(await workspace.refusal("edit", { path: "repo/config", old_text: "core", new_text: "x" })).toBe("denied");
    expect((await workspace.run("read", { path: "repo/config" })).content).toBe("[core]\n");
    expect((await workspace.run("write", { path: "src/HEAD.txt", content: "b" })).isError).toBeUndefined();
    expect((await readdir(join(workspace.root, "repo"))).toSorted()).toEqual(["HEAD", "config", "objects"]);
    await using allowing = await openWorkspace(bare, { allow: ["repo/hooks"] });
    expect((await allowing.run("write", { path: "repo/hooks/x", content: "x" })).isError).toBeUndefined();
    expect(await allowing.refusal("write", { path: "repo/config", content: "x" })).toBe("denied");
  });

  it("is not made, nor written in another repository, below a name that is allowed", async () => {
    const files = { ".github/r/HEAD": "x", ".github/r/objects/x": "", "src/a": "" };
    for (const allow of [[".github", "src"], ["*"], [".."], ["."], ["/"]]) {
      await using workspace = await openWorkspace(files, { allow });
      for (const path of [".github/HEAD", ".github/new/HEAD", ".github/r/config", "src/HEAD", "src/new/head", ".env"])
        expect([allow, path, await workspace.refusal("write", { path, content: "x" })]).toContain("denied");
      const isAllowed = allow.includes(".github");
      const { isError } = await workspace.run("write", { path: ".github/a.yml", content: "x" });
      expect([allow, isError]).toEqual([allow, isAllowed ? undefined : true]);
    }
    await using named = await openWorkspace({ ".git/HEAD": "x", ".git/objects/x": "" }, { allow: [".git"] });
    for (const path of [".git/HEAD", ".git/config", ".git/hooks/x"])
      expect((await named.run("write", { path, content: "x" })).content).toContain("rote");
  });
});
