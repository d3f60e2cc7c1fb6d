import { createStore, type StoreBackend } from "@throughline/store-kit";
import { describe, expect, it } from "vitest";

const backend: StoreBackend = {
  find: () => null,
  records: () => [],
  seqsOf: () => [],
  sessionFields: () => [],
  namespaceFields: () => [],
  list: () => [],
  commit: () => true,
};
const declared = { name: "mine", durabilities: ["disk"], persistent: true, writers: "many-hosts" } as const;

describe("createStore", () => {
  it("takes what it documents, and undefined for what may be left out", () => {
    const store = createStore(backend, { ...declared, limits: undefined, codec: undefined, facets: undefined });
    expect(store.capabilities).toMatchObject(declared);
  });

  it.each([
    [{ name: "mine" }, "durabilities"],
    [{ ...declared, durabilities: ["flushed"] }, "durabilities"],
    [{ ...declared, writers: "all" }, "writers"],
    [{ ...declared, durable: true }, "durable"],
    [undefined, "options"],
  ])("refuses %j by the name of the option", (options, name) => {
    const expected = { code: "INPUT_INVALID", message: expect.stringContaining(name) };
    expect(() => createStore(backend, options as never)).toThrow(expect.objectContaining(expected));
  });
});
