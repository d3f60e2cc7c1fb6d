import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";
import { isSyntaxNode, nameOf, type SyntaxNode } from "./syntax-tree.ts";

/** A parameter of an exported function that takes an object of options. */
export interface OptionParameter {
  /** `@throughline/session/whole-turn` */
  readonly entryPoint: string;
  readonly functionName: string;
  /** Among the parameters, from 0. */
  readonly index: number;
  readonly typeName: string;
  /** The options, as the type states them. */
  readonly properties: readonly OptionProperty[];
  readonly call: (...args: readonly unknown[]) => unknown;
}

/** A type with its properties. */
interface DeclaredType {
  readonly path: string;
  readonly members: readonly SyntaxNode[];
  /** What it extends, or is another name of. */
  readonly others: readonly SyntaxNode[];
}

interface DeclaredFunction {
  readonly path: string;
  readonly node: SyntaxNode;
}

/** What the source of a package declares. */
interface Declarations {
  readonly functions: ReadonlyMap<string, DeclaredFunction>;
  readonly types: ReadonlyMap<string, DeclaredType>;
}

/** An option, with the place of its type in the source. */
export interface OptionProperty {
  readonly name: string;
  readonly isOptional: boolean;
  /** Whether `undefined` is a case of the type. */
  readonly takesUndefined: boolean;
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

const packages = fileURLToPath(new URL("../packages", import.meta.url));

/**
 * The parameters of all exported functions of all packages whose type has an optional property. Left out is what
 * `/internal` exports, and a function that is a constant: its type is not written beside it.
 */
export async function publicOptionParameters(): Promise<readonly OptionParameter[]> {
  const declared = new Map(readdirSync(packages).map((name) => [name, declarationsOf(join(packages, name, "src"))]));
  const found: OptionParameter[] = [];
  for (const [name, { functions }] of declared) {
    const manifest = readFileSync(join(packages, name, "package.json"), "utf8");
    const { exports } = JSON.parse(manifest) as { readonly exports: Readonly<Record<string, unknown>> };
    for (const [path, targets] of Object.entries(exports)) {
      if (path.startsWith("./internal") || typeof targets !== "object" || targets === null) continue;
      const source = String((targets as Readonly<Record<string, unknown>>)["@throughline/source"]);
      const module = (await import(join(packages, name, source))) as Readonly<Record<string, unknown>>;
      for (const [functionName, call] of Object.entries(module)) {
        const declaration = functions.get(functionName);
        if (typeof call !== "function" || declaration === undefined) continue;
        const entryPoint = `@throughline/${name}${path.slice(1)}`;
        const common = { entryPoint, functionName, call: call as OptionParameter["call"] };
        const place = { declared, packageName: name, path: declaration.path };
        for (const [index, parameter] of (declaration.node["params"] as readonly SyntaxNode[]).entries()) {
          const type = typeOfParameter(parameter);
          const properties = propertiesOf(place, type, 0);
          if (!properties.some(({ isOptional }) => isOptional)) continue;
          found.push({ ...common, index, typeName: nameOf(type?.["typeName"]) ?? "an object", properties });
        }
      }
    }
  }
  return found;
}

/**
 * The optional options of the methods of every public interface, such as `Session` and `SessionStore`, as far as the
 * packages declare their types.
 */
export function publicMethodOptions(publicNames: ReadonlySet<string>): readonly OptionProperty[] {
  const declared = new Map(readdirSync(packages).map((name) => [name, declarationsOf(join(packages, name, "src"))]));
  return [...declared].flatMap(([packageName, { types }]) =>
    [...types].flatMap(([typeName, { path, members }]) => {
      if (!publicNames.has(typeName)) return [];
      const place = { declared, packageName, path };
      return members
        .filter(({ type }) => type === "TSMethodSignature")
        .flatMap((method) => method["params"] as readonly SyntaxNode[])
        .filter((parameter) => /(?:options|query)$/iu.test(nameOf(parameter) ?? ""))
        .flatMap((parameter) => propertiesOf(place, typeOfParameter(parameter), 0))
        .filter(({ isOptional }) => isOptional);
    }),
  );
}

function declarationsOf(folder: string): Declarations {
  const functions = new Map<string, DeclaredFunction>();
  const types = new Map<string, DeclaredType>();
  const constants = new Set<string>();
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".ts")) continue;
    const file = join(folder, path);
    const { program } = parseSync(path, readFileSync(file, "utf8"));
    for (const statement of program.body as unknown as readonly SyntaxNode[]) {
      const node = statement.type === "ExportNamedDeclaration" ? statement["declaration"] : statement;
      if (!isSyntaxNode(node)) continue;
      const name = nameOf(node["id"]) ?? "";
      // Of several signatures the first is what callers see.
      if (node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction")
        functions.set(name, functions.get(name) ?? { path: file, node });
      // Another module may declare a function of the same name; which of both is exported cannot be told by the name.
      if (statement.type === "ExportNamedDeclaration" && node.type === "VariableDeclaration")
        for (const { id } of node["declarations"] as unknown as readonly SyntaxNode[]) constants.add(nameOf(id) ?? "");
      if (node.type === "TSInterfaceDeclaration") types.set(name, interfaceOf(node, file));
      if (node.type === "TSTypeAliasDeclaration")
        types.set(name, { path: file, members: [], others: [node["typeAnnotation"] as SyntaxNode] });
    }
  }
  for (const name of constants) functions.delete(name);
  return { functions, types };
}

function interfaceOf(node: SyntaxNode, path: string): DeclaredType {
  const { body } = node["body"] as unknown as { readonly body: readonly SyntaxNode[] };
  return { path, members: body, others: (node["extends"] ?? []) as readonly SyntaxNode[] };
}

function typeOfParameter(parameter: SyntaxNode): SyntaxNode | null {
  const named = parameter.type === "AssignmentPattern" ? (parameter["left"] as SyntaxNode) : parameter;
  const annotation = named["typeAnnotation"];
  return isSyntaxNode(annotation) ? (annotation["typeAnnotation"] as SyntaxNode) : null;
}

const deepest = 6;

/** Where a type is written. */
interface TypePlace {
  readonly declared: ReadonlyMap<string, Declarations>;
  readonly packageName: string;
  readonly path: string;
}

/** The properties of a type as far as the packages declare it; none for anything else. */
function propertiesOf(place: TypePlace, type: unknown, depth: number): readonly OptionProperty[] {
  const { declared, packageName, path } = place;
  if (!isSyntaxNode(type) || depth > deepest) return [];
  const below = (other: unknown): readonly OptionProperty[] => propertiesOf(place, other, depth + 1);
  if (type.type === "TSTypeLiteral") return propertiesIn(type["members"] as readonly SyntaxNode[], path);
  if (type.type === "TSIntersectionType") return (type["types"] as readonly SyntaxNode[]).flatMap(below);
  const name = nameOf(type["typeName"] ?? type["expression"]);
  if (name === null) return [];
  if (["Partial", "Omit", "Pick", "Readonly"].includes(name)) {
    const [inner, keys] = (type["typeArguments"] as unknown as { readonly params: readonly SyntaxNode[] }).params;
    const properties = below(inner);
    if (name === "Partial") return properties.map((property) => ({ ...property, isOptional: true }));
    const chosen = keysOf(keys);
    if (name === "Pick") return properties.filter((property) => chosen.includes(property.name));
    return properties.filter((property) => !chosen.includes(property.name));
  }
  const own = declared.get(packageName)?.types.get(name);
  const known = own ?? [...declared.values()].map(({ types }) => types.get(name)).find((one) => one !== undefined);
  if (known === undefined) return [];
  const there = { ...place, path: known.path };
  const inherited = known.others.flatMap((other) => propertiesOf(there, other, depth + 1));
  return [...propertiesIn(known.members, known.path), ...inherited];
}

function propertiesIn(members: readonly SyntaxNode[], path: string): readonly OptionProperty[] {
  return members
    .filter(({ type }) => type === "TSPropertySignature")
    .map((member) => {
      const annotation = (member["typeAnnotation"] as SyntaxNode | undefined)?.["typeAnnotation"] as SyntaxNode;
      return {
        name: nameOf(member["key"]) ?? "",
        isOptional: member["optional"] === true,
        takesUndefined: isUndefinedCase(annotation),
        path,
        start: annotation?.start ?? member.start,
        end: Number(annotation?.["end"] ?? member["end"]),
      };
    });
}

function isUndefinedCase(type: SyntaxNode | undefined): boolean {
  if (type === undefined || type.type === "TSUndefinedKeyword" || type.type === "TSUnknownKeyword") return true;
  return type.type === "TSUnionType" && (type["types"] as readonly SyntaxNode[]).some(isUndefinedCase);
}

function keysOf(type: SyntaxNode | undefined): readonly string[] {
  if (type === undefined) return [];
  if (type.type === "TSUnionType") return (type["types"] as readonly SyntaxNode[]).flatMap(keysOf);
  return [nameOf(type["literal"]) ?? ""];
}
