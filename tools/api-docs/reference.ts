import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix, relative } from "node:path";
import { Application, Comment, CommentTag, Converter, LogLevel, ReflectionKind } from "typedoc";
import type { DeclarationReflection, ProjectReflection, TypeDocOptions } from "typedoc";
import type { PluginOptions } from "typedoc-plugin-markdown";
import { findFiles } from "../find-files.ts";
import { readMarkdown } from "../markdown.ts";
import { readPublicExports } from "../public-exports.ts";
import { writeDeclarations, type Declarations } from "./declarations.ts";

/** The reference of all published packages. */
export interface Reference {
  readonly project: ProjectReflection;
  /** Text of each page, by its path below `docs/api`. */
  readonly pages: ReadonlyMap<string, string>;
  /** What typedoc found wrong: links that lead nowhere, types that no page has. */
  readonly warnings: readonly string[];
}

/** Over the types that a package does not export by name, and that its exports refer to. */
const groupBehind = "Types behind the exports";

const ownModules = "typedoc-plugin-missing-exports";

function optionsOf(declarations: Declarations, out: string): TypeDocOptions & Partial<PluginOptions> {
  return {
    name: "Throughline",
    tsconfig: declarations.configPath,
    entryPoints: declarations.entryPoints.map(({ path }) => path),
    basePath: declarations.folder,
    plugin: ["typedoc-plugin-markdown", ownModules],
    out,
    readme: "none",
    disableGit: true,
    // The page changes with the interface and not with each line above it.
    disableSources: true,
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    // `tsc -b` checks the types.
    skipErrorChecking: true,
    logLevel: LogLevel.Warn,
    outputFileStrategy: "modules",
    hideBreadcrumbs: true,
    hidePageHeader: true,
    expandParameters: true,
    parametersFormat: "table",
    interfacePropertiesFormat: "table",
    classPropertiesFormat: "table",
    typeAliasPropertiesFormat: "table",
    propertyMembersFormat: "table",
    tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true, hideSources: true },
  };
}

/** Reads the declarations of all published packages below `root`, and writes their pages. */
export async function createReference(root: string): Promise<Reference> {
  const declarations = writeDeclarations(root);
  const out = mkdtempSync(join(tmpdir(), "throughline-api-pages-"));
  try {
    const options = { ...optionsOf(declarations, out), placeInternalsInOwningModule: true };
    const app = await Application.bootstrapWithPlugins(options as TypeDocOptions);
    const warnings: string[] = [];
    app.logger.warn = (text: string) => warnings.push(text);
    app.logger.error = (text: string) => warnings.push(text);
    app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => arrangeModules(root, declarations, project));
    const project = await app.convert();
    if (project === undefined) throw new Error(`typedoc read nothing: ${warnings.join("; ")}`);
    app.validate(project);
    await app.generateOutputs(project);
    const pages = findFiles(out, ".", [".md"])
      .filter((path) => path !== "README.md")
      .map((path) => [path, pageText(readFileSync(join(out, path), "utf8"))] as const);
    return { project, pages: withKnownAnchors(new Map(pages)), warnings };
  } finally {
    rmSync(out, { recursive: true, force: true });
    rmSync(declarations.folder, { recursive: true, force: true });
  }
}

/** Corrects the links to headings that differ in case only: the plugin numbers them in another order than GitHub. */
function withKnownAnchors(pages: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const anchors = new Map([...pages].map(([path, text]) => [path, readMarkdown(text).anchors]));
  const corrected = [...pages].map(([path, text]) => {
    const linked = text.replaceAll(/\]\(([^()\s#]*)#([^()\s]+)\)/g, (link, target: string, anchor: string) => {
      const known = anchors.get(target === "" ? path : posix.join(posix.dirname(path), target));
      const plain = anchor.replace(/-\d+$/, "");
      return known === undefined || known.has(anchor) || !known.has(plain) ? link : `](${target}#${plain})`;
    });
    return [path, linked] as const;
  });
  return new Map(corrected);
}

/** Names the modules as they are imported, and sorts out what users cannot import by name. */
function arrangeModules(root: string, { folder, entryPoints }: Declarations, project: ProjectReflection): void {
  const modulePath = (path: string): string => relative(folder, path).replaceAll("\\", "/");
  const names = new Map(
    entryPoints.map(({ path, name }) => [modulePath(path).replace(/(?:\/index)?\.d\.ts$/, ""), name]),
  );
  const exported = new Set(
    readPublicExports(root).map(({ package: name, entry, name: exportName }) =>
      [name.replace("@throughline/", ""), entry.slice(1), ":", exportName].join(""),
    ),
  );
  for (const module of project.children ?? []) {
    module.name = names.get(module.name) ?? module.name;
    for (const child of module.children?.slice() ?? []) {
      if (exported.has(`${module.name}:${child.name}`)) continue;
      // Of values only the type is public.
      if (child.kindOf(ReflectionKind.SomeValue & ~ReflectionKind.Class)) project.removeReflection(child);
      else markAsBehind(child);
    }
  }
}

function markAsBehind(reflection: DeclarationReflection): void {
  reflection.comment ??= new Comment();
  reflection.comment.blockTags.push(new CommentTag("@group", [{ kind: "text", text: groupBehind }]));
}

/** Takes the anchors of single properties out: they are numbered through the page, and would change with each new one. */
function pageText(text: string): string {
  return text
    .replaceAll(/<a id="[^"]*"><\/a> /g, "")
    .replaceAll(/\[((?:`[^`]*`|[^[\]`])*)\]\([^()\s]*#(?:property|type-parameter|api)-[^()\s]*\)/g, "$1")
    .replaceAll(/^#### (?:Properties|Type Parameters|Parameters|Extends|Extended by)$/gm, (heading) =>
      heading.replace("#### ", "**").concat("**"),
    )
    .replaceAll(/\| ------ /g, "| --- ")
    .replaceAll(/\n{3,}/g, "\n\n");
}
