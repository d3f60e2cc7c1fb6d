import { applyPatch } from "diff";
import { describe, expect, it } from "vitest";
import type { StoredRecord } from "@throughline/core";
import { runSteps } from "@throughline/core/internal";
import { countLines } from "../src/count-lines.ts";
import { changedLines, diffLines } from "../src/diff-lines.ts";
import { FileChanges, KnownContent, unifiedPatchOf } from "@throughline/transcript-view/internal";

interface Use {
  readonly tool: string;
  readonly args: unknown;
  readonly isError?: boolean;
  readonly details?: object;
}

function recordsOf(uses: readonly Use[]): readonly StoredRecord[] {
  return uses
    .flatMap(({ tool, args, isError, details }, index) => {
      const id = `t${index}`;
      const content = [
        { type: "text", text: "Now." },
        {
          type: "toolCall",
          id,
          name: tool,
          ...(typeof args === "string" ? { arguments: {}, partialJson: args } : { arguments: args }),
        },
      ];
      const call = { role: "assistant", content };
      const result = { role: "toolResult", toolCallId: id, content: "", isError, details };
      return [call, ...(isError === undefined ? [] : [result])];
    })
    .map(
      (message, index) =>
        ({ seq: index + 1, side: false, record: { type: "message", message } }) as unknown as StoredRecord,
    );
}

function changesOf(
  uses: readonly Use[],
  folder: string | null = "/src/app",
): { readonly changes: FileChanges; readonly records: readonly StoredRecord[] } {
  const changes = new FileChanges(folder);
  const records = recordsOf(uses);
  for (const record of records) {
    const counting = changes.take(record);
    if (counting !== null) runSteps(counting);
  }
  return { changes, records };
}

/** Follows one file through its changes: each must fit what is there, and gives the next content. */
function contentOf(uses: readonly Use[], path: string): string | null {
  const { changes, records } = changesOf(uses);
  const content = new KnownContent();
  for (const call of changes.callsOf(path)) {
    const stored = records[call.seq - 1] as StoredRecord;
    for (const edit of changes.editsIn(stored, call, path)) if (call.isError !== true) content.take(edit);
  }
  return content.text;
}

const done = { isError: false } as const;
const programs: Readonly<Record<string, readonly Use[]>> = {
  "claude-code": [
    { tool: "Write", args: { file_path: "/src/app/a.ts", content: "one\ntwo\ntwo\n" }, ...done },
    { tool: "Edit", args: { file_path: "/src/app/a.ts", old_string: "one", new_string: "1 $& $1" }, ...done },
    {
      tool: "Edit",
      args: { file_path: "/src/app/a.ts", old_string: "two", new_string: "2", replace_all: true },
      ...done,
    },
    {
      tool: "MultiEdit",
      args: {
        file_path: "/src/app/a.ts",
        edits: [
          { old_string: "1 ", new_string: "0 " },
          { old_string: "2\n2\n", new_string: "2\n3\n" },
        ],
      },
      ...done,
    },
    { tool: "Edit", args: { file_path: "/src/app/a.ts", old_string: "3", new_string: "4" }, isError: true },
  ],
  codex: [
    {
      tool: "shell",
      args: { command: ["apply_patch", "*** Begin Patch\n*** Add File: a.ts\n+0 $& $1\n+2\n+3\n*** End Patch"] },
      ...done,
    },
  ],
  pi: [
    { tool: "write", args: { path: "a.ts", content: "0 $& $1\n2\n2\n" }, ...done },
    { tool: "edit", args: { path: "a.ts", edits: [{ oldText: "2\n2", newText: "2\n3" }] }, ...done },
  ],
  opencode: [
    { tool: "write", args: { filePath: "/src/app/a.ts", content: "x\n2\n3\n" }, ...done },
    { tool: "edit", args: { filePath: "/src/app/a.ts", oldString: "x", newString: "0 $& $1" }, ...done },
  ],
  own: [
    { tool: "write_file", args: { path: "./b/../a.ts", content: "0\n2\n3\n" }, ...done },
    { tool: "edit_file", args: { path: "a.ts", old_text: "0", new_text: "0 $& $1" }, ...done },
  ],
};

describe("changes of files", () => {
  it.each(Object.entries(programs))("of %s give the content of the file, change by change", (_program, uses) => {
    expect(contentOf(uses, "a.ts")).toBe("0 $& $1\n2\n3\n");
  });

  it("count by file, also below the folder, and leave failed ones out", () => {
    const { changes } = changesOf([
      ...(programs["claude-code"] ?? []),
      { tool: "Write", args: { file_path: "/etc/x", content: "a\nb" } },
      { tool: "bash", args: { command: "echo > a.ts" } },
      { tool: "Read", args: { file_path: "/src/app/a.ts" } },
    ]);
    expect(runSteps(changes.files())).toEqual([
      { path: "a.ts", changes: 5, failed: 1, added: 7, removed: 4, firstSeq: 1, lastSeq: 9 },
      { path: "/etc/x", changes: 1, failed: 0, added: 2, removed: 0, firstSeq: 11, lastSeq: 11 },
    ]);
  });

  it("count as many lines as their diffs show", () => {
    const texts = [
      "",
      "a",
      "a\n",
      "a\nb\nc\n",
      "a\nc\nb\n",
      "x\ny\n",
      "b\n\n\nc",
      "a\nb\nc",
      "\n",
      `${"l\n".repeat(90)}m\n`,
      `k\n${"l\nn\n".repeat(60)}`,
    ];
    for (const before of texts)
      for (const after of texts) {
        const change = { edits: [{ before, after }], patch: null, isWhole: false };
        // On a busy machine the usual 20 ms may end within one comparison.
        const lines = runSteps(diffLines(change, 60_000));
        expect([before, after, runSteps(countLines(before, after))]).toEqual([before, after, changedLines(lines)]);
      }
  });

  it("of a patch are told apart by file", () => {
    const patch =
      "*** Begin Patch\n*** Update File: a.ts\n@@\n-one\n+two\n same\n*** Delete File: b.ts\n*** End Patch\n";
    const { changes, records } = changesOf([{ tool: "apply_patch", args: { input: patch }, ...done }]);
    expect(runSteps(changes.files()).map(({ path, added, removed }) => [path, added, removed])).toEqual([
      ["a.ts", 1, 1],
      ["b.ts", 0, 0],
    ]);
    const [call] = changes.callsOf("a.ts");
    expect(call === undefined ? [] : changes.editsIn(records[0] as StoredRecord, call, "a.ts")).toMatchObject([
      { what: "patch", patch: "@@\n-one\n+two\n same", before: null, after: null },
    ]);
  });

  it("take the patch of Claude Code's result, which gives the file after from the file before", () => {
    const before = "a\nb\nc\nd\ne\n";
    const lines = [" b", "-c", "+C", "+C2", " d"];
    const structuredPatch = [{ oldStart: 2, oldLines: 3, newStart: 2, newLines: 4, lines }];
    const unified = unifiedPatchOf({ structuredPatch });
    expect(applyPatch(before, `--- a\n+++ a\n${unified}\n`)).toBe("a\nb\nC\nC2\nd\ne\n");
    const { changes } = changesOf([
      {
        tool: "Write",
        args: { file_path: "/src/app/a.ts", content: "a\nb\nC\nC2\nd\ne\n" },
        ...done,
        details: { structuredPatch },
      },
    ]);
    expect(runSteps(changes.files())).toMatchObject([{ path: "a.ts", added: 2, removed: 1 }]);
  });

  it("take arguments of any shape", () => {
    const shapes: readonly unknown[] = [
      null,
      5,
      [],
      {},
      { path: 5 },
      { path: "" },
      { path: "a", edits: [null, 5, { oldText: 5 }] },
      "*** Begin Patch\n*** Add File: \n",
      { path: "x".repeat(9000), content: "y" },
      { file_path: "../../../etc/passwd", content: "" },
    ];
    const { changes } = changesOf(shapes.map((args) => ({ tool: "write", args })));
    expect(runSteps(changes.files()).map(({ path }) => path.slice(0, 20))).toEqual([
      "a",
      "x".repeat(20),
      "../../../etc/passwd",
    ]);
    for (const { path } of runSteps(changes.files())) expect(changes.callsOf(path).length).toBe(1);
  });
});
