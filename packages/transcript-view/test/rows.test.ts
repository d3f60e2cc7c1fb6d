import { redactionTombstone } from "@throughline/core/internal";
import { describe, expect, it } from "vitest";
import type { TranscriptRow } from "../src/transcript-row.ts";
import { message, outline, rowsOf, storedRecords } from "./nodes.ts";

const lineOf = ({ seq, kind, title, detail, badges, fold }: TranscriptRow): string =>
  [`#${seq}`, kind, title, detail, ...badges.map(({ text }) => `[${text}]`), fold]
    .filter((part) => part !== "")
    .join(" ");

const lines = (...given: Parameters<typeof rowsOf>): readonly string[] => rowsOf(...given).map(lineOf);

const call = (id: string, name: string, args: unknown): object => ({ type: "toolCall", id, name, arguments: args });
const result = (toolCallId: string, text: string, more: object = {}): object =>
  message({ role: "toolResult", toolCallId, content: [{ type: "text", text }], ...more });

const conversation: readonly object[] = [
  message({ role: "user", content: "Fix the login." }),
  message({
    role: "assistant",
    model: "m1",
    content: [
      { type: "thinking", thinking: "Where is it?" },
      { type: "text", text: "I look." },
      call("t1", "read", { path: "/w/login.ts" }),
      call("t2", "edit", { path: "/w/login.ts", oldText: "a\nb", newText: "a\nc" }),
    ],
  }),
  result("t1", Array.from({ length: 30 }, (_, at) => `line ${at}`).join("\n")),
  result("t2", "no", { isError: true }),
  message({ role: "assistant", content: "Part of an ans", stopReason: "aborted", recovered: true }),
  message({ role: "user", content: "<system-reminder>be quick</system-reminder>" }),
  message({ role: "bashExecution", command: "npm test", output: "1 failed", exitCode: 1 }),
  { type: "compaction", summary: "They **fix** it.", firstKeptEntryId: "r1", tokensBefore: 180112, tokensAfter: 41020 },
  { type: "reset", reason: "new" },
];

describe("the rows of records", () => {
  it("join a call and its result, and mark what failed, was cut off or was compacted", () => {
    expect(lines(conversation, { folder: "/w" })).toEqual([
      "#1 prompt Fix the login. none",
      "#2 thinking Thinking Where is it? [12 B] closed",
      "#2 assistant Assistant none",
      "#2 tool read login.ts [229 B] [1 s] closed",
      "#2 tool edit login.ts [+1] [−1] [failed] [2 B] [2 s] closed",
      "#5 assistant Assistant [cut off by a crash] none",
      "#6 note From the program <system-reminder>be quick</system-reminder> closed",
      "#7 command Command npm test [exit code 1] closed",
      "#8 compaction Compaction 180,112 → 41,020 tokens closed",
      "#9 marker Reset new none",
    ]);
  });

  it("hold what people and models said at the level of words", () => {
    expect(lines(conversation, { level: "words" }).map((line) => line.split(" ")[1])).toEqual([
      "prompt",
      "assistant",
      "assistant",
      "compaction",
      "marker",
    ]);
  });

  it("cut results to 20 lines and say how much is missing, but not at the full level", () => {
    const tree = outline(rowsOf(conversation)[3]?.tree ?? []);
    expect(tree).toContain("line 19)div[more](… 10 more lines, 80 B not in this file)");
    const whole = outline(rowsOf(conversation, { level: "full" })[3]?.tree ?? []);
    expect(whole).toContain("line 29");
    expect(whole).not.toContain("not in this file");
  });

  it("state the first thought without the marks of Markdown", () => {
    const content = [{ type: "thinking", thinking: "**Creating `__init__.py`**\n\nIt is empty." }];
    expect(lines([message({ role: "assistant", content })])).toEqual([
      "#1 thinking Thinking Creating __init__.py… [40 B] closed",
    ]);
  });

  it("show an edit as a diff", () => {
    expect(outline(rowsOf(conversation)[4]?.tree ?? [])).toBe(
      "pre[diff]( a⏎span[cut](-b⏎)span[add](+c⏎))div[label](Result)pre(no)",
    );
  });

  it("read the changes of each program's tools", () => {
    const changeOf = (name: string, args: unknown, details?: unknown): string => {
      const records = [message({ role: "assistant", content: [call("c", name, args)] }), result("c", "", { details })];
      return outline(rowsOf(records)[0]?.tree ?? []);
    };
    expect(changeOf("Write", { file_path: "a", content: "x\ny\n" })).toBe("pre[diff](span[add](+x⏎+y⏎))");
    const edits = [
      { old_string: "1", new_string: "2" },
      { old_string: "3", new_string: "4" },
    ];
    expect(changeOf("MultiEdit", { file_path: "a", edits })).toBe(
      "pre[diff](span[cut](-1⏎)span[add](+2⏎)span[at](@@⏎)span[cut](-3⏎)span[add](+4⏎))",
    );
    const patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** End Patch";
    expect(changeOf("shell", { command: ["apply_patch", patch] })).toBe(
      "pre[diff](span[at](*** Update File: a⏎)span[at](@@⏎)span[cut](-1⏎)span[add](+2⏎))",
    );
    const records = [message({ role: "assistant", content: [call("c", "apply_patch", { input: patch })] })];
    expect(lines(records)).toEqual(["#1 tool apply_patch a [+1] [−1] [no result] open"]);
    const structuredPatch = [{ oldStart: 5, newStart: 5, lines: [" a", "-b", "+c"] }];
    expect(changeOf("Edit", { file_path: "a", old_string: "b", new_string: "c" }, { structuredPatch })).toBe(
      "pre[diff](span[at](@@ line 5 @@⏎) a⏎span[cut](-b⏎)span[add](+c⏎))",
    );
  });

  it("show a redacted record by its reason, and nothing of its content", () => {
    const [stored] = storedRecords([message({ role: "user", content: "the secret" })]);
    const info = { side: false, bytes: 190, reason: "asked for", redactedAtMs: Date.parse("2026-06-30") };
    const { type, customType, v, critical, data } = redactionTombstone(stored!.record, info) as Record<string, unknown>;
    expect(lines([{ type, customType, v, critical, data, message: undefined }].map(withoutUndefined))).toEqual([
      "#1 redacted Redacted asked for · 190 B · 2026-06-30 none",
    ]);
  });

  it("do not wait for ever for a result", () => {
    const calls = Array.from({ length: 300 }, (_, at) =>
      message({ role: "assistant", content: [call(`c${at}`, "read", { path: `f${at}` })] }),
    );
    const shown = lines([...calls, result("c0", "late"), result("c299", "in time"), result("none", "alone")]);
    expect(shown).toHaveLength(302);
    expect(shown[0]).toBe("#1 tool read f0 [no result] closed");
    expect(shown.slice(299)).toEqual([
      "#300 tool read f299 [7 B] [2 s] closed",
      "#301 tool Result [4 B] closed",
      "#303 tool Result [5 B] closed",
    ]);
  });

  it("show files and images by their type and size, and images as data only by their first bytes", () => {
    const png = Buffer.from("\x89PNG\r\n\x1a\n0123456789abcdef", "latin1").toString("base64");
    const content = [
      { type: "text", text: "See:" },
      { type: "file", fileId: "f1", name: "report.pdf", mimeType: "application/pdf", sizeBytes: 12345 },
      { type: "image", mimeType: "image/png", data: png },
      { type: "image", mimeType: "image/png", data: Buffer.from("<svg onload=alert(1)>").toString("base64") },
      { type: "hologram" },
    ];
    const records = [message({ role: "user", content })];
    expect(outline(rowsOf(records)[0]?.tree ?? [])).toBe(
      "p(See:)div[media](File · report.pdf · application/pdf · 12.3 kB)div[media](Image · image/png · 24 B)" +
        "div[media](Image · image/png · 21 B)div[media]([hologram])",
    );
    const tree = rowsOf(records, { hasImages: true })[0]?.tree ?? [];
    expect(tree[2]).toMatchObject({ tag: "img", attrs: { src: `data:image/png;base64,${png}` } });
    expect(outline([tree[3]!])).toBe("div[media](Image · image/png · 21 B · no PNG, JPEG, GIF or WebP)");
  });
});

function withoutUndefined(fields: Record<string, unknown>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
