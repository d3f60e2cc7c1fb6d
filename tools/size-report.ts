import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { findFiles, findPackages, repositoryRoot } from "./find-files.ts";

/** The size of one package. */
export interface PackageSize {
  readonly folder: string;
  readonly files: number;
  readonly lines: number;
  readonly medianLines: number;
  readonly maxLines: number;
  readonly testLines: number;
}

function lineCounts(root: string, folder: string): number[] {
  return findFiles(root, folder, [".ts", ".tsx"])
    .map((path) => readFileSync(join(root, path), "utf8").split("\n").length - 1)
    .toSorted((a, b) => a - b);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Middle of sorted values; the mean of the two middle ones for an even count, 0 for none. */
export function median(sorted: readonly number[]): number {
  const middle = sorted.length / 2;
  const high = sorted[Math.floor(middle)] ?? 0;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? 0) + high) / 2 : high;
}

/** Measures every package below `root`. */
export function measurePackages(root: string): PackageSize[] {
  return findPackages(root).map((folder) => {
    const lines = lineCounts(root, `${folder}/src`);
    return {
      folder,
      files: lines.length,
      lines: sum(lines),
      medianLines: median(lines),
      maxLines: lines.at(-1) ?? 0,
      testLines: sum(lineCounts(root, `${folder}/test`)),
    };
  });
}

/** The measurements as a Markdown table. */
export function sizeTable(sizes: readonly PackageSize[]): string {
  const rows = sizes.map(
    ({ folder, files, lines, medianLines, maxLines, testLines }) =>
      `| ${folder} | ${files} | ${lines} | ${medianLines} | ${maxLines} | ${testLines} |`,
  );
  return [
    "| package | files | lines | median | max | test lines |",
    "| --- | --: | --: | --: | --: | --: |",
    ...rows,
  ].join("\n");
}

if (import.meta.main) process.stdout.write(`${sizeTable(measurePackages(repositoryRoot))}\n`);
