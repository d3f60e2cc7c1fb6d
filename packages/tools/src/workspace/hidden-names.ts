/**
 * Names that begin with a dot belong to other programs: shells, editors, git, package managers and services read them
 * without being asked to, and keep credentials in them. No tool touches one unless it is allowed here or by name. The
 * tables name what is let through, so that one that is missing costs a refusal and never a secret.
 */

/** Read and written: no program runs anything for what stands in them. */
const harmless: readonly RegExp[] = [
  /^\.[a-z]{1,30}ignore$/,
  /^\.gitattributes$/,
  /^\.(?:git)?keep$/,
  /^\.mailmap$/,
  /^\.editorconfig$/,
  /^\.changeset$/,
  /^\.env\.(?:example|sample|template|dist)$/,
];

/** Only read: what a project says of itself, and what its tools and its server run or obey. */
const readable: readonly RegExp[] = [
  /^\.(?:github|circleci|husky|storybook)$/,
  /^\.(?:gitlab-ci|travis|pre-commit-config|readthedocs|golangci|rubocop|codecov)\.ya?ml$/,
  /^\.(?:gitmodules|browserslistrc|babelrc|swcrc|tool-versions|clang-format|clang-tidy|flake8|pylintrc|coveragerc)$/,
  /^\.(?:nvmrc|node-version|python-version|ruby-version|java-version|terraform-version)$/,
  /^\.(?:eslint|prettier|stylelint|markdownlint|commitlint|lintstaged|mocha|nyc|c8|ox(?:lint|fmt))rc(?:\.[a-z]{2,5})?$/,
];

/** What a call does with a place. */
export type PlaceUse = "read" | "write";

/** Whether one of the names is one that no tool may use in this way. */
export function hasHiddenName(names: readonly string[], use: PlaceUse): boolean {
  const lets = use === "read" ? [...harmless, ...readable] : harmless;
  return names.some((name) => isHidden(name) && !lets.some((pattern) => pattern.test(name)));
}

/** Characters that some file system does not count stand for nothing here either. */
function isHidden(name: string): boolean {
  return name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "").startsWith(".");
}

/**
 * A folder with these is a repository to git, whatever its name: a git command anywhere below obeys its `config` and runs
 * its hooks.
 */
export const repositoryMarks: { readonly head: string; readonly others: readonly string[] } = {
  head: "HEAD",
  others: ["objects", "commondir"],
};
