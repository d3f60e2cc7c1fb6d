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
  readonly names: readonly string[];
  readonly call: (...args: readonly unknown[]) => unknown;
}

/** A type with its properties. */
interface DeclaredType {
  readonly members: readonly SyntaxNode[];
  /** What it extends, or is another name of. */
  readonly others: readonly SyntaxNode[];
}

/** What the source of a package declares. */
interface Declarations {
  readonly functions: ReadonlyMap<string, SyntaxNode>;
  readonly types: ReadonlyMap<string, DeclaredType>;
}

interface Property {
  readonly name: string;
  readonly isOptional: boolean;
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
        for (const [index, parameter] of (declaration["params"] as readonly SyntaxNode[]).entries()) {
          const type = typeOfParameter(parameter);
          const properties = propertiesOf(declared, name, type, 0);
          if (!properties.some(({ isOptional }) => isOptional)) continue;
          const names = properties.map((property) => property.name);
          found.push({ ...common, index, typeName: nameOf(type?.["typeName"]) ?? "an object", names });
        }
      }
    }
  }
  return found;
}

function declarationsOf(folder: string): Declarations {
  const functions = new Map<string, SyntaxNode>();
  const types = new Map<string, DeclaredType>();
  const constants = new Set<string>();
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!path.endsWith(".ts")) continue;
    const { program } = parseSync(path, readFileSync(join(folder, path), "utf8"));
    for (const statement of program.body as unknown as readonly SyntaxNode[]) {
      const node = statement.type === "ExportNamedDeclaration" ? statement["declaration"] : statement;
      if (!isSyntaxNode(node)) continue;
      const name = nameOf(node["id"]) ?? "";
      // Of several signatures the first is what callers see.
      if (node.type === "FunctionDeclaration" || node.type === "TSDeclareFunction")
        functions.set(name, functions.get(name) ?? node);
      // Another module may declare a function of the same name; which of both is exported cannot be told by the name.
      if (statement.type === "ExportNamedDeclaration" && node.type === "VariableDeclaration")
        for (const { id } of node["declarations"] as unknown as readonly SyntaxNode[]) constants.add(nameOf(id) ?? "");
      if (node.type === "TSInterfaceDeclaration") types.set(name, interfaceOf(node));
      if (node.type === "TSTypeAliasDeclaration")
        types.set(name, { members: [], others: [node["typeAnnotation"] as SyntaxNode] });
    }
  }
  for (const name of constants) functions.delete(name);
  return { functions, types };
}

function interfaceOf(node: SyntaxNode): DeclaredType {
  const { body } = node["body"] as unknown as { readonly body: readonly SyntaxNode[] };
  return { members: body, others: (node["extends"] ?? []) as readonly SyntaxNode[] };
}

function typeOfParameter(parameter: SyntaxNode): SyntaxNode | null {
  const named = parameter.type === "AssignmentPattern" ? (parameter["left"] as SyntaxNode) : parameter;
  const annotation = named["typeAnnotation"];
  return isSyntaxNode(annotation) ? (annotation["typeAnnotation"] as SyntaxNode) : null;
}

const deepest = 6;

/** The properties of a type as far as the packages declare it; none for anything else. */
function propertiesOf(
  declared: ReadonlyMap<string, Declarations>,
  packageName: string,
  type: unknown,
  depth: number,
): readonly Property[] {
  if (!isSyntaxNode(type) || depth > deepest) return [];
  const below = (other: unknown): readonly Property[] => propertiesOf(declared, packageName, other, depth + 1);
  if (type.type === "TSTypeLiteral") return propertiesIn(type["members"] as readonly SyntaxNode[]);
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
  return known === undefined ? [] : [...propertiesIn(known.members), ...known.others.flatMap(below)];
}

function propertiesIn(members: readonly SyntaxNode[]): readonly Property[] {
  return members
    .filter(({ type }) => type === "TSPropertySignature")
    .map((member) => ({ name: nameOf(member["key"]) ?? "", isOptional: member["optional"] === true }));
}

function keysOf(type: SyntaxNode | undefined): readonly string[] {
  if (type === undefined) return [];
  if (type.type === "TSUnionType") return (type["types"] as readonly SyntaxNode[]).flatMap(keysOf);
  return [nameOf(type["literal"]) ?? ""];
}
