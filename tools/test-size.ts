import process from "node:process";

/** True under `THROUGHLINE_TEST_SIZE=long`, which `npm run test:long` sets: suites then run at their full size. */
export const isLongRun: boolean = process.env["THROUGHLINE_TEST_SIZE"] === "long";

/**
 * The size of a suite: the short one in `npm test`, the full one in `npm run test:long`.
 * @example
 * const rounds = testSize({ short: 4, long: 15 });
 */
export function testSize<const Size>({ short, long }: { readonly short: Size; readonly long: Size }): Size {
  return isLongRun ? long : short;
}
