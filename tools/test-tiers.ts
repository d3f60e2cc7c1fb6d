/**
 * Arguments of vitest that leave out single tests with the tag `slow`, whole files of slow tests, and the tests of the
 * routes in foreign servers.
 */
export const withoutSlowTests: readonly string[] = [
  "--tags-filter=!slow",
  "--exclude=**/*.slow.test.ts",
  "--project=!apps/server in *",
];
