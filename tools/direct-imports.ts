import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Plugin } from "esbuild";
import { parseSync } from "oxc-parser";
import { repositoryRoot } from "./find-files.ts";

const scope = "@throughline/";

/** Every command needs most of it, and cut up it would be twenty more files to open at every start. */
const kept = /^@throughline\/core(?:\/|$)/;

/** Where an entry point takes a name from: the file, and what it is called there. */
interface Origin {
  readonly path: string;
  readonly name: string;
}

/**
 * Imports of our packages, led past their entry points to the files that have what is imported. A bundler that splits
 * loads everything that an entry point names as soon as anything of it is imported, although a command needs one function.
 */
export const directImports: Plugin = {
  name: "direct-imports",
  setup(build) {
    const origins = new Map<string, ReadonlyMap<string, Origin>>();
    build.onLoad({ filter: /[\\/](?:packages|apps)[\\/][^\\/]+[\\/]src[\\/].*\.ts$/ }, ({ path }) => {
      return { contents: withDirectImports(readFileSync(path, "utf8"), path, origins), loader: "ts" };
    });
  },
};

/** The text with each import of names from our packages replaced, on as many lines as before, so that positions stay. */
export function withDirectImports(
  text: string,
  path: string,
  origins: Map<string, ReadonlyMap<string, Origin>> = new Map(),
): string {
  const { module } = parseSync(path, text, { lang: "ts", sourceType: "module" });
  let result = text;
  for (const { start, end, moduleRequest, entries } of module.staticImports.toReversed()) {
    const specifier = moduleRequest.value;
    if (!specifier.startsWith(scope) || kept.test(specifier)) continue;
    if (entries.length === 0 || entries.some(({ importName }) => importName.kind !== "Name")) continue;
    const known = origins.get(specifier) ?? originsOf(specifier);
    origins.set(specifier, known);
    const values = entries.filter(({ isType }) => !isType);
    const statements = values.map(({ importName, localName }) => {
      const name = String(importName.name);
      const origin = known.get(name) ?? { path: specifier, name };
      return `import { ${origin.name} as ${localName.value} } from ${JSON.stringify(origin.path)};`;
    });
    const original = text.slice(start, end);
    result = result.slice(0, start) + statements.join(" ") + original.replace(/[^\n]/g, "") + result.slice(end);
  }
  return result;
}

/** The origins of what an entry point gives on from files of its own package. */
function originsOf(specifier: string): ReadonlyMap<string, Origin> {
  const [, name = "", entry = "."] = /^@throughline\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  const inPackages = join(repositoryRoot, "packages", name);
  const folder = existsSync(inPackages) ? inPackages : join(repositoryRoot, "apps", name);
  const { exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, { readonly "@throughline/source": string }>>;
  };
  const source = exports[entry === "." ? entry : `./${entry}`]?.["@throughline/source"];
  if (source === undefined) throw new Error(`${specifier} is no entry point`);
  const path = join(folder, source);
  const { module } = parseSync(path, readFileSync(path, "utf8"), { lang: "ts", sourceType: "module" });
  return new Map(
    module.staticExports
      .flatMap((item) => item.entries)
      .filter(({ isType, moduleRequest }) => !isType && moduleRequest?.value.startsWith("."))
      .map(({ exportName, importName, moduleRequest }) => [
        String(exportName.name),
        { path: resolve(dirname(path), moduleRequest?.value ?? ""), name: String(importName.name) },
      ]),
  );
}
