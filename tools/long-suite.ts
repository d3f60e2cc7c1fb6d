/** How much of a suite runs: all of it, or enough to see that it works. */
export type SuiteSize = "full" | "quick";

/** The child process of a suite. */
export interface SuiteCommand {
  /** `node` and `vitest` are those of the checkout. */
  readonly program: "node" | "vitest";
  readonly args: readonly string[];
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** A suite that is too long for `npm test` at its full size. */
export interface LongSuite {
  readonly name: string;
  /** What it shows, in a phrase. */
  readonly about: string;
  command(size: SuiteSize): SuiteCommand;
  /** Why it cannot run on this machine; null when it can. */
  missing(): string | null;
}

/** What a suite prints on a line of its own when the machine lacks something; the reason follows. */
export const skippedPrefix = "skipped: ";

const sourceCondition = "--conditions=@throughline/source";
const nothing = (): null => null;

function script(path: string, args: readonly (string | number)[], env: Readonly<Record<string, string>> = {}) {
  return { program: "node", args: [sourceCondition, path, ...args.map(String)], env } as const;
}

/** A program of this repository with options for each size. */
export function program(
  name: string,
  about: string,
  path: string,
  options: Readonly<Record<SuiteSize, readonly (string | number)[]>>,
  missing: LongSuite["missing"] = nothing,
): LongSuite {
  return { name, about, missing, command: (size) => script(path, options[size]) };
}

/** Test files of one project at the size that `tools/test-size.ts` reads. */
export function tests(
  name: string,
  about: string,
  files: { readonly project: string } & Readonly<Record<SuiteSize, readonly string[]>>,
  { env = {}, missing = nothing }: { readonly env?: SuiteCommand["env"]; readonly missing?: LongSuite["missing"] } = {},
): LongSuite {
  return {
    name,
    about,
    missing,
    command: (size) => ({
      program: "vitest",
      args: ["run", "--project", files.project, ...files[size]],
      env: { ...env, ...(size === "full" ? fullTests : {}) },
    }),
  };
}

/** Everything that makes a test larger; the packages outside the stores have variables of their own. */
export const fullTests: SuiteCommand["env"] = {
  THROUGHLINE_TEST_SIZE: "long",
  THROUGHLINE_RUNS: "10",
  THROUGHLINE_SEEDS: "3000",
  THROUGHLINE_CUTS: "all",
  THROUGHLINE_KILLS: "all",
  THROUGHLINE_WINDOWS: "all",
  THROUGHLINE_FLUSHES: "all",
};

/** Test files by their names. */
export const files = (names: readonly string[]): readonly string[] => names.map((name) => `test/${name}.test.ts`);
