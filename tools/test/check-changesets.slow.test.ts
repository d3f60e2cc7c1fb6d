import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { checkChangesets } from "../check-changesets.ts";
import { repositoryRoot } from "../find-files.ts";
import { temporaryTree } from "./temporary-tree.ts";

function rootWith(changesets: Readonly<Record<string, string>>): string {
  const manifest = (name: string, isPrivate: boolean): string =>
    JSON.stringify({ name, version: "0.1.0", type: "module", private: isPrivate });
  const root = temporaryTree({
    "package.json": manifest("workspace", true),
    "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
    "pnpm-lock.yaml": "",
    "packages/server/package.json": manifest("@throughline/server", true),
    "packages/wire/package.json": manifest("@throughline/wire", false),
    ...Object.fromEntries(Object.entries(changesets).map(([name, text]) => [`.changeset/${name}.md`, text])),
  });
  cpSync(join(repositoryRoot, ".changeset/config.json"), join(root, ".changeset/config.json"));
  symlinkSync(join(repositoryRoot, "node_modules"), join(root, "node_modules"));
  return root;
}

const changeset = (...names: readonly string[]): string =>
  `---\n${names.map((name) => `"@throughline/${name}": patch\n`).join("")}---\n\nIt works.\n`;

it("accepts changesets of published packages", () => {
  expect(checkChangesets(rootWith({ good: changeset("wire") }))).toEqual({ changesets: 1, violations: [] });
});

it("names a changeset of a package that is not published, and passes on why changeset refuses one", () => {
  const { violations } = checkChangesets(rootWith({ alone: changeset("server"), mixed: changeset("server", "wire") }));
  expect(violations).toEqual([
    expect.stringMatching(/^\.changeset\/alone\.md: @throughline\/server is not published\. Name /),
    expect.stringMatching(/^\.changeset\/mixed\.md: @throughline\/server is not published\. Name /),
    expect.stringContaining("Found mixed changeset mixed"),
    expect.stringContaining("Found mixed changeset mixed"),
  ]);
});
