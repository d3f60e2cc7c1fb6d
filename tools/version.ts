// Takes the next version of all packages, and writes what the changesets say into CHANGELOG.md.
// node --conditions=@throughline/source tools/version.ts
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { changesetPaths } from "./check-changesets.ts";
import { repositoryRoot } from "./find-files.ts";

/** What a changeset says to users. */
export interface Change {
  /** The names of packages without their scope. */
  readonly packages: readonly string[];
  readonly isFix: boolean;
  readonly text: string;
}

/** Reads the text of a changeset; one whose packages all get a patch is a fix. */
export function readChange(text: string): Change {
  const [, head = "", body = ""] = /^---\n([^]*?)\n---\n([^]*)$/.exec(text) ?? [];
  const named = Array.from(head.matchAll(/^"@throughline\/([^"]+)": (\w+)$/gm), ([, name = "", bump]) => ({
    name,
    bump,
  }));
  return {
    packages: named.map(({ name }) => name),
    isFix: named.every(({ bump }) => bump === "patch"),
    text: body.trim(),
  };
}

/** The section of a version: each change once, with the packages that it concerns. */
export function changelogSection(version: string, changes: readonly Change[]): string {
  const parts = [
    { title: "Added and changed", of: changes.filter(({ isFix }) => !isFix) },
    { title: "Fixed", of: changes.filter(({ isFix }) => isFix) },
  ].filter(({ of }) => of.length > 0);
  const lines = parts.flatMap(({ title, of }) => [`### ${title}`, "", ...of.map(changeLine).toSorted(), ""]);
  return [`## ${version}`, "", ...lines].join("\n");
}

function changeLine({ packages, text }: Change): string {
  return `- **${packages.join(", ")}**: ${text.replaceAll("\n", "\n  ").replaceAll(/^ +$/gm, "")}`;
}

/** Puts the section of the newest version before that of the version before it. */
export function withSection(changelog: string, section: string): string {
  const at = changelog.indexOf("\n## ") + 1;
  if (at === 0) throw new Error("CHANGELOG.md has no section of an earlier version.");
  return `${changelog.slice(0, at)}${section}\n${changelog.slice(at)}`;
}

/**
 * Takes the next version of the packages under `root`, and writes its section into CHANGELOG.md. Returns what the
 * command ends with.
 */
export function takeVersion(root: string, program: string): { readonly status: number; readonly problem?: string } {
  const paths = changesetPaths(root);
  if (paths.length === 0)
    return { status: 1, problem: "There is no changeset, so there is no next version. `npx changeset` writes one." };
  const changes = paths.map((path) => readChange(readFileSync(join(root, path), "utf8")));
  const { status } = spawnSync(process.execPath, [program, "version"], { cwd: root, stdio: "inherit" });
  if (status !== 0) return { status: status ?? 1 };
  const { version } = JSON.parse(readFileSync(join(root, "packages/core/package.json"), "utf8")) as {
    readonly version: string;
  };
  const path = join(root, "CHANGELOG.md");
  writeFileSync(path, withSection(readFileSync(path, "utf8"), changelogSection(version, changes)));
  return { status };
}

if (import.meta.main) {
  const { status, problem } = takeVersion(repositoryRoot, join(repositoryRoot, "node_modules/@changesets/cli/bin.js"));
  if (problem !== undefined) process.stderr.write(`${problem}\n`);
  process.exitCode = status;
}
