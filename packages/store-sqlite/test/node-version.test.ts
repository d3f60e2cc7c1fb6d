import process from "node:process";
import { describe, expect, it } from "vitest";
import { assertNodeVersion, defaultDriver } from "../src/connection.ts";

describe("the version of Node", () => {
  it.each(["20.20.2", "18.0.0", "4.9.1"])("%s is refused before the library is loaded into it", (version) => {
    expect(() => assertNodeVersion(version)).toThrow(
      expect.objectContaining({ code: "STORE_UNSUPPORTED", message: expect.stringContaining(version) }),
    );
  });

  it.each(["22.18.0", "24.21.0", "100.0.0", process.versions.node])("%s is accepted", (version) => {
    expect(() => assertNodeVersion(version)).not.toThrow();
  });

  it("is checked by the driver that a store has by default", () => {
    const { node } = process.versions;
    Object.defineProperty(process.versions, "node", { value: "20.20.2", configurable: true });
    try {
      expect(() => defaultDriver(":memory:", {})).toThrow(expect.objectContaining({ code: "STORE_UNSUPPORTED" }));
    } finally {
      Object.defineProperty(process.versions, "node", { value: node, configurable: true });
    }
  });
});
