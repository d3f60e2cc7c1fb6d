import { join } from "node:path";
import { type FailedTest, type PassedTest, sumOfFaults, type TestCounts } from "./closing-line.ts";
import { repositoryRoot } from "./find-files.ts";

/** More failed files than this are a fault, whatever a second run says. */
const mostFiles = 3;

/** Returns the failed files that may run once more, by their absolute paths; none when more failed, or something outside of a file. */
export function filesAgain({ failures = [], unhandled = 0 }: TestCounts): readonly string[] {
  const files = [...new Set(failures.map(({ file }) => file))];
  return unhandled > 0 || files.length > mostFiles ? [] : files.map((file) => join(repositoryRoot, file));
}

/** Returns arguments of vitest that run the failed files alone, in one worker, in the projects in which they failed. */
export function argumentsAgain(counts: TestCounts): readonly string[] {
  const projects = new Set((counts.failures ?? []).map(({ project }) => project).filter((project) => project !== ""));
  return [
    ...filesAgain(counts),
    ...[...projects].map((project) => `--project=${project}`),
    "--maxWorkers=1",
    "--no-file-parallelism",
  ];
}

/** Says whether a second run shows this failure too: that of the test itself, or one of its whole file. */
function isShownBy(failures: readonly FailedTest[]): (first: FailedTest) => boolean {
  return (first) =>
    failures.some(
      ({ file, project, name }) =>
        file === first.file && project === first.project && (name === first.name || name === ""),
    );
}

/** Says whether a test that passed is the one that failed first, or is in a file that failed as a whole. */
function isPassOf(first: FailedTest, { file, project, name }: PassedTest): boolean {
  return file === first.file && project === first.project && (name === first.name || first.name === "");
}

/**
 * Joins the counts of a run with those of its failed files, which ran again. What failed again, or only then, is failed,
 * and so is what did not run then.
 */
export function countsWithAgain(first: TestCounts, again: TestCounts): TestCounts {
  const [before, after] = [first.failures ?? [], again.failures ?? []];
  // A file that failed as a whole has counted none of its tests as passed.
  const isNew = (failure: FailedTest): boolean => failure.name !== "" && !isShownBy(before)(failure);
  const gone = before.filter((failure) => !isShownBy(after)(failure));
  const { passes = [] } = again;
  const unstable = gone.filter((failure) => passes.some((pass) => isPassOf(failure, pass)));
  const left = gone.filter((failure) => !unstable.includes(failure));
  const passedNow = passes.filter((pass) => unstable.some((failure) => isPassOf(failure, pass)));
  return {
    ...first,
    passed: first.passed - after.filter(isNew).length,
    failed: again.failed + left.length,
    failures: [...after, ...left],
    unstable,
    faults: sumOfFaults([first.faults, ...passedNow.map((pass) => pass.faults)]),
  };
}
