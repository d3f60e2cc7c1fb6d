import { readFileSync } from "node:fs";
import { join } from "node:path";
import { findEntryFieldProblem, misspeltEntryField } from "../src/entry-fields.ts";
import { describe, expect, it } from "vitest";

describe("fields of an entry that a person sets", () => {
  it.each([
    ["sendpolicy", "sendPolicy"],
    ["SendPolicy", "sendPolicy"],
    ["send_policy", "sendPolicy"],
    ["sendPolcy", "sendPolicy"],
    ["sendPloicy", "sendPolicy"],
    ["sendPolicyy", "sendPolicy"],
    ["sandPolicy", "sendPolicy"],
    ["lable", "label"],
    ["Label", "label"],
    ["chattype", "chatType"],
  ])("%s is %s misspelt", (field, meant) => {
    expect(misspeltEntryField(field)).toBe(meant);
    expect(findEntryFieldProblem(field, "deny")).toMatchObject({ meant });
  });

  it.each([
    "sendPolicy",
    "note",
    "mine",
    "policy",
    "sendPolicyOfMine",
    "x",
    "",
    "__proto__",
    "constructor",
    "forkedFrom",
  ])("%j is itself", (field) => {
    expect(misspeltEntryField(field)).toBeNull();
  });

  it("take the values they have, and no others", () => {
    expect(findEntryFieldProblem("sendPolicy", "deny")).toBeNull();
    for (const value of ["Deny", "denied", "", true, null, ["deny"]])
      expect(findEntryFieldProblem("sendPolicy", value)).toMatchObject({ values: ["allow", "deny"] });
    expect(findEntryFieldProblem("label", 12)?.message).toBe("label takes text, not 12.");
    expect(findEntryFieldProblem("contextTokens", "many")?.message).toContain("a number");
    expect(findEntryFieldProblem("systemSent", "true")?.message).toContain("true or false");
    expect(findEntryFieldProblem("queueMode", "some-new-mode")).toBeNull();
    expect(findEntryFieldProblem("note", { any: [1] })).toBeNull();
  });

  it("are all that the type of an entry names", () => {
    const source = readFileSync(join(import.meta.dirname, "../../../packages/core/src/session-entry.ts"), "utf8");
    const [, body = ""] = /export interface SessionEntry \{([^]*?)\n\}/.exec(source) ?? [];
    const named = [...body.matchAll(/readonly (\w+)\??:/g)].map(([, name = ""]) => name);
    expect(named.length).toBeGreaterThan(50);
    // A name one letter longer is a misspelling of each name that is known.
    expect(named.filter((name) => name.length > 4 && misspeltEntryField(`${name}Q`) === null)).toEqual([]);
  });
});
