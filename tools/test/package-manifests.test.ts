import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPackages, repositoryRoot } from "../find-files.ts";

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly description?: string;
  readonly keywords?: readonly string[];
  readonly homepage?: string;
  readonly bugs?: string;
  readonly license?: string;
  readonly repository?: { readonly directory?: string };
  readonly files?: readonly string[];
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const folders = findPackages(repositoryRoot);
const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8")) as Manifest;
const published = folders.filter((folder) => manifestOf(folder).private !== true);

describe("what is published", () => {
  it("are the packages and the command line", () => {
    expect(published.length).toBeGreaterThan(30);
    expect(published).toContain("apps/cli");
  });

  it.each(published)("%s says what it is, where it comes from and where to report a fault", (folder) => {
    const manifest = manifestOf(folder);
    expect(manifest).toMatchObject({
      description: expect.stringMatching(/\S/),
      homepage: expect.stringContaining(`/${folder}#readme`),
      bugs: expect.stringContaining("/issues"),
      license: "MIT",
      repository: { directory: folder },
      engines: { node: ">=22.18" },
    });
    expect(manifest.keywords?.length ?? 0).toBeGreaterThan(3);
  });

  it.each(published)("%s takes a patch of the packages it needs, and no private one", (folder) => {
    const { dependencies = {}, peerDependencies = {} } = manifestOf(folder);
    const names = new Map(folders.map((each) => [manifestOf(each).name, each]));
    for (const [name, range] of Object.entries({ ...dependencies, ...peerDependencies })) {
      const own = names.get(name);
      if (own === undefined) continue;
      expect([name, range]).toEqual([name, "workspace:^"]);
      expect([name, manifestOf(own).private ?? false]).toEqual([name, false]);
    }
  });

  it.each(published)("%s brings the specification that its README names", (folder) => {
    const readme = readFileSync(join(repositoryRoot, folder, "README.md"), "utf8");
    const hasOne = existsSync(join(repositoryRoot, folder, "SPEC.md"));
    if (/`SPEC\.md`|\(SPEC\.md/.test(readme)) expect(hasOne).toBe(true);
    expect(manifestOf(folder).files?.includes("SPEC.md")).toBe(hasOne);
  });

  it("has no scripts and no tools of development in it", () => {
    const { hooks } = createRequire(import.meta.url)(join(repositoryRoot, ".pnpmfile.cjs")) as {
      readonly hooks: { beforePacking(manifest: object): object };
    };
    const packed = hooks.beforePacking({
      name: "a",
      scripts: { build: "x" },
      devDependencies: { b: "1" },
      dependencies: {},
    });
    expect(packed).toEqual({ name: "a", dependencies: {} });
  });
});
