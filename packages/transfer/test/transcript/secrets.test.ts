import { createMemoryStore } from "@throughline/store-memory";
import { describe, expect, it } from "vitest";
import { pageRef, pageTexts, said } from "./page-texts.ts";

/** Each secret is put together, so that no scan of this repository finds one. */
const joined = (...parts: readonly string[]): string => parts.join("");

const planted: Readonly<Record<string, string>> = {
  "GitHub token": joined("ghp", "_", "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"),
  "Slack token": joined("xoxb", "-", "123456789012-1234567890123-abcdefghijklmnopqrstuvwx"),
  "npm token": joined("npm", "_", "abcdefghijklmnopqrstuvwxyz0123456789"),
  "SendGrid key": joined(
    "SG",
    ".",
    "APhb3zgjtx3hajdas1TjBB.H7Sgbba3afgKSDyB442aDK0kpGO3SD332313-L5528Kewhere".slice(0, 66),
  ),
  "private key": joined(
    "-----BEGIN RSA ",
    "PRIVATE KEY-----\n",
    "MIIEpAIBAAKCAQEA7f\n".repeat(8),
    "-----END RSA ",
    "PRIVATE KEY-----",
  ),
  "database password": joined("postgresql://", "app", ":", "s3cr3tpassw0rd", "@db.example.com/app"),
  "Throughline token": joined("tl", "_", "abcdefghijkl", "_", "x".repeat(43)),
};
const bearer = joined("eyJhbGciOiJIUzI1NiJ9", ".", "c2VjcmV0LXZhbHVl");

describe("the secrets of a page", () => {
  it("are replaced in every field, and counted by kind", async () => {
    const store = createMemoryStore();
    const [github = "", slack = "", npm = "", , key = "", database = "", own = ""] = Object.values(planted);
    await store.save(pageRef, { sessionId: "s1", label: `Deploy ${own}`, cwd: "/home/ada/app" }, { ifRevision: null });
    await store.append(pageRef, [
      said("user", `Use ${github} with\n\`\`\`\n${key}\n\`\`\``),
      said("assistant", [
        { type: "thinking", thinking: `The token is ${slack}.` },
        {
          type: "toolCall",
          id: "t1",
          name: "bash",
          arguments: { command: `curl -H "Authorization: Bearer ${bearer}" x` },
        },
        { type: "toolCall", id: "t2", name: "fetch", arguments: { headers: { authorization: `Basic ${npm}` } } },
        {
          type: "toolCall",
          id: "t3",
          name: "edit",
          arguments: { path: "/home/ada/app/.env", oldText: "", newText: database },
        },
      ]),
      {
        type: "message",
        message: {
          role: "toolResult",
          toolCallId: "t1",
          content: "git clone https://bob:pw@example.com/x and /Users/bob/y",
        },
      },
      { type: "compaction", summary: `They deployed with ${github}.`, firstKeptEntryId: "r1", tokensBefore: 1 },
      said("assistant", `It said ${bearer}`),
    ]);
    for (const to of ["html", "markdown"] as const) {
      const { texts, replaced, fileNames } = await pageTexts(store, { to, level: "full" });
      const [text = ""] = texts;
      for (const secret of [
        github,
        slack,
        npm,
        "MIIEpAIBAAKCAQEA7f",
        "s3cr3tpassw0rd",
        own,
        bearer,
        ":pw@",
        "ada",
        "Users/bob",
      ])
        expect([to, secret, `${text}${fileNames.join("")}`.includes(secret)]).toEqual([to, secret, false]);
      expect(Object.fromEntries(replaced?.map(({ what, count }) => [what, count]) ?? [])).toEqual({
        "GitHub token": 2,
        "Slack token": 1,
        "Throughline token": 1,
        "authorization value": 1,
        "database password": 1,
        "home directory": 3,
        "npm token": 1,
        "password in a URL": 1,
        "private key": 1,
      });
      expect(text).toContain(to === "html" ? "Use [GitHub token]" : "Use \\[GitHub token\\]");
      expect(text).toContain("2 × GitHub token");
    }
  });

  it("stay when the scan is off, and the file says so", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    await store.append(pageRef, [said("user", `Use ${planted["GitHub token"]} in /home/ada`)]);
    const { texts, replaced } = await pageTexts(store, { to: "html", redact: false });
    expect(replaced).toBeNull();
    expect(texts[0]).toContain(planted["GitHub token"]);
    expect(texts[0]).toContain("The secret scan was off");
  });

  it("are found where the windows of a long text meet", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const secret = planted["GitHub token"] ?? "";
    for (const at of [96 * 1024 - 20, 80 * 1024 - 20, 160 * 1024 - 30]) {
      const text = "word ".repeat(120 * 1024);
      await store.append(pageRef, [said("assistant", `${text.slice(0, at)} ${secret} ${text.slice(at)}`)]);
    }
    const { texts, replaced } = await pageTexts(store, { to: "markdown", level: "full" });
    expect(texts[0]?.includes(secret)).toBe(false);
    expect(replaced).toEqual([{ what: "GitHub token", count: 3 }]);
  });

  it("are found behind a list that is longer than the arguments of a call may be", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    const list = [...Array.from({ length: 200_000 }, () => 1), planted["GitHub token"]];
    await store.append(pageRef, [{ ...said("user", "Hi"), native: { list } }]);
    const { replaced } = await pageTexts(store, { to: "markdown" });
    expect(replaced).toEqual([{ what: "GitHub token", count: 1 }]);
  });

  it("are also what the user's expressions match, which must be linear", async () => {
    const store = createMemoryStore();
    await store.save(pageRef, { sessionId: "s1" }, { ifRevision: null });
    await store.append(pageRef, [said("user", "Ask ACME-12345 and ACME-9 about aaaa. Nobody else knows ACMECORP.")]);
    const patterns = ["ACME-\\d+|aa+", "else$"];
    const { texts, replaced } = await pageTexts(store, { to: "markdown", patterns });
    expect(texts[0]).toContain(
      "Ask \\[own pattern\\] and \\[own pattern\\] about \\[own pattern\\]. Nobody else knows ACMECORP.",
    );
    expect(replaced).toEqual([{ what: "own pattern", count: 3 }]);
    for (const pattern of ["(a)\\1", "(?<name>a)", "\\p{L}", "(", "", "a".repeat(501)])
      await expect(pageTexts(store, { to: "html", patterns: [pattern] })).rejects.toMatchObject({
        code: "INPUT_INVALID",
      });
  });
});
