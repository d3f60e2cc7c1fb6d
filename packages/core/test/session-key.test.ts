import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatSessionKey, sessionKeyAliases, sessionKeyHasPrefix } from "../src/session-key.ts";
import { labelSessionKey, mainSessionKey, sessionKeySlug, subagentSessionKey } from "../src/build-session-key.ts";
import { parseSessionKey, peerSessionKey, ThroughlineError } from "@throughline/core";

describe("parseSessionKey", () => {
  it("reads the three-segment short form", () => {
    expect(parseSessionKey("main:cli:user")).toEqual({
      form: "short",
      agentId: "main",
      channel: "cli",
      peerId: "user",
    });
    expect(parseSessionKey("main:telegram:user:42")).toMatchObject({ form: "short", peerId: "user:42" });
  });

  it("never takes the word agent for a short form's agent [KEY-01 C01]", () => {
    expect(parseSessionKey("agent:cli:user")).toEqual({
      form: "agent",
      agentId: "cli",
      rest: { kind: "main", mainKey: "user" },
      suffix: null,
    });
    expect(() => parseSessionKey("agent:cli")).toThrow(ThroughlineError);
  });

  it("keeps agents, channels and peers apart [KEY-02 KEY-03 KEY-04]", () => {
    const keys = ["main:cli:user", "codex:cli:user", "main:discord:user", "main:cli:other"];
    const parsed = keys.map((key) => JSON.stringify(parseSessionKey(key)));
    expect(new Set(parsed).size).toBe(keys.length);
  });

  it.each([
    ["agent:main:discord:direct:user123", null, "direct"],
    ["agent:main:discord:group:123", null, "group"],
    ["agent:main:slack:channel:C1", null, "channel"],
    ["agent:main:slack:work:direct:U1", "work", "direct"],
  ] as const)("reads the long form %s [KEY-05 KEY-09]", (key, accountId, peerKind) => {
    const parsed = parseSessionKey(key);
    expect(parsed).toMatchObject({
      form: "agent",
      agentId: "main",
      rest: { kind: "peer", accountId, peerKind },
      suffix: null,
    });
  });

  it("lets peers hold colons and takes a thread as a suffix", () => {
    expect(parseSessionKey("agent:main:matrix:group:!room:example.org:thread:t1")).toMatchObject({
      rest: { kind: "peer", channel: "matrix", peerId: "!room:example.org" },
      suffix: { kind: "thread", id: "t1" },
    });
    expect(parseSessionKey("agent:main:telegram:group:-100:topic:7")).toMatchObject({
      suffix: { kind: "topic", id: "7" },
    });
  });

  it("knows the main session", () => {
    expect(parseSessionKey("agent:main:main")).toMatchObject({
      agentId: "main",
      rest: { kind: "main", mainKey: "main" },
    });
    expect(mainSessionKey()).toBe("agent:main:main");
  });

  it("keeps another runtime's prefix and finds the agent behind it [KEY-07 C01]", () => {
    expect(parseSessionKey("goclaw:main:main")).toEqual({
      form: "runtime",
      runtime: "goclaw",
      agentId: "main",
      text: "main",
    });
  });

  it("reads dm as direct and writes it back as it stood [KEY-08 C02]", () => {
    const key = "agent:main:discord:dm:user123";
    const parsed = parseSessionKey(key);
    expect(parsed).toMatchObject({
      rest: { channel: "discord", peerKind: "direct", peerKindText: "dm", peerId: "user123" },
    });
    expect(formatSessionKey(parsed)).toBe(key);
    expect(sessionKeyAliases(key)).toEqual([key, "agent:main:discord:direct:user123"]);
    expect(sessionKeyAliases("agent:main:discord:direct:u")).toEqual([
      "agent:main:discord:direct:u",
      "agent:main:discord:dm:u",
    ]);
  });

  it("reads a subagent key", () => {
    expect(parseSessionKey("agent:main:subagent:worker1:task123")).toMatchObject({
      agentId: "main",
      rest: { kind: "subagent", path: "worker1:task123" },
    });
    expect(subagentSessionKey("main", "worker1:task123")).toBe("agent:main:subagent:worker1:task123");
  });

  it.each(["primary", "global", "unknown", "cron:job-1", "hook:abc", "a::b", ":", "a:b"])("leaves %s opaque", (key) => {
    expect(parseSessionKey(key)).toEqual({ form: "opaque", agentId: null, text: key });
  });

  it.each([
    "",
    " main:cli:user",
    "a\nb",
    "a\u0000b",
    "\ud800",
    "x".repeat(513),
    "agent:..:main",
    "agent:a b:main",
    "a\u202eb",
  ])("refuses %j with KEY_INVALID", (key) => {
    expect(() => parseSessionKey(key)).toThrow(
      expect.objectContaining({ code: "KEY_INVALID", outcome: "not-applied" }),
    );
  });

  it("gives back every key it takes, character by character [C01]", () => {
    const word = fc.constantFrom(
      "agent",
      "main",
      "direct",
      "dm",
      "group",
      "channel",
      "thread",
      "topic",
      "subagent",
      "cron",
      "goclaw",
      "",
      "a",
      "Ü",
      "7",
    );
    const text = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.array(word, { maxLength: 9 }).map((words) => words.join(":")),
    );
    fc.assert(
      fc.property(text, (key) => {
        let parsed;
        try {
          parsed = parseSessionKey(key);
        } catch (error) {
          expect(ThroughlineError.isInstance(error) && error.code).toBe("KEY_INVALID");
          return;
        }
        expect(formatSessionKey(parsed)).toBe(key);
        expect(parseSessionKey(formatSessionKey(parsed))).toEqual(parsed);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("building keys", () => {
  it("folds direct messages as far as asked, and nothing else [KEY-03 KEY-05]", () => {
    const peer = { agentId: "main", channel: "discord", peerKind: "direct", peerId: "u1" } as const;
    expect(peerSessionKey(peer)).toBe("agent:main:discord:direct:u1");
    expect(peerSessionKey({ ...peer, dmScope: "main" })).toBe("agent:main:main");
    expect(peerSessionKey({ ...peer, dmScope: "per-peer" })).toBe("agent:main:direct:u1");
    expect(peerSessionKey({ ...peer, dmScope: "per-account-channel-peer", accountId: "work" })).toBe(
      "agent:main:discord:work:direct:u1",
    );
    expect(peerSessionKey({ ...peer, peerKind: "group", dmScope: "main" })).toBe("agent:main:discord:group:u1");
    expect(peerSessionKey({ ...peer, suffix: { kind: "thread", id: "t" } })).toBe(
      "agent:main:discord:direct:u1:thread:t",
    );
  });

  it("parses what it builds", () => {
    const part = fc.stringMatching(/^[a-z0-9!@._-]{1,12}$/);
    fc.assert(
      fc.property(part, part, fc.constantFrom("direct", "group", "channel"), (channel, peerId, peerKind) => {
        fc.pre(!["agent", "subagent", "cron", "direct", "dm", "group", "channel"].includes(channel));
        const parsed = parseSessionKey(peerSessionKey({ agentId: "main", channel, peerKind, peerId }));
        expect(parsed).toMatchObject({ form: "agent", rest: { kind: "peer", channel, peerKind, peerId } });
      }),
    );
  });

  it("matches prefixes with upper and lower case alike on both sides", () => {
    expect(sessionKeyHasPrefix("Agent:Main:SLACK:direct:U1", "agent:main:slack")).toBe(true);
    expect(sessionKeyHasPrefix("agent:main:slack:direct:u1", "AGENT:main:Slack")).toBe(true);
    expect(sessionKeyHasPrefix("agent:main:discord:direct:u1", "agent:main:slack")).toBe(false);
  });

  it("makes a key segment of any label", () => {
    expect(sessionKeySlug("My  Project #1!")).toBe("my-project-1");
    expect(sessionKeySlug("日本語 テスト")).toBe("日本語-テスト");
    expect(sessionKeySlug("://")).toBe("session");
    expect(sessionKeySlug("❤️ a ❤️ b")).toBe("a-b");
    expect(sessionKeySlug("x".repeat(63) + " y")).toBe("x".repeat(63));
    expect(sessionKeySlug("𠮷".repeat(40)).isWellFormed()).toBe(true);
    expect(sessionKeySlug(`a${"𠮷".repeat(40)}`)).toBe(`a${"𠮷".repeat(31)}`);
  });

  it("keeps the vowel signs of a word, so that two words stay two", () => {
    expect(sessionKeySlug("हिन्दी")).toBe("हिन्दी");
    expect(sessionKeySlug("हिन्दी")).not.toBe(sessionKeySlug("हीन्दा"));
    expect(sessionKeySlug("e\u0301te\u0301")).toBe(sessionKeySlug("été"));
  });
});

describe("labelSessionKey", () => {
  it.each([
    ["home", "home"],
    ["My  Project #1!", "my-project-1"],
    ["ＨＯＭＥ", "home"],
    ["日本語 テスト", "日本語-テスト"],
    ["x".repeat(64), "x".repeat(64)],
    ["1️⃣ first", "1\u{fe0f}\u{20e3}-first"],
  ])("makes a key of the label %j", (label, slug) => {
    expect(labelSessionKey("main", label)).toBe(`agent:main:cli:direct:${slug}`);
  });

  it.each([
    "",
    " ",
    " home",
    "home ",
    "🏠",
    "!!!",
    "\u0301",
    "a\u0000b",
    "\ud800",
    "x".repeat(65),
    "long ".repeat(60),
    "𠮷".repeat(33),
  ])("refuses the label %j, which other labels would share or nobody could type", (label) => {
    expect(() => labelSessionKey("main", label)).toThrow(
      expect.objectContaining({ code: "KEY_INVALID", outcome: "not-applied" }),
    );
  });

  it("never gives two labels one key unless case, spaces and punctuation alone tell them apart", () => {
    const plain = (label: string): string =>
      [...label.normalize("NFKC").toLowerCase()].filter((letter) => /[\p{L}\p{M}\p{N}]/u.test(letter)).join("");
    const label = fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(label, label, (one, other) => {
        let keys: readonly string[];
        try {
          keys = [labelSessionKey("main", one), labelSessionKey("main", other)];
        } catch (error) {
          expect(error).toMatchObject({ code: "KEY_INVALID" });
          return;
        }
        for (const key of keys) expect(formatSessionKey(parseSessionKey(key))).toBe(key);
        if (keys[0] === keys[1])
          expect(plain(one).replaceAll(/\p{M}/gu, "")).toBe(plain(other).replaceAll(/\p{M}/gu, ""));
      }),
    );
  });

  it("does not make a key of a peer without its parts, or with one of another name", () => {
    const peer = { agentId: "main", channel: "web", peerKind: "direct", peerId: "ada" } as const;
    expect(peerSessionKey(peer)).toBe("agent:main:web:direct:ada");
    for (const wrong of [{ ...peer, peerKind: "user" }, { ...peer, peerId: undefined }, { ...peer, peer: "ada" }, null])
      expect(() => peerSessionKey(wrong as never)).toThrow(expect.objectContaining({ code: "INPUT_INVALID" }));
  });
});
