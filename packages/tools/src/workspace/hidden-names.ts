/**
 * Names that begin with a dot belong to other programs: shells, editors, git, package managers and services. These
 * programs read such files automatically and keep credentials in them. No tool touches one unless a table below or an
 * option allows it. The tables list allowed names, so that a missing entry costs a refusal and never a secret.
 */

/** Tools may read and write these names: no program executes their content. */
const harmless: readonly RegExp[] = [
  /^\.[a-z]{1,30}ignore$/,
  /^\.gitattributes$/,
  /^\.(?:git)?keep$/,
  /^\.mailmap$/,
  /^\.editorconfig$/,
  /^\.changeset$/,
  /^\.env\.(?:example|sample|template|dist)$/,
];

/** Tools may only read these names. They describe a project, and its tools and its server run or obey them. */
const readable: readonly RegExp[] = [
  /^\.(?:github|circleci|husky|storybook)$/,
  /^\.(?:gitlab-ci|travis|pre-commit-config|readthedocs|golangci|rubocop|codecov)\.ya?ml$/,
  /^\.(?:gitmodules|browserslistrc|babelrc|swcrc|tool-versions|clang-format|clang-tidy|flake8|pylintrc|coveragerc)$/,
  /^\.(?:nvmrc|node-version|python-version|ruby-version|java-version|terraform-version)$/,
  /^\.(?:eslint|prettier|stylelint|markdownlint|commitlint|lintstaged|mocha|nyc|c8|ox(?:lint|fmt))rc(?:\.[a-z]{2,5})?$/,
];

export type PlaceUse = "read" | "write";

export function hasHiddenName(names: readonly string[], use: PlaceUse): boolean {
  const lets = use === "read" ? [...harmless, ...readable] : harmless;
  return names.some((name) => isHidden(name) && !lets.some((pattern) => pattern.test(name)));
}

/** Some file systems ignore these characters in names, so a name may begin with a dot after them. */
function isHidden(name: string): boolean {
  return name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "").startsWith(".");
}

/**
 * Git treats a folder with these entries as a repository, whatever its name is. A git command anywhere below obeys the
 * `config` of that folder and runs its hooks.
 */
export const repositoryMarks: { readonly head: string; readonly others: readonly string[] } = {
  head: "HEAD",
  others: ["objects", "commondir"],
};
