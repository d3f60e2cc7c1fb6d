import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { findFiles, findPackages, repositoryRoot } from "./find-files.ts";
import {
  commentLines,
  parseSource,
  proseOfMarkdown,
  proseOfSource,
  sentencesOf,
  wordCount,
  type ProsePiece,
} from "./prose.ts";
import {
  allowedWords,
  dialect,
  hangingWords,
  mostCellCharacters,
  mostSentenceWords,
  vagueSubjects,
} from "./word-rules.ts";

/** What the check found in all texts. */
export interface WordsReport {
  readonly files: number;
  readonly patterns: number;
  readonly longSentences: number;
  readonly longCells: number;
  /** Counts the lines of comments that start with a hanging word or name no subject. */
  readonly fragments: number;
  readonly violations: readonly string[];
}

/** Written by tools, quoted from other texts, or, as a changeset, a record that is not rewritten. */
const notChecked: readonly RegExp[] = [/^docs\/api\//, /\/fixtures\//, /^\.changeset\//];

function isChecked(path: string): boolean {
  return !notChecked.some((pattern) => pattern.test(path));
}

function problemsOf(piece: ProsePiece, path: string): readonly { readonly kind: string; readonly text: string }[] {
  const problems = dialect
    .filter(({ pattern }) => pattern.test(piece.text))
    .map(({ pattern, write }) => ({
      kind: "pattern",
      text: `"${pattern.exec(piece.text)?.[0] ?? ""}": write ${write}`,
    }));
  const long = sentencesOf(piece.text)
    .filter((sentence) => wordCount(sentence) > mostSentenceWords)
    .map((sentence) => ({
      kind: "sentence",
      text: `${wordCount(sentence)} words, at most ${mostSentenceWords}: ${sentence.slice(0, 70)}…`,
    }));
  const cell =
    piece.kind === "cell" && piece.text.length > mostCellCharacters
      ? [
          {
            kind: "cell",
            text: `a cell of ${piece.text.length} characters, at most ${mostCellCharacters}: ${piece.text.slice(0, 60)}…`,
          },
        ]
      : [];
  return [...problems, ...long, ...cell].filter(
    ({ kind }) => !allowedWords.some((allowed) => allowed.path === path && allowed.kind === kind),
  );
}

/** Checks every text that a person reads below `root`: pages, messages and docstrings. */
export function checkWords(root: string): WordsReport {
  const pages = findFiles(root, ".", [".md"]).filter(isChecked);
  const sources = findPackages(root)
    .flatMap((folder) => findFiles(root, `${folder}/src`, [".ts", ".tsx"]))
    .filter(isChecked);
  const violations: string[] = [];
  const counts = { pattern: 0, sentence: 0, cell: 0, fragment: 0 };
  const check = (path: string, pieces: readonly ProsePiece[]): void => {
    for (const piece of pieces)
      for (const { kind, text } of problemsOf(piece, path)) {
        counts[kind as keyof typeof counts] += 1;
        violations.push(`${path}:${piece.line} ${text}`);
      }
  };
  for (const path of pages) check(path, proseOfMarkdown(readFileSync(join(root, path), "utf8")));
  for (const path of sources) {
    const source = parseSource(path, readFileSync(join(root, path), "utf8"));
    check(path, proseOfSource(source));
    for (const comment of commentLines(source))
      if (hangingWords.test(comment.text) || vagueSubjects.test(comment.text)) {
        counts.fragment += 1;
        violations.push(`${path}:${comment.line} a comment needs a subject and a verb: ${comment.text.slice(0, 70)}`);
      }
  }
  return {
    files: pages.length + sources.length,
    patterns: counts.pattern,
    longSentences: counts.sentence,
    longCells: counts.cell,
    fragments: counts.fragment,
    violations,
  };
}

if (import.meta.main) {
  // Paths as arguments limit what is printed; the counts are those of all files.
  const wanted = process.argv.slice(2);
  const report = checkWords(repositoryRoot);
  for (const violation of report.violations)
    if (wanted.length === 0 || wanted.some((path) => violation.startsWith(path)))
      process.stdout.write(`${violation}\n`);
  const { files, patterns, longSentences, longCells, fragments } = report;
  process.stdout.write(
    `words: ${files} files, ${patterns} patterns, ${longSentences} long sentences, ${longCells} long cells, ${fragments} fragments in comments\n`,
  );
  process.exitCode = report.violations.length === 0 ? 0 : 1;
}
