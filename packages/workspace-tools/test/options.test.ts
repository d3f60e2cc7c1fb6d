import { describe, expect, it } from "vitest";
import { createMemorySearchTool, createWorkspaceTools } from "@throughline/workspace-tools";

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
    "createWorkspaceTools",
    (options) => createWorkspaceTools(beside({ root: "." }, options)),
    {
      root: ["", 5, null],
      readOnly: ["yes", 1],
      deny: ["secrets", [5], [""]],
      denyFiles: [{}, [null]],
      allow: [".git", [5]],
      writable: ["memory", [5]],
      maxReadBytes: [0, "1", 1.5],
      maxWriteBytes: [-1],
      maxListEntries: [0],
      maxListDepth: [0, "2"],
      random: [{}, 5],
    },
  ],
  [
    "createMemorySearchTool",
    (options) => createMemorySearchTool(beside({ root: "." }, options)),
    {
      root: ["", 5],
      places: ["memory", [5]],
      deny: ["x"],
      denyFiles: ["x"],
      allow: ["x"],
      store: [{}, 5],
      sessions: ["all", true],
      scorer: [{}],
      fileLimits: [5, { files: -1 }],
      transcriptLimits: [5, { records: "all" }],
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
