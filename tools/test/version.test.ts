import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";
import { changelogSection, readChange, withSection } from "../version.ts";

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
    const changelog = withSection(readFileSync(join(repositoryRoot, "CHANGELOG.md"), "utf8"), section);
    const versions = Array.from(changelog.matchAll(/^## (.*)$/gm), ([, version]) => version);
    expect(versions.slice(0, 2)).toEqual(["0.2.0", "0.1.0"]);
    expect(changelog.startsWith("# Changelog\n")).toBe(true);
    const { changelog: setting } = JSON.parse(readFileSync(join(repositoryRoot, ".changeset/config.json"), "utf8")) as {
      readonly changelog: unknown;
    };
    expect(setting).toBe(false);
  });
});
