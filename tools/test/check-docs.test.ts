import { describe, expect, it } from "vitest";
import { checkDocs } from "../check-docs.ts";
import { headingAnchor, readMarkdown } from "../markdown.ts";
import { temporaryTree } from "./temporary-tree.ts";

const tree = {
  "packages/a/package.json": `{"name":"a-package","type":"module","exports":"./src/index.ts"}`,
  "packages/a/src/index.ts": "export const one = 1;",
};

async function complaints(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  return (await checkDocs(temporaryTree({ ...tree, ...files }))).violations;
}

function fence(info: string, text: string): string {
  return `\`\`\`${info}\n${text}\n\`\`\`\n`;
}

describe("reading Markdown", () => {
  it("finds fences of any length, links and anchors, but no links in code", () => {
    const text =
      '# A `b` & c\n## Twice\n## Twice\n````md\n```ts\n[x](no)\n```\n````\n`[x](no)` [y](yes.md "t")\n[z]: also.md\n';
    const { fences, links, anchors } = readMarkdown(text);
    expect(fences).toEqual([{ line: 4, language: "md", info: "", text: "```ts\n[x](no)\n```" }]);
    expect(links).toEqual([
      { line: 9, target: "yes.md" },
      { line: 10, target: "also.md" },
    ]);
    expect([...anchors]).toEqual(["a-b--c", "twice", "twice-1"]);
  });

  it("makes anchors of headings with links and umlauts", () => {
    expect(headingAnchor("The [store](a.md): für_alle!")).toBe("the-store-für_alle");
  });
});

describe("links and paths", () => {
  it("lets through what leads somewhere", async () => {
    const text =
      "# Top\n[a](#top) [b](docs/b.md#in-b) [c](https://example.org) [d](docs) `~/.throughline` https://a.b/home/x /home/ada/x\n";
    expect(await complaints({ "README.md": text, "docs/b.md": "## In b\n" })).toEqual([]);
  });

  it.each([
    ["[a](gone.md)", "docs/a.md:1 gone.md leads nowhere"],
    ["[a](#gone)", "docs/a.md:1 #gone: docs/a.md has no heading of that name"],
    ["[a](../../outside.md)", "docs/a.md:1 ../../outside.md leads nowhere"],
    ["see `/home/jo/x`", "docs/a.md:1 /home/jo/: a path of one machine"],
    ["in (/tmp/x)", "docs/a.md:1 /tmp/: a path of one machine"],
    ["C:\\Users\\jo", "docs/a.md:1 C:\\Users\\: a path of one machine"],
  ])("refuses %s", async (text, violation) => {
    expect(await complaints({ "docs/a.md": text })).toEqual([violation]);
  });
});

describe("examples", () => {
  it(
    "need nothing that the install lines leave out, and no syntax that Node 22 lacks",
    { tags: ["slow"] },
    async () => {
      const example = fence(
        "ts",
        'import { one } from "a-package";\nimport { join } from "node:path";\n{ using x = null; }',
      );
      const installing = (names: string): string => `${fence("sh", `npm install ${names}   # or others`)}${example}`;
      expect(await complaints({ "packages/a/README.md": installing("a-package-of-others") })).toEqual([
        "packages/a/README.md:4 `using`: Node 22 does not know it",
        "packages/a/README.md:4 a-package is in no install line",
      ]);
      const told = installing("--save-dev other a-package").replace("{ using x = null; }", "void [one, join];");
      expect(await complaints({ "packages/a/README.md": told })).toEqual([]);
    },
  );

  it("run in the order of the page, with the package's own name and types", { tags: ["slow"] }, async () => {
    const text = [
      fence(
        "ts",
        `import { writeFileSync } from "node:fs";\nimport { one } from "a-package";\nwriteFileSync("n", String(one as number));`,
      ),
      fence(
        "ts",
        `import { readFileSync } from "node:fs";\nif (readFileSync("n", "utf8") !== "1") throw new Error("other folder");`,
      ),
    ].join("\n");
    const report = await checkDocs(temporaryTree({ ...tree, "packages/a/README.md": text }));
    expect(report).toMatchObject({ fencesRun: 2, fencesSkipped: 0, violations: [] });
  });

  it("fail with what they printed", { tags: ["slow"] }, async () => {
    const text = fence("ts", `throw new Error("seen");`);
    const [violation] = await complaints({ "packages/a/README.md": `\n${text}` });
    expect(violation).toMatch(/^packages\/a\/README\.md:2 the example fails:\n[^]*seen/);
  });

  it("are left alone with a reason only, and outside READMEs and guides", { tags: ["slow"] }, async () => {
    const failing = `throw new Error("run");`;
    const report = await checkDocs(
      temporaryTree({
        ...tree,
        "packages/a/README.md": fence('ts no-run reason="needs a key"', failing) + fence("ts no-run", failing),
        "docs/decisions/a.md": fence("ts", failing),
      }),
    );
    expect(report.fencesSkipped).toBe(1);
    expect(report.violations).toEqual(['packages/a/README.md:4 no-run needs reason="…"']);
  });

  it(
    "print what the text fence behind them shows, with … for any text of a line or any lines",
    { tags: ["slow"] },
    async () => {
      const example = fence("ts", `console.log("one 12 ms\\ntwo\\nthree\\nfour");`);
      const page = (shown: string): Promise<readonly string[]> =>
        complaints({ "docs/guides/a.md": `${example}${fence("text", shown)}` });
      expect(await page("one … ms\n…\nfour")).toEqual([]);
      expect(await page("one … s\n…\nfour")).toEqual([
        "docs/guides/a.md:1 the example fails:\nthe page shows another output than\none 12 ms\ntwo\nthree\nfour",
      ]);
      expect(await page("one 12 ms\ntwo\nthree")).toHaveLength(1);
    },
  );

  it(
    "write files, change them and run them, with the packages of the workspace installed",
    { tags: ["slow"] },
    async () => {
      const page =
        fence("js file=a.mjs", 'import { one } from "a-package";\nconsole.log(one);\nconsole.log("b");') +
        fence("diff file=a.mjs", ' console.log(one);\n-console.log("b");\n+console.log("c");\n+console.log("d");') +
        fence("sh run", "node a.mjs") +
        fence("text", "1\nc\nd");
      const report = await checkDocs(temporaryTree({ ...tree, "docs/a.md": page }));
      expect(report).toMatchObject({ fencesRun: 3, outputsCompared: 1, violations: [] });
      const wrong = page.replace('-console.log("b")', '-console.log("x")');
      expect(await complaints({ "docs/a.md": wrong })).toContain(
        "docs/a.md:6 the example fails:\na line of the diff is not in a.mjs, or not once",
      );
    },
  );

  it(
    "have types that fit, with the line of the page, and may be limited to some pages",
    { tags: ["slow"] },
    async () => {
      const page = `# A\n${fence('ts no-run reason="needs a key"', 'import { one } from "a-package";\nconst text: string = one;')}`;
      const files = temporaryTree({ ...tree, "docs/a.md": page, "docs/b.md": fence("ts", "const n: number = 1;") });
      expect(await checkDocs(files)).toMatchObject({
        fencesTyped: 2,
        violations: [expect.stringMatching(/^docs\/a\.md:4 error TS2322: /)],
      });
      expect(await checkDocs(files, ["docs/b"])).toMatchObject({ fencesTyped: 1, fencesRun: 1, violations: [] });
    },
  );

  it("start the command line, and only that", async () => {
    const entry = `process.stdout.write("ran\\n"); process.exitCode = process.argv[2] === "good" ? 0 : 1;`;
    const text =
      fence("sh", "npm install nothing") +
      fence("sh", "# why\nthroughline good | grep ran") +
      fence("sh", "npm run -s throughline -- bad");
    const report = await checkDocs(temporaryTree({ ...tree, "apps/cli/bin/throughline.js": entry, "README.md": text }));
    expect(report.fencesRun).toBe(2);
    expect(report.violations).toEqual(["README.md:8 the example fails:\nran"]);
  });
});
