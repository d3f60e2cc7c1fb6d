import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { bundleCli } from "./bundle-cli.ts";
import { repositoryRoot } from "./find-files.ts";

/** One part: its name, where it comes from, and its terms as they lie beside it. */
interface Notice {
  readonly name: string;
  readonly license: string;
  readonly text: string;
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
}

/** @throws {Error} for a package that does not name its terms: nobody could keep to them */
function noticeOf(folder: string): Notice {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(?:[.-]|$)/i.test(entry));
  const text =
    file === undefined
      ? `Released under the terms named ${license ?? ""}; the package has no file with them.`
      : readFileSync(join(folder, file), "utf8");
  if (license === undefined) throw new Error(`${name} does not say under which terms it may be used`);
  return { name: `${name} ${version}`, license, text: text.replaceAll("\r\n", "\n").trim() };
}

// Who holds the rights, with a year or a sign: what differs between packages under the same terms.
const holderPattern = /^\s*(?:Copyright(?: \(c\)| ©| \d| \[| \(C\))|\(c\) |© )/;
// Names the terms, which the heading does already.
const titlePattern = /^\s*\(?(?:The )?MIT License(?: \(MIT\))?\)?:?\s*$/i;

/** The lines that name holders of rights, and the rest, which many packages share word by word. */
function partsOf({ text }: Notice): { readonly holders: readonly string[]; readonly terms: string } {
  const lines = text.split("\n").filter((line) => !titlePattern.test(line));
  const holders = lines.filter((line) => holderPattern.test(line)).map((line) => line.trim());
  const terms = lines.filter((line) => !holderPattern.test(line)).join("\n");
  return { holders, terms: terms.replaceAll(/\n{3,}/g, "\n\n").trim() };
}

/** Prints terms that several packages share once, behind the packages and the holders of their rights. */
function pageOf(about: string, notices: readonly Notice[]): string {
  const parts = notices.map((notice) => ({ ...notice, ...partsOf(notice) }));
  const groups = Map.groupBy(parts, ({ license, terms }) => `${license} ${terms.replaceAll(/\s+/g, " ")}`);
  const sections = [...groups.values()].map((members) => {
    const names = members.map(({ name, holders }) => `- ${[`\`${name}\``, ...holders].join(", ")}`).join("\n");
    return `## ${members[0]?.license}\n\n${names}\n\n\`\`\`text\n${members[0]?.terms}\n\`\`\`\n`;
  });
  return `# Parts made by others\n\n${about} Written by \`tools/third-party.ts\`.\n\n${sections.join("\n")}`;
}

const tokenNotices =
  "The prices of this package are those of `@pydantic/genai-prices`. " +
  "The vocabularies of this package were made from those of `ai-tokenizer`. It has them from Anthropic " +
  "(`@anthropic-ai/tokenizer`, copyright 2023 Anthropic, PBC) and OpenAI (`tiktoken`, copyright 2022 OpenAI, Shantanu Jain), " +
  "which both gave them under the terms of the MIT License.";

/** The pages, by their path in the repository. `bundled` are the folders of the packages in the command line. */
export function noticePages(bundled: readonly string[]): Readonly<Record<string, string>> {
  const sources = ["@pydantic/genai-prices", "ai-tokenizer"].map((name) =>
    noticeOf(join(repositoryRoot, "packages/tokens/node_modules", name)),
  );
  const notices = [...new Map(bundled.map(noticeOf).map((notice) => [notice.name, notice])).values()];
  const sorted = [...notices, ...sources].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return {
    "apps/cli/THIRD_PARTY.md": pageOf(
      "The command line is one bundle, and its page is another. They have code of these packages in them.",
      sorted,
    ),
    "packages/tokens/THIRD_PARTY.md": pageOf(tokenNotices, sources),
  };
}

if (import.meta.main) {
  const folder = mkdtempSync(join(tmpdir(), "throughline-notices-"));
  const pages = noticePages(await bundleCli(join(repositoryRoot, "apps/cli"), folder));
  rmSync(folder, { recursive: true });
  const differing = Object.entries(pages).filter(([path, text]) => {
    const full = join(repositoryRoot, path);
    if (process.argv.includes("--write")) writeFileSync(full, text);
    return readdirSync(dirname(full)).includes("THIRD_PARTY.md") ? readFileSync(full, "utf8") !== text : true;
  });
  for (const [path] of differing)
    process.stdout.write(`${path}:1 is not what the bundle has; run tools/third-party.ts --write\n`);
  process.stdout.write(`notices: ${differing.length === 0 ? "as the bundle has them" : "out of date"}\n`);
  process.exitCode = differing.length === 0 ? 0 : 1;
}
