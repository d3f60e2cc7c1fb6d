import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objects, runHere, seed, temporaryDirectory, user } from "./harness.ts";

let home: ReturnType<typeof temporaryDirectory>;
beforeEach(() => (home = temporaryDirectory()));
afterEach(() => home.remove());

async function errorOf(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await runHere(home.path, args);
  expect(code).toBeGreaterThan(0);
  const lines = stderr.split("\n").filter((line) => line.startsWith("error: "));
  expect(lines).toHaveLength(1);
  return lines[0] ?? "";
}

describe("a name that is not known", () => {
  it.each([
    [["sesions"], "error: unknown command 'sesions' (Did you mean sessions?)"],
    [["help", "sesions"], "error: unknown command 'sesions' (Did you mean sessions?)"],
    [["show", "x", "--rol", "user"], "error: unknown option '--rol' (Did you mean --role?)"],
    [["--stroe", "memory:", "sessions"], "error: unknown option '--stroe' (Did you mean --store?)"],
    [["completion", "bsh"], 'error: completion knows bash, zsh, fish, not "bsh". Did you mean bash?'],
    [
      ["config", "sesion.compaction.deadlineMs"],
      'error: "sesion.compaction.deadlineMs" is not a setting. Did you mean session.compaction.deadlineMs?',
    ],
  ])("%j: offers the nearest one", async (args, message) => {
    expect(await errorOf(...args)).toBe(message);
  });

  it("offers the nearest value of an option", async () => {
    expect(await errorOf("sessions", "--sort", "kye")).toMatch(/It must be one of .*\. Did you mean key\?$/);
  });

  it("offers the key of the nearest session, by key or label, and nothing that is far", async () => {
    await seed(home.path, [{ key: "agent:main:cli:direct:harbor", drafts: [user("Hello")] }]);
    const offered = 'Did you mean "agent:main:cli:direct:harbor"?';
    expect(await errorOf("show", "habor")).toContain(offered);
    expect(await errorOf("rename", "agent:main:cli:direct:harbro", "x")).toContain(offered);
    expect(await errorOf("show", "lighthouse")).not.toContain("Did you mean");
    const { stderr } = await runHere(home.path, ["show", "habor", "--json"]);
    expect(objects(stderr).at(-1)).toMatchObject({
      code: "SESSION_NOT_FOUND",
      details: { text: "habor", nearest: "agent:main:cli:direct:harbor" },
    });
  });

  it.each(["x".repeat(100_000), "a\nerror: b\u001b]0;title\u0007\u202e", "\u001b[31m".repeat(500), "😀".repeat(5000)])(
    "stays one short line when it is hostile or long (%#)",
    async (name) => {
      for (const args of [
        [name],
        ["help", name],
        ["show", name],
        ["show", "x", `--${name}`],
        ["config", name],
        ["sessions", "--sort", name],
      ]) {
        const message = await errorOf(...args);
        expect(message.length).toBeLessThan(700);
        // oxlint-disable-next-line no-control-regex -- what must not be there
        expect(message).not.toMatch(/[\u0000-\u001f\u202e]/);
      }
    },
  );
});

describe("a setting", () => {
  it("is printed alone, or with those that start like it", async () => {
    const rows = async (name: string): Promise<string[]> =>
      (await runHere(home.path, ["config", name])).stdout.trimEnd().split("\n");
    expect(await rows("session.compaction.deadlineMs")).toHaveLength(1);
    const several = await rows("session.compaction.");
    expect(several.length).toBeGreaterThan(3);
    expect(several.every((row) => row.startsWith("session.compaction."))).toBe(true);
  });

  it("and a field of an entry are completed", async () => {
    const completed = async (...words: readonly string[]): Promise<string> =>
      (await runHere(home.path, ["__complete", "--", ...words])).stdout;
    expect(await completed("config", "session.compaction.dead")).toBe("session.compaction.deadlineMs\n");
    expect(await completed("entry", "home", "set", "sendPol")).toBe("sendPolicy\n");
  });
});

describe("a backup of a store that does not exist yet", () => {
  it("reports that there is no store", async () => {
    const { code, stderr } = await runHere(home.path, ["backup", "copy.db", "--json"]);
    expect(code).toBe(1);
    expect(objects(stderr).at(-1)).toMatchObject({
      code: "STORE_NOT_FOUND",
      message: "There is no store yet, so there is nothing to back up.",
    });
    const memory = await runHere(home.path, ["backup", "copy.db", "--store", "memory:", "--json"]);
    expect(objects(memory.stderr).at(-1)).toMatchObject({ code: "CAPABILITY_UNSUPPORTED" });
  });
});
