import { ReflectionKind, type DeclarationReflection, type ProjectReflection, type SomeType } from "typedoc";

/** How much of one package has docstrings. */
export interface Coverage {
  readonly exports: number;
  readonly members: number;
  /** What has no summary: `session:Turn.text`, by entry point, export and member. */
  readonly missing: readonly string[];
}

/** How many docstrings a package may lack, by its name without the scope; absent for none. */
export type CoverageLimits = Readonly<Record<string, number>>;

function hasSummary(reflection: DeclarationReflection): boolean {
  const { type } = reflection;
  const ofType = type?.type === "reflection" ? (type.declaration.signatures ?? []) : [];
  const accessors = [reflection.getSignature, reflection.setSignature].filter((each) => each !== undefined);
  return [reflection, ...(reflection.signatures ?? []), ...accessors, ...ofType].some(
    ({ comment }) => comment?.summary.some(({ text }) => text.trim() !== "") === true,
  );
}

/** A member, and whether the type that holds it has a docstring: of a union, its own alternative. */
interface HeldMember {
  readonly member: DeclarationReflection;
  readonly isHolderDescribed: boolean;
}

function membersOfType(type: SomeType | undefined, isHolderDescribed: boolean): readonly HeldMember[] {
  if (type?.type === "reflection") {
    return (type.declaration.children ?? []).map((member) => ({ member, isHolderDescribed }));
  }
  if (type?.type === "union") {
    const { types, elementSummaries } = type;
    return types.flatMap((each, index) => membersOfType(each, (elementSummaries?.[index]?.length ?? 0) > 0));
  }
  if (type?.type === "intersection") return type.types.flatMap((each) => membersOfType(each, isHolderDescribed));
  return type?.type === "array" || type?.type === "optional" ? membersOfType(type.elementType, isHolderDescribed) : [];
}

/** Properties, methods and accessors of a type, those of its parts too; without what it inherits. */
function membersOf(reflection: DeclarationReflection): readonly HeldMember[] {
  const isHolderDescribed = hasSummary(reflection);
  const children = (reflection.children ?? []).map((member) => ({ member, isHolderDescribed }));
  return [...children, ...membersOfType(reflection.type, isHolderDescribed)].filter(
    ({ member }) => member.inheritedFrom === undefined && !member.kindOf(ReflectionKind.Constructor),
  );
}

/** A member with a single value, such as `kind: "text"`, has its meaning from the type that holds it. */
function isDescribed({ member, isHolderDescribed }: HeldMember): boolean {
  return hasSummary(member) || (isHolderDescribed && member.type?.type === "literal" && !member.flags.isOptional);
}

/** Counts the docstrings of each package, by its name without the scope. What two entry points export counts once. */
export function countCoverage(project: ProjectReflection): ReadonlyMap<string, Coverage> {
  const byPackage = new Map<string, { exports: number; members: number; missing: string[] }>();
  const seen = new Set<DeclarationReflection>();
  const count = (coverage: { members: number; missing: string[] }, at: string, parent: DeclarationReflection): void => {
    for (const held of membersOf(parent)) {
      const { member } = held;
      if (seen.has(member)) continue;
      seen.add(member);
      coverage.members += 1;
      const name = `${at}.${member.name}`;
      if (!isDescribed(held)) coverage.missing.push(name);
      count(coverage, name, member);
    }
  };
  for (const module of project.children ?? []) {
    const [name = ""] = module.name.split("/");
    const coverage = byPackage.get(name) ?? { exports: 0, members: 0, missing: [] };
    byPackage.set(name, coverage);
    for (const declared of module.children ?? []) {
      if (declared.kindOf(ReflectionKind.Reference)) continue;
      coverage.exports += 1;
      const at = `${module.name}:${declared.name}`;
      if (!hasSummary(declared)) coverage.missing.push(at);
      count(coverage, at, declared);
    }
  }
  return byPackage;
}

/** What lacks docstrings in packages that have fewer of them than `limits` say. */
export function coverageProblems(coverage: ReadonlyMap<string, Coverage>, limits: CoverageLimits): readonly string[] {
  return [...coverage].flatMap(([name, { missing }]) => {
    const most = limits[name] ?? 0;
    if (missing.length <= most) return [];
    const shown = most === 0 ? missing : missing.slice(0, 20);
    return [
      `${name}: ${missing.length} without a docstring, at most ${most} as before`,
      ...shown.map((each) => `  ${each} has no docstring`),
    ];
  });
}

/** The limits that `coverage` keeps: never higher than before. */
export function lowerLimits(coverage: ReadonlyMap<string, Coverage>, limits: CoverageLimits | null): CoverageLimits {
  const entries = [...coverage].map(
    ([name, { missing }]) =>
      [name, limits === null ? missing.length : Math.min(missing.length, limits[name] ?? 0)] as const,
  );
  return Object.fromEntries(entries.filter(([, most]) => most > 0).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
