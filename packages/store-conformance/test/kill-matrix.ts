import { conformanceCases } from "../src/conformance-cases.ts";
import { runConformance } from "@throughline/store-conformance";
import { mutantSetup, type Mutant } from "./mutants/mutant.ts";
import { mutants } from "./mutants/mutants.ts";

/** A defect and the cases that find it. */
export interface KillRow {
  readonly mutant: Mutant;
  readonly foundBy: readonly string[];
}

/** Thousands of appends each, or waiting: these run only against the stores meant for them. */
const costlyCases: ReadonlySet<string> = new Set([
  "idempotency/remembered",
  "idempotency/without-records",
  "idempotency/expired",
  "model/random-histories",
]);

/** Cases that no mutant is meant for; each is found by some of them. */
const unassignedCases: ReadonlySet<string> = new Set(
  conformanceCases.map(({ id }) => id).filter((id) => !mutants.some(({ foundBy }) => foundBy === id)),
);

/** Runs the cases against one mutant; quick: the case meant for it and those that are meant for none. */
export async function killsOf(
  mutant: Mutant,
  { isQuick = false }: { readonly isQuick?: boolean } = {},
): Promise<KillRow> {
  const isCostly = (id: string): boolean => costlyCases.has(id) || id.startsWith("watch/");
  const isWanted = (id: string): boolean => (isQuick ? unassignedCases.has(id) : !isCostly(id));
  const cases = conformanceCases.filter(({ id }) => id === mutant.foundBy || isWanted(id));
  const results = await runConformance({ ...mutantSetup(mutant), cases, caseTimeoutMs: 20_000 });
  return { mutant, foundBy: results.filter(({ passed, skipped }) => !passed && skipped === null).map(({ id }) => id) };
}

export async function killMatrix(): Promise<readonly KillRow[]> {
  const rows: KillRow[] = [];
  for (const mutant of mutants) rows.push(await killsOf(mutant));
  return rows;
}

/** What is wrong with the kit: mutants that get away, and cases that find nothing. */
export function kitProblems(rows: readonly KillRow[]): readonly string[] {
  const found = new Set(rows.flatMap(({ foundBy }) => foundBy));
  return [
    ...rows
      .filter(({ foundBy }) => foundBy.length === 0)
      .map(({ mutant }) => `no case finds the mutant "${mutant.name}"`),
    ...rows
      .filter(({ mutant, foundBy }) => foundBy.length > 0 && !foundBy.includes(mutant.foundBy))
      .map(
        ({ mutant, foundBy }) =>
          `${mutant.foundBy} does not find the mutant "${mutant.name}", but ${foundBy.join(", ")}`,
      ),
    ...conformanceCases.filter(({ id }) => !found.has(id)).map(({ id }) => `the case ${id} finds no mutant`),
  ];
}

/** The matrix as Markdown: for each defect the case that must find it and how many others do. */
export function matrixText(rows: readonly KillRow[]): string {
  const byCase = conformanceCases.map(
    ({ id }) =>
      `| ${id} | ${rows
        .filter(({ foundBy }) => foundBy.includes(id))
        .map(({ mutant }) => mutant.name)
        .join("; ")} |`,
  );
  const byMutant = rows.map(({ mutant, foundBy }) => `| ${mutant.name} | ${mutant.foundBy} | ${foundBy.length} |`);
  const problems = kitProblems(rows);
  return [
    "# Kill matrix of the store conformance kit",
    "",
    "Every case of the kit and the broken stores it finds.",
    "",
    summaryLine(rows),
    "",
    "| case | broken stores it finds |",
    "| --- | --- |",
    ...byCase,
    "",
    "| broken store | the case meant for it | cases that find it |",
    "| --- | --- | --: |",
    ...byMutant,
    ...(problems.length === 0 ? [] : ["", ...problems.map((problem) => `- ${problem}`)]),
    "",
  ].join("\n");
}

/** The figures in one line. */
export function summaryLine(rows: readonly KillRow[]): string {
  const problems = kitProblems(rows);
  const verdict = problems.length === 0 ? "every case killed by at least one" : `${problems.length} problems`;
  return `cases: ${conformanceCases.length}, mutants: ${rows.length}, ${verdict}`;
}
