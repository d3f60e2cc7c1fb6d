import { describe, expect, it } from "vitest";
import { createXorCodec } from "../../store-conformance/src/xor-codec.ts";
import { createVectorCoder, type VectorPlace } from "../src/vector-coder.ts";

const place: VectorPlace = { namespace: "", agentId: "main", model: "small", sessionId: "s1" };
const vector = {
  firstSeq: 3,
  lastSeq: 5,
  part: 0,
  scale: 0.25,
  values: Int8Array.from([1, -2, 127, -128]),
  code: Uint8Array.from([0b0101]),
};

describe("the vectors of a store with a codec", () => {
  const coder = createVectorCoder(createXorCodec());
  if (coder === null) throw new Error("A store with a codec has a coder.");
  const sealed = coder.seal(vector, place);
  const kept = { ...sealed, number: 1, owner: 1 };

  it("are kept without their numbers, scale and code, and decode to what they were", () => {
    expect({ ...sealed, values: 0, code: 0 }).toEqual({ ...vector, scale: 0, values: 0, code: 0 });
    expect(Buffer.from(sealed.values.buffer).includes(Buffer.from(vector.values.buffer))).toBe(false);
    expect(sealed.code).not.toEqual(vector.code);
    expect(coder.code(sealed.code, place)).toEqual(vector.code);
    expect(coder.numbers(kept, place)).toMatchObject({ ...vector, code: sealed.code });
  });

  it.each<[string, Partial<VectorPlace>]>([
    ["session", { sessionId: "s2" }],
    ["model", { model: "large" }],
    ["agent", { agentId: "other" }],
    ["namespace", { namespace: "tenant" }],
  ])("do not decode in another %s", (_, other) => {
    const elsewhere = { ...place, ...other };
    expect([coder.code(sealed.code, elsewhere), coder.numbers(kept, elsewhere)]).toEqual(["lost", "lost"]);
  });

  it("have no numbers for other records", () => {
    expect(coder.numbers({ ...kept, lastSeq: 6 }, place)).toBe("lost");
    expect(coder.numbers({ ...kept, part: 1 }, place)).toBe("lost");
  });
});

it("keeps the vectors of a store without a codec as they are", () => {
  expect(createVectorCoder(undefined)).toBeNull();
});
