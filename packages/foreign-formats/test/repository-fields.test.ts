import { describe, expect, it } from "vitest";
import { CodexFacts } from "../src/codex/codex-facts.ts";
import { SessionFacts } from "../src/claude-code/session-facts.ts";
import { repositoryFields } from "../src/repository-fields.ts";

describe("the repository of a session", () => {
  it.each([
    ["https://github.com/acme/app.git", "main", { repository: "https://github.com/acme/app.git", branch: "main" }],
    ["https://ada:ghp_secret@github.com/acme/app", "x", { repository: "https://github.com/acme/app", branch: "x" }],
    ["https://a@b@host", "", { repository: "https://host" }],
    ["git@github.com:acme/app.git", "HEAD", { repository: "git@github.com:acme/app.git" }],
    ["acme/app", undefined, { repository: "acme/app" }],
    [null, " feature/login ", { branch: "feature/login" }],
    [7, { name: "main" }, {}],
    ["x".repeat(401), "x".repeat(401), {}],
  ])("of %j with the branch %j is %j", (repository, branch, expected) => {
    expect(repositoryFields(repository, branch)).toEqual(expected);
  });

  it("is in the entry of a Codex session", () => {
    const facts = new CodexFacts(null);
    const git = { commit_hash: "1cea", branch: "codex", repository_url: "https://github.com/acme/app.git" };
    facts.take({ id: "s1", cwd: "/app", git });
    expect(facts.entry).toEqual({ cwd: "/app", branch: "codex", repository: "https://github.com/acme/app.git" });
  });

  it("is the last branch of a Claude Code session", () => {
    const facts = new SessionFacts(null);
    for (const gitBranch of ["main", "feature", undefined, "HEAD", ""])
      facts.take({ type: "user", sessionId: "s1", ...(gitBranch === undefined ? {} : { gitBranch }) }, () => true);
    expect(facts.entry).toMatchObject({ branch: "feature" });
  });
});
