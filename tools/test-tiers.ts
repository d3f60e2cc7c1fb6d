/** Arguments of vitest that leave out single tests with the tag `slow` and whole files of slow tests. */
export const withoutSlowTests: readonly string[] = ["--tags-filter=!slow", "--exclude=**/*.slow.test.ts"];
