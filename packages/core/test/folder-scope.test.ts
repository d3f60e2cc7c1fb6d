import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { folderScope } from "@throughline/core/internal/node";

const base = realpathSync(mkdtempSync(join(tmpdir(), "throughline-folders-")));
afterAll(() => rmSync(base, { recursive: true, force: true }));
for (const folder of ["a/b/sub", "a/bc", "other/deep"]) mkdirSync(join(base, folder), { recursive: true });
symlinkSync(join(base, "other"), join(base, "a/b/out"));
symlinkSync(join(base, "a/b"), join(base, "into"));
symlinkSync(join(base, "loop"), join(base, "loop"));

describe("the scope of a folder", () => {
  it.each([
    ["a/b", true],
    ["a/b/", true],
    ["a/b/sub", true],
    ["a/b/sub/../sub", true],
    ["into", true],
    ["into/sub", true],
    ["a/b/gone/deeper", true],
    ["a/bc", false],
    ["a", false],
    ["a/b/../bc", false],
    ["a/b/out", false],
    ["a/b/out/deep", false],
    ["a/b/out/gone", false],
    ["a/b/gone/../../bc", false],
    ["loop", false],
    ["loop/a/b", false],
    ["a/b\0", false],
  ])("holds %s: %s", (folder, expected) => {
    expect(folderScope(join(base, "a/b"))(`${base}/${folder}`)).toBe(expected);
    expect(folderScope(join(base, "into"))(`${base}/${folder}`)).toBe(expected);
  });

  it.each([null, undefined, "", "a/b", ".", 7, {}])("does not hold %j, which is no absolute path", (folder) => {
    expect(folderScope("/")(folder)).toBe(false);
  });

  it("holds all absolute folders from the root on, and nothing where its own path cannot be resolved", () => {
    expect(folderScope("/")("/gone/for/good")).toBe(true);
    expect(folderScope(join(base, "loop"))(join(base, "loop"))).toBe(false);
    for (const folder of ["", ".", "src"]) expect(folderScope(folder)(process.cwd())).toBe(false);
  });

  it.skipIf(process.getuid?.() === 0)("does not hold a folder behind one that is closed to this user", () => {
    const closed = join(base, "a/b/closed");
    mkdirSync(join(closed, "inner"), { recursive: true });
    chmodSync(closed, 0o000);
    expect(folderScope(join(base, "a/b"))(join(closed, "inner"))).toBe(false);
    chmodSync(closed, 0o700);
  });
});
