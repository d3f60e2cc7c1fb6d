import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";
import { changelogSection, readChange, takeVersion, withSection } from "../version.ts";
import { temporaryTree } from "./temporary-tree.ts";

const added =
  '---\n"@throughline/cli": minor\n"@throughline/usage": patch\n---\n\n`stats` counts calls.\n\nA table follows:\n';
const repaired = '---\n"@throughline/core": patch\n---\n\nA key with a dot is found.\n';

describe("the changelog of a version", () => {
  const section = changelogSection("0.2.0", [repaired, added].map(readChange));

  it("has each change once, with its packages, and fixes behind what was added", () => {
    expect(section).toBe(
      "## 0.2.0\n\n### Added and changed\n\n- **cli, usage**: `stats` counts calls.\n\n  A table follows:\n\n### Fixed\n\n- **core**: A key with a dot is found.\n",
    );
  });

  it("stands before the earlier versions, and the packages get no changelog of their own", () => {
    const changelog = withSection("# Changelog\n\nOf all packages.\n\n## 0.1.0\n\nThe first.\n", section);
    expect(changelog).toBe(`# Changelog\n\nOf all packages.\n\n${section}\n## 0.1.0\n\nThe first.\n`);
    const { changelog: setting } = JSON.parse(readFileSync(join(repositoryRoot, ".changeset/config.json"), "utf8")) as {
      readonly changelog: unknown;
    };
    expect(setting).toBe(false);
  });

  it("is not written without a changeset, and no version is taken", () => {
    const root = temporaryTree({ ".changeset/config.json": "{}", "CHANGELOG.md": "# Changelog\n\n## 0.1.0\n" });
    const { status, problem } = takeVersion(root, join(root, "absent.js"));
    expect([status, problem]).toEqual([1, expect.stringMatching(/^There is no changeset, so /)]);
    expect(readFileSync(join(root, "CHANGELOG.md"), "utf8")).toBe("# Changelog\n\n## 0.1.0\n");
  });
});
