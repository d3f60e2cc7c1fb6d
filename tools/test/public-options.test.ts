import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../find-files.ts";
import { readPublicExports } from "../public-exports.ts";
import { publicMethodOptions, publicOptionParameters, type OptionParameter } from "../public-options.ts";

/** What has optional properties and is no object of options, and why nothing refuses a property that it does not have. */
const data: Readonly<Record<string, string>> = {
  SessionStore: "a store of another program may have more facets",
  SessionRef: "names a session; every store checks it",
  SessionRecord: "a record keeps the fields that other programs wrote",
  ReplyDraft: "a draft of a record keeps further fields",
  EstimatedRequest: "a request of any provider, of which system, tools and messages are counted",
  CallFacts: "facts of a call, which its record keeps",
  CallPrefix: "the parts of a request that a program kept, of which the hashes are compared",
  Calibration: "is read from an entry; readCalibration checks it",
};

/** Functions whose objects are not checked, and why. */
const unchecked: Readonly<Record<string, string>> = {
  "assistantMessage 1": "the fields of a message, which may be of any program",
  "toolResult 0": "the call as the model wrote it",
  "toolResult 2": "the fields of a message, which may be of any program",
  "createProviderSimulator 0": "loads no other package: the check of the documents runs it from its source alone",
};

const parameters = await publicOptionParameters();
const withOptions = parameters.filter(
  ({ entryPoint, functionName, index, typeName }) =>
    // A store checks the options of its methods before it asks these parts of it.
    entryPoint !== "@throughline/store-kit" &&
    data[typeName] === undefined &&
    unchecked[`${functionName} ${index}`] === undefined,
);

/** Records, addresses, and what describes a model are data: a field of theirs is there or not. */
const isData = (path: string): boolean => /core.src.(?:record|session-ref|ports)\.ts$/.test(path);

/** A name that is nearly one of the options. */
function misspelt(names: readonly string[]): { readonly wrong: string; readonly meant: string } {
  const meant = names.toSorted((one, other) => other.length - one.length)[0] ?? "";
  return { wrong: `${meant.slice(0, 1)}${meant.slice(0, 1)}${meant.slice(1)}`, meant };
}

/** What a call with a misspelt option gives: an error, or the text that it took the option. */
async function callMisspelt({ call, index }: OptionParameter, wrong: string): Promise<unknown> {
  try {
    const args: unknown[] = Array.from({ length: index }, () => undefined);
    const result = await call(...args, { [wrong]: 1 });
    if (typeof result === "object" && result !== null && Symbol.asyncIterator in result)
      await (result as AsyncIterable<unknown>)[Symbol.asyncIterator]().next();
  } catch (error) {
    return error;
  }
  return "it took the option";
}

describe("every exported function that takes options", () => {
  it("is found", () => {
    expect(withOptions.length).toBeGreaterThan(80);
    const names = new Set(parameters.flatMap((one) => [one.typeName, `${one.functionName} ${one.index}`]));
    expect([...Object.keys(data), ...Object.keys(unchecked)].filter((name) => !names.has(name))).toEqual([]);
  });

  it.each(withOptions.map((one) => [`${one.entryPoint} ${one.functionName}: ${one.typeName}`, one] as const))(
    "%s refuses a misspelt one and names the nearest",
    async (_, parameter) => {
      const { wrong, meant } = misspelt(parameter.properties.map(({ name }) => name));
      const error = await callMisspelt(parameter, wrong);
      expect(error).toMatchObject({
        code: expect.stringMatching(/^(?:INPUT|CONFIG)_INVALID$/) as string,
        message: expect.stringContaining(`\`${wrong}\` is not an option; did you mean \`${meant}\`?`) as string,
        outcome: "not-applied",
      });
    },
  );
});

describe("every optional option", () => {
  const methods = publicMethodOptions(new Set(readPublicExports(repositoryRoot).map(({ name }) => name)));
  const optional = [...withOptions.flatMap(({ properties }) => properties), ...methods].filter(
    ({ isOptional, path }) => isOptional && !isData(path),
  );

  it("is found, of functions and of methods", () => {
    expect(optional.length).toBeGreaterThan(600);
    expect(methods.filter(({ path }) => path.endsWith("session/src/turn.ts")).length).toBeGreaterThan(10);
  });

  it("also takes undefined, for programs with exactOptionalPropertyTypes", () => {
    const without = optional.filter(({ takesUndefined }) => !takesUndefined);
    expect(without.map(({ path, name }) => `${path.slice(repositoryRoot.length)} ${name}`)).toEqual([]);
  });
});
