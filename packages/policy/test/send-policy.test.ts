import { hasErrorCode } from "@throughline/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareSendPolicyModes, dependsOnMode, resolveSendPolicy } from "../src/resolve-send-policy.ts";
import { readSendPolicy } from "../src/send-policy.ts";

/** The block of the fifth source document, as it stands there. */
const documented = {
  default: "allow",
  rules: [
    { match: { channel: "discord", chatType: "group" }, action: "deny" },
    { match: { keyPrefix: "agent:main:slack" }, action: "allow" },
  ],
};

const group = "agent:main:discord:group:123";

describe("resolving a send policy", () => {
  it("takes the session's own setting before every rule", () => {
    const policy = readSendPolicy(documented);
    expect(resolveSendPolicy({ key: group, policy, entry: { sessionId: "s", sendPolicy: "allow" } })).toMatchObject({
      action: "allow",
      source: "session",
      ruleIndex: null,
    });
    const deny = { sessionId: "s", sendPolicy: "deny" } as const;
    expect(resolveSendPolicy({ key: "agent:main:main", policy, entry: deny }).action).toBe("deny");
    expect(resolveSendPolicy({ key: "agent:main:main", policy: null, entry: deny }).action).toBe("deny");
  });

  it("denies when the session's own setting cannot be understood", () => {
    const entry = { sessionId: "s", sendPolicy: "DENY" } as never;
    expect(resolveSendPolicy({ key: group, policy: null, entry }).action).toBe("deny");
  });

  it("goes through the rules in order and falls back to the default, then to allow", () => {
    const rules = [
      { match: { channel: "discord" }, action: "allow" },
      { match: { chatType: "group" }, action: "deny" },
    ];
    const policy = readSendPolicy({ default: "deny", rules });
    expect(resolveSendPolicy({ key: group, policy })).toMatchObject({ action: "allow", source: "rule", ruleIndex: 0 });
    const slack = resolveSendPolicy({ key: "agent:main:slack:group:9", policy });
    expect(slack).toMatchObject({ action: "deny", source: "rule", ruleIndex: 1 });
    expect(resolveSendPolicy({ key: "agent:main:slack:dm:9", policy })).toMatchObject({
      action: "deny",
      source: "default",
    });
    const open = readSendPolicy({ rules: [] });
    expect(resolveSendPolicy({ key: group, policy: open })).toMatchObject({ action: "allow", source: "default" });
    expect(resolveSendPolicy({ key: group, policy: null })).toMatchObject({ action: "allow", source: "unset" });
  });

  it("lets any matching deny win under deny-overrides, and shows where the two readings differ [C41]", () => {
    const rules = [
      { match: { channel: "discord" }, action: "allow" },
      { match: { chatType: "group" }, action: "deny" },
    ];
    const policy = readSendPolicy({ rules }, "deny-overrides");
    expect(resolveSendPolicy({ key: group, policy })).toMatchObject({ action: "deny", ruleIndex: 1 });
    const both = compareSendPolicyModes({ key: group, policy });
    expect([both.firstMatch.action, both.denyOverrides.action, both.differ]).toEqual(["allow", "deny", true]);
    expect(compareSendPolicyModes({ key: "agent:main:discord:direct:1", policy }).differ).toBe(false);
    expect(dependsOnMode(policy)).toBe(true);
    expect(dependsOnMode(readSendPolicy(documented))).toBe(false);
  });

  it("finds the channel in the question, the entry or the key, whatever its case", () => {
    const policy = readSendPolicy({ rules: [{ match: { channel: "Telegram" }, action: "deny" }] });
    const sessionId = "s";
    const opaque = "agent:main:whatever";
    expect(resolveSendPolicy({ key: "agent:main:TELEGRAM:direct:7", policy }).action).toBe("deny");
    expect(resolveSendPolicy({ key: "main:telegram:7", policy }).action).toBe("deny");
    expect(resolveSendPolicy({ key: opaque, policy, entry: { sessionId, lastChannel: "telegram" } }).action).toBe(
      "deny",
    );
    expect(resolveSendPolicy({ key: opaque, policy, channel: "teleGRAM" }).action).toBe("deny");
    // What the caller knows of this message comes before what was kept of the last.
    const entry = { sessionId, channel: "telegram" };
    expect(resolveSendPolicy({ key: opaque, policy, channel: "slack", entry }).action).toBe("allow");
    expect(resolveSendPolicy({ key: opaque, policy }).action).toBe("allow");
  });

  it("takes dm and direct as one kind of chat, in rules, entries and keys [C02]", () => {
    for (const spelled of ["dm", "direct", "DM"]) {
      const policy = readSendPolicy({ rules: [{ match: { chatType: spelled }, action: "deny" }] });
      expect(resolveSendPolicy({ key: "agent:main:discord:dm:u", policy }).action).toBe("deny");
      expect(resolveSendPolicy({ key: "agent:main:discord:direct:u", policy }).action).toBe("deny");
      expect(resolveSendPolicy({ key: "agent:main:x", policy, entry: { sessionId: "s", chatType: "dm" } }).action).toBe(
        "deny",
      );
      expect(resolveSendPolicy({ key: group, policy }).action).toBe("allow");
    }
  });

  it("matches key prefixes on the whole key and without its agent, case folded on both sides", () => {
    const under = (match: Record<string, string>, key: string): string =>
      resolveSendPolicy({ key, policy: readSendPolicy({ rules: [{ match, action: "deny" }] }) }).action;
    expect(under({ keyPrefix: "AGENT:main:Slack" }, "agent:main:SLACK:channel:C1")).toBe("deny");
    expect(under({ keyPrefix: "slack:" }, "agent:main:slack:channel:C1")).toBe("deny");
    expect(under({ rawKeyPrefix: "slack:" }, "agent:main:slack:channel:C1")).toBe("allow");
    expect(under({ rawKeyPrefix: "agent:main:slack" }, "agent:main:slack:channel:C1")).toBe("deny");
    expect(under({ keyPrefix: "agent:main:discord:direct:" }, "agent:main:discord:dm:u")).toBe("deny");
  });

  it("asks for every field of a match, and an empty match fits everything", () => {
    const policy = readSendPolicy(documented);
    expect(resolveSendPolicy({ key: group, policy }).action).toBe("deny");
    expect(resolveSendPolicy({ key: "agent:main:discord:direct:1", policy }).source).toBe("default");
    expect(resolveSendPolicy({ key: "agent:main:telegram:group:1", policy }).source).toBe("default");
    const shut = readSendPolicy({ rules: [{ match: {}, action: "deny" }] });
    expect(resolveSendPolicy({ key: "anything", policy: shut }).action).toBe("deny");
  });

  // The document's four uses.
  it.each([
    ["a muted channel", [{ match: { channel: "discord" }, action: "deny" }], undefined, ["deny", "deny", "allow"]],
    ["read-only groups", [{ match: { chatType: "group" }, action: "deny" }], undefined, ["deny", "allow", "allow"]],
    ["direct messages only", [{ match: { chatType: "dm" }, action: "allow" }], "deny", ["deny", "allow", "allow"]],
    ["one conversation", [{ match: { keyPrefix: group }, action: "deny" }], undefined, ["deny", "allow", "allow"]],
  ])("serves %s", (_name, rules, fallback, expected) => {
    const policy = readSendPolicy({ rules, ...(fallback === undefined ? {} : { default: fallback }) });
    const keys = [group, "agent:main:discord:dm:u", "agent:main:slack:direct:u"];
    expect(keys.map((key) => resolveSendPolicy({ key, policy }).action)).toEqual(expected);
  });
});

describe("reading a send policy", () => {
  it("refuses a chat type that no session has, and names those there are", () => {
    const read = (chatType: string) => () => readSendPolicy({ rules: [{ match: { chatType }, action: "deny" }] });
    for (const chatType of ["grupo", "thread", "groups"])
      expect(read(chatType)).toThrow(
        expect.objectContaining({
          code: "CONFIG_INVALID",
          message: `sendPolicy.rules[0].match.chatType is "${chatType}": one of direct, dm, group, channel.`,
        }),
      );
    for (const chatType of ["direct", "DM", "Group", "channel"]) expect(read(chatType)).not.toThrow();
  });

  it("names every field that is wrong, with its value and what may stand there", () => {
    const rules = [{ match: { chanel: "x", chatType: "" }, action: "maybe" }, 7];
    const failure = catchError(() => readSendPolicy({ default: "no", rules, extra: 1 }));
    expect(hasErrorCode(failure, "CONFIG_INVALID")).toBe(true);
    for (const part of ["extra", 'default is "no"', "chanel", "chatType", "rules[0].action", "rules[1] is 7"]) {
      expect(String(failure)).toContain(part);
    }
  });

  it("never throws anything but a typed error, whatever it is given", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const failure = catchError(() => readSendPolicy(value));
        return failure === null || hasErrorCode(failure, "CONFIG_INVALID");
      }),
    );
  });
});

function catchError(act: () => unknown): unknown {
  try {
    act();
    return null;
  } catch (error) {
    return error;
  }
}
