import { describe, expect, it } from "vitest";
import { isAgentId, isSessionId } from "../src/session-id.ts";
import { sessionRef } from "@throughline/core";

describe("sessionRef", () => {
  it("derives the agent from the key, once, at the door", () => {
    expect(sessionRef({ key: "agent:codex:main" })).toEqual({
      namespace: "",
      agentId: "codex",
      key: "agent:codex:main",
    });
    expect(sessionRef({ key: "goclaw:ops:main" }).agentId).toBe("ops");
    expect(sessionRef({ key: "primary" }).agentId).toBe("main");
    expect(sessionRef({ key: "primary", agentId: "codex", namespace: "team-1" })).toMatchObject({
      agentId: "codex",
      namespace: "team-1",
    });
  });

  it.each([
    [{ key: "agent:codex:main", agentId: "main" }, "KEY_AGENT_MISMATCH"],
    [{ key: "primary", agentId: "../x" }, "AGENT_ID_INVALID"],
    [{ key: "primary", namespace: "a/b" }, "NAMESPACE_INVALID"],
    [{ key: "" }, "KEY_INVALID"],
  ])("refuses %j with %s", (address, code) => {
    expect(() => sessionRef(address)).toThrow(expect.objectContaining({ code }));
  });
});

describe("ids that become file names", () => {
  it.each(["a", "0123456789ab", "9b83cd1e-54ce-4a39-9089-188d2669ead4", "x.y_z-1", "A".repeat(128)])(
    "takes %s as a session id [KEY-13 C04]",
    (id) => {
      expect(isSessionId(id)).toBe(true);
    },
  );

  it.each([
    "",
    ".",
    "..",
    "-a",
    ".a",
    "a/b",
    "a\\b",
    "a\u0000",
    "a b",
    "a..b",
    "a.",
    "CON",
    "nul.jsonl",
    "Com1",
    "ü",
    "A".repeat(129),
    "a\n",
  ])("refuses %j as a session id [C04]", (id) => {
    expect(isSessionId(id)).toBe(false);
  });

  it("holds agents to a narrower rule", () => {
    expect(isAgentId("main_2-b")).toBe(true);
    expect(isAgentId("a.b")).toBe(false);
    expect(isAgentId("a".repeat(65))).toBe(false);
  });
});
