import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { createSessionTools } from "@throughline/session-tools";

/** Options that are no object go as they are. */
const beside = (needed: object, options: object): never =>
  (typeof options === "object" && options !== null && !Array.isArray(options)
    ? { ...needed, ...options }
    : options) as never;

type Make = (options: object) => unknown;
type Wrong = Readonly<Record<string, readonly unknown[]>>;

/** Of each option a value of another type or out of range. */
const factories: readonly (readonly [string, Make, Wrong])[] = [
  [
    "createSessionTools",
    (options) => createSessionTools(beside({ store: createMemoryStore() }, options)),
    {
      store: [{}, 5, null],
      visibility: ["everything", 1],
      spawnLimits: [5, { maxDepth: "3" }, { maxChildren: -1 }, { idleMs: -1 }],
      sendPolicy: ["deny"],
      deliver: [{}],
      patienceMs: [-1, "1s"],
      maxMessageLength: [0],
      maxHops: [-1, 1.5],
      maxHistoryBytes: [0],
      maxHistoryText: [0],
      clock: [{}],
      random: [{}],
    },
  ],
];

describe.each(factories)("%s()", (name, make, wrong) => {
  it.each(Object.entries(wrong).flatMap(([option, values]) => values.map((value) => [option, value] as const)))(
    "refuses `%s`: %j",
    (option, value) => {
      expect(() => make({ [option]: value })).toThrow(
        expect.objectContaining({
          code: "INPUT_INVALID",
          message: expect.stringMatching(new RegExp(`^${name}\\(\\): \`${option}[^\`]*\` must be `)) as string,
        }),
      );
    },
  );

  it.each(Object.keys(wrong))("names the option that a misspelling of `%s` means", (option) => {
    const misspelt = `${option}s`;
    expect(() => make({ [misspelt]: 1 })).toThrow(`${name}(): \`${misspelt}\` is not an option; did you mean`);
  });

  it("refuses options that are no object", () => {
    for (const options of [5, "text", null, []])
      expect(() => make(options as never)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});
