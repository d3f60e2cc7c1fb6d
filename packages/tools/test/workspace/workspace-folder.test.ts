import { Buffer } from "node:buffer";
import { readdir, readFile, rename, symlink } from "node:fs/promises";
import { join } from "node:path";
import { systemRandom } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import { createWorkspaceFolder, type WorkspaceFolder } from "../../src/workspace/workspace-folder.ts";
import { openWorkspace } from "./workspace.ts";

async function textAt(folder: WorkspaceFolder, path: string): Promise<string> {
  const { handle } = await folder.openFile(await folder.locate(path));
  try {
    return await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}

describe.each([
  ["open folders have paths of their own", undefined],
  ["they have none", null],
])("where %s", (_name, descriptors) => {
  const options = descriptors === undefined ? {} : { descriptors };

  it("files are read, replaced and listed, in folders that are there and in new ones", async () => {
    await using workspace = await openWorkspace({ "a/b/c.txt": "one" });
    const folder = createWorkspaceFolder({ root: workspace.root, deny: [], random: systemRandom, ...options });
    expect(await textAt(folder, "a/b/c.txt")).toBe("one");
    const place = await folder.locate("a/b/c.txt");
    await folder.replace(place, Buffer.from("two"), await folder.stateOf(place));
    await folder.replace(await folder.locate("a/new/d.txt"), Buffer.from("three"), null);
    expect([await textAt(folder, "a/b/c.txt"), await textAt(folder, "a/new/d.txt")]).toEqual(["two", "three"]);
    const { entries, isWhole } = await folder.list(await folder.locate("a"), 10);
    expect([entries.map(({ name }) => name), isWhole]).toEqual([["b", "new"], true]);
  });

  it("a folder or file that became a link after it was found is refused", async () => {
    await using workspace = await openWorkspace({ "a/secret.txt": "one", "b/c/secret.txt": "one", "d.txt": "one" });
    const { root, outside } = workspace;
    const folder = createWorkspaceFolder({ root, deny: [], random: systemRandom, ...options });
    const places = await Promise.all(["a/secret.txt", "b/c/secret.txt", "d.txt"].map((path) => folder.locate(path)));
    for (const name of ["a", "b", "d.txt"]) await rename(join(root, name), join(root, `${name}-aside`));
    await symlink(outside, join(root, "a"));
    await symlink("../outside", join(root, "b"));
    await symlink(join(outside, "secret.txt"), join(root, "d.txt"));
    for (const place of places) {
      await expect(folder.openFile(place)).rejects.toMatchObject({ name: "WorkspaceToolRefusal" });
      await expect(folder.replace(place, Buffer.from("x"), null)).rejects.toMatchObject({
        name: "WorkspaceToolRefusal",
      });
    }
    await expect(folder.list({ path: "a", names: ["a"] }, 10)).rejects.toMatchObject({ name: "WorkspaceToolRefusal" });
    expect(await readdir(outside)).toEqual(["secret.txt"]);
    expect(await readFile(join(outside, "secret.txt"), "utf8")).toBe("the secret\n");
    expect((await readdir(root)).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it("what is denied is refused behind links, by names that are not there yet, and above the workspace", async () => {
    await using workspace = await openWorkspace({ "home/key": "one", "free/a.txt": "one" });
    const { root, outside } = workspace;
    await symlink(join(root, "home"), join(outside, "home"));
    await symlink("home", join(root, "alias"));
    const deny = [join(outside, "home"), "later/store"];
    const folder = createWorkspaceFolder({ root, deny, random: systemRandom, ...options });
    await expect(folder.locate("alias/key")).rejects.toMatchObject({ reason: "denied" });
    const behindLink = { path: "alias/key", names: ["home", "key"] };
    for (const place of [await folder.locate("home/key"), behindLink, await folder.locate("later/store/x")]) {
      await expect(folder.openFile(place)).rejects.toMatchObject({ reason: "denied" });
      await expect(folder.stateOf(place)).rejects.toMatchObject({ reason: "denied" });
      await expect(folder.replace(place, Buffer.from("x"), null)).rejects.toMatchObject({ reason: "denied" });
      await expect(folder.list(place, 10)).rejects.toMatchObject({ reason: "denied" });
    }
    expect(await textAt(folder, "free/a.txt")).toBe("one");
    const inner = createWorkspaceFolder({ root: join(root, "free"), deny: [root], random: systemRandom, ...options });
    await expect(textAt(inner, "a.txt")).rejects.toMatchObject({ reason: "denied" });
    expect((await readdir(root)).toSorted()).toEqual(["alias", "free", "home"]);
  });
});
