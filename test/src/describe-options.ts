import { hasErrorCode, type ThroughlineError } from "@throughline/core";
import { wrongOptions, type OptionKind } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";

/** Describes an exported call that checks its options with a table. */
export interface CheckedCall {
  /** States the name that messages use: `createHistory`, or `acquire` for a method. */
  readonly name: string;
  readonly table: Readonly<Record<string, OptionKind>>;
  /** Holds options that the call accepts, with all required options. @default none */
  readonly valid?: Readonly<Record<string, unknown>>;
  /** States the code of the expected error. @default "INPUT_INVALID" */
  readonly code?: "INPUT_INVALID" | "CONFIG_INVALID";
  /** Names the export that the call belongs to. @default `name` */
  readonly of?: string;
  /** Makes the call, which throws, rejects, or fails at the first step of its iteration. */
  call(options: never): unknown;
}

/**
 * Drives every option of every call wrong: a name that is nearly one, every other type, every value out of range. The rows
 * come from the tables, so that a new option is tested as soon as it has a row, and without one it does not compile. Calls
 * of functions that only sibling packages import are checked the same way. A function
 * that the package exports and that neither has a table here nor is listed in `others` fails the test.
 *
 * @param exported the exports of the package
 * @param calls the calls with an object of options
 * @param others exported functions that take no object of options
 */
export function describeOptions(
  exported: Readonly<Record<string, unknown>>,
  calls: readonly CheckedCall[],
  others: readonly string[] = [],
): void {
  describe("the options of every exported function", () => {
    it("are checked, or there are none", () => {
      const functions = Object.entries(exported).flatMap(([name, value]) =>
        typeof value === "function" ? [name] : [],
      );
      const known = new Set([...calls.map(({ name, of }) => of ?? name), ...others]);
      expect(functions.filter((name) => !known.has(name))).toEqual([]);
      expect(others.filter((name) => !functions.includes(name))).toEqual([]);
    });

    for (const { name, table, valid = {}, code = "INPUT_INVALID", call } of calls) {
      it(`${name} refuses every option of another name or type, or out of range, and names it`, async () => {
        const rows = wrongOptions(table, valid);
        expect(rows.length).toBeGreaterThanOrEqual(Object.keys(table).length);
        const problems: string[] = [];
        for (const { title, argument, options } of rows) {
          const error = await errorOf(() => call(options as never));
          const isNamed = error.code === code && error.details["argument"] === argument;
          if (!isNamed || !error.message.startsWith(`${name}(): \`${argument}\``))
            problems.push(`${title}: ${error.code} ${error.message}`);
        }
        expect(problems).toEqual([]);
      });

      it(`${name} refuses options that are not an object`, async () => {
        for (const options of [null, 7, "text", []]) {
          const error = await errorOf(() => call(options as never));
          expect([error.code, error.message]).toEqual([code, expect.stringContaining("must be an object")]);
        }
      });
    }
  });
}

/**
 * Returns the error that the work ends with, or a stand-in with the code INTERNAL when the work accepts the options.
 */
async function errorOf(work: () => unknown): Promise<Pick<ThroughlineError, "code" | "message" | "details">> {
  try {
    const result = await work();
    if (isIterable(result)) await result[Symbol.asyncIterator]().next();
  } catch (error) {
    if (hasErrorCode(error, "INPUT_INVALID", "CONFIG_INVALID")) return error;
    return { code: "INTERNAL", message: String(error), details: {} };
  }
  return { code: "INTERNAL", message: "the options were taken", details: {} };
}

function isIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

/** Describes a call that checks its options without a table. */
export interface CheckedValues {
  readonly name: string;
  /** Holds options that the call requires besides the tested option. @default none */
  readonly needed?: Readonly<Record<string, unknown>>;
  /** Maps each option to values of another type or out of range. */
  readonly wrong: Readonly<Record<string, readonly unknown[]>>;
  call(options: never): unknown;
}

/**
 * Tests calls without a table: every listed value, a misspelled name of each option, and options that are not an
 * object.
 */
export function describeWrongValues(calls: readonly CheckedValues[]): void {
  describe.each(calls)("$name()", ({ name, needed = {}, wrong, call }) => {
    it.each(Object.entries(wrong).flatMap(([option, values]) => values.map((value) => [option, value] as const)))(
      "refuses `%s`: %j",
      async (option, value) => {
        const { code, message } = await errorOf(() => call({ ...needed, [option]: value } as never));
        expect([code, message.startsWith(`${name}(): \`${option}`), message.includes("` must be ")]).toEqual([
          "INPUT_INVALID",
          true,
          true,
        ]);
      },
    );

    it.each(Object.keys(wrong))("names the option that a misspelling of `%s` means", (option) => {
      const misspelt = `${option}s`;
      const message = `${name}(): \`${misspelt}\` is not an option; did you mean`;
      expect(() => call({ ...needed, [misspelt]: 1 } as never)).toThrow(message);
    });

    it("refuses options that are not an object", async () => {
      for (const options of [5, "text", null, []])
        expect((await errorOf(() => call(options as never))).code).toBe("INPUT_INVALID");
    });
  });
}
