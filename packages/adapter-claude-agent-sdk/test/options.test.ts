import { describe, expect, it } from "vitest";
import { createMemoryStore } from "@throughline/store-memory";
import { createSdkConversation } from "@throughline/adapter-claude-agent-sdk";
import { sessionRef } from "@throughline/core";

/** Options that are no object go as they are. */
const beside = (needed: object, options: object): never =>
  (typeof options === "object" && options !== null && !Array.isArray(options)
    ? { ...needed, ...options }
    : options) as never;

const needed = { store: createMemoryStore(), ref: sessionRef({ key: "agent:main:main" }) };

type Make = (options: object) => unknown;
type Wrong = Readonly<Record<string, readonly unknown[]>>;

/** Of each option a value of another type or out of range. */
const factories: readonly (readonly [string, Make, Wrong])[] = [
  [
    "createSdkConversation",
    (options) => createSdkConversation(beside(needed, options)),
    {
      store: [{}, 5],
      ref: ["agent:main:main", null],
      query: [{}],
      queryOptions: [5],
      historyCharacters: [-1],
      leaseMs: [0],
      owner: [""],
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

describe("send()", () => {
  it.each([
    [5, {}],
    ["", {}],
    ["Hi", { signal: 5 }],
    ["Hi", { onMessages: () => undefined }],
  ])("refuses %j with %j, and stores nothing", async (prompt, options) => {
    const conversation = createSdkConversation({ ...needed, query: () => expect.unreachable() });
    await expect(conversation.send(prompt as never, options as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
    expect(await needed.store.load(needed.ref)).toBeNull();
  });
});
