import { spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { asTyped, ownCommandName } from "../src/printed-commands.ts";
import { binPath, runChild, runHere, seed, temporaryDirectory, user } from "./harness.ts";

const directory = temporaryDirectory();
afterAll(() => directory.remove());

describe("the name of this program", () => {
  const named = (environment: Readonly<Record<string, string>>, nodeArguments: readonly string[] = []): string =>
    ownCommandName({ environment, nodeArguments, program: binPath });

  it("is what starts it here, and never npx of another project", () => {
    const bin = join(directory.path, "bin");
    const shims = join(directory.path, "shims");
    const others = join(directory.path, "others");
    for (const folder of [bin, shims, others]) mkdirSync(folder);
    symlinkSync(binPath, join(bin, "throughline"));
    writeFileSync(
      join(shims, "throughline"),
      '#!/bin/sh\nexec node "x/node_modules/@throughline/cli/bin/throughline.js" "$@"\n',
    );
    writeFileSync(join(others, "throughline"), "#!/bin/sh\necho something else\n");
    expect(named({ PATH: `/usr/bin:${bin}` })).toBe("throughline");
    expect(named({ PATH: shims })).toBe("throughline");
    expect(named({ PATH: others }, ["--conditions=@throughline/source"])).toBe(
      `node --conditions=@throughline/source ${binPath}`,
    );
    expect(named({ npm_lifecycle_event: "throughline" })).toBe("npm run -s throughline --");
    const start = { npm_lifecycle_event: "start", npm_package_name: "throughline-workspace" };
    for (const event of [{ npm_lifecycle_event: "throughline", npm_config_user_agent: "pnpm/10" }, start])
      expect(named(event)).toBe("npm run -s throughline --");
    expect(named({ npm_command: "exec" })).toBe("npx @throughline/cli");
  });

  it("stands in every command of a text, with the options that were given and are missing", () => {
    const typed = (text: string): string => asTyped(text, () => "npx @throughline/cli", [["--store", "jsonl:a b"]]);
    expect(typed("Run `throughline doctor`; or `throughline show k --raw`.")).toBe(
      "Run `npx @throughline/cli doctor --store 'jsonl:a b'`; or `npx @throughline/cli show k --raw --store 'jsonl:a b'`.",
    );
    expect(typed("See `throughline show --help`.")).toBe("See `npx @throughline/cli show --help`.");
    expect(typed("`throughline copy --store sqlite:x --to-store URL`")).toContain("--store sqlite:x --to-store URL`");
    expect(typed("throughline is a word")).toBe("throughline is a word");
  });
});

describe("a command that a message prints", () => {
  it("works in a shell as it is printed, with the store that was named", async () => {
    const key = "agent:main:cli:direct:a";
    const url = `jsonl:${join(directory.path, "my store")}`;
    await seed(directory.path, [{ key, drafts: [user("one")] }], url);
    const deleted = await runChild(directory.path, ["delete", key, "--store", url]);
    const [, command = ""] = /`([^`]+)`/.exec(deleted.stderr) ?? [];
    const restored = spawnSync("sh", ["-c", command], { encoding: "utf8", cwd: directory.path });
    expect([restored.status, restored.stdout]).toEqual([0, expect.stringContaining("restored")]);
    expect((await runHere(directory.path, ["show", key, "--store", url])).stdout).toContain("one");
  });

  it("shows no password of a store", { tags: ["slow"] }, async () => {
    const args = ["show", "k", "--store", "postgres://ada:secret@127.0.0.1:1/none"];
    const { stderr } = await runHere(directory.path, args);
    expect(stderr).not.toContain("secret");
  });
});
